#pragma once

#include <cuda.h>

#include <functional>
#include <span>
#include <vector>

#include "collage/backend/cuda_device/context.h"
#include "collage/runtime/device_context.h"

namespace collage::cuda {

/// Work as a graph. The one that tells the times of its parts has events between them as nodes of its own, and is made when it is first
/// wanted.
class CudaWork final : public RecordedWork {
 public:
  CudaWork(CudaContext& context, std::vector<std::function<Status()>> parts) : context_(context), parts_(std::move(parts)) {}
  CudaWork(const CudaWork&) = delete;
  CudaWork& operator=(const CudaWork&) = delete;
  ~CudaWork() override;

  Status Record();
  Status Give() override { return Launch(graph_); }
  Status GiveTimed(std::span<double> seconds) override;

 private:
  Status Launch(CUgraphExec graph);
  Status RecordTimed();
  Status MakeEvents();

  CudaContext& context_;
  std::vector<std::function<Status()>> parts_;
  CUgraphExec graph_ = nullptr;
  CUgraphExec timed_graph_ = nullptr;
  std::vector<CUevent> events_;  ///< before each part and behind the last
};

}  // namespace collage::cuda
