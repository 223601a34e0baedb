#include "collage/backend/cuda_device/work.h"

#include "collage/backend/cuda_device/driver.h"

namespace collage::cuda {

CudaWork::~CudaWork() {
  if (!context_.Enter()) return;
  const Driver& driver = Driver::Use();
  if (graph_) driver.cuGraphExecDestroy(graph_);
  if (timed_graph_) driver.cuGraphExecDestroy(timed_graph_);
  for (const CUevent event : events_) driver.cuEventDestroy(event);
}

Status CudaWork::Record() {
  graph_ = COLLAGE_TRY(context_.RecordGraph([&]() -> Status {
    for (const std::function<Status()>& part : parts_) COLLAGE_TRY_STATUS(part());
    return {};
  }));
  return {};
}

Status CudaWork::MakeEvents() {
  COLLAGE_TRY_STATUS(context_.Enter());
  while (events_.size() <= parts_.size()) {
    CUevent event = nullptr;
    COLLAGE_CUDA_CALL(cuEventCreate, &event, CU_EVENT_DEFAULT);
    events_.push_back(event);
  }
  return {};
}

Status CudaWork::RecordTimed() {
  COLLAGE_TRY_STATUS(MakeEvents());
  // External: an event that a graph records for others to read, and no edge between its nodes.
  const auto stamp = [&](size_t place) -> Status {
    COLLAGE_CUDA_CALL(cuEventRecordWithFlags, events_[place], context_.stream(), CU_EVENT_RECORD_EXTERNAL);
    return {};
  };
  timed_graph_ = COLLAGE_TRY(context_.RecordGraph([&]() -> Status {
    COLLAGE_TRY_STATUS(stamp(0));
    for (size_t i = 0; i < parts_.size(); ++i) {
      COLLAGE_TRY_STATUS(parts_[i]());
      COLLAGE_TRY_STATUS(stamp(i + 1));
    }
    return {};
  }));
  return {};
}

Status CudaWork::GiveTimed(std::span<double> seconds) {
  if (!timed_graph_) COLLAGE_TRY_STATUS(RecordTimed());
  COLLAGE_TRY_STATUS(Launch(timed_graph_));
  COLLAGE_TRY_STATUS(context_.WaitForAll());
  for (size_t i = 0; i < parts_.size(); ++i) {
    float milliseconds = 0;
    COLLAGE_CUDA_CALL(cuEventElapsedTime, &milliseconds, events_[i], events_[i + 1]);
    constexpr double kSecondsPerMillisecond = 1e-3;
    seconds[i] = milliseconds * kSecondsPerMillisecond;
  }
  return {};
}

Status CudaWork::Launch(CUgraphExec graph) {
  COLLAGE_TRY_STATUS(context_.Enter());
  COLLAGE_CUDA_CALL(cuGraphLaunch, graph, context_.stream());
  return {};
}

}  // namespace collage::cuda
