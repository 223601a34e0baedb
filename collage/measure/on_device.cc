#include "collage/measure/on_device.h"

#include <array>
#include <functional>

namespace collage {

Result<BuffersOnDevice> BuffersOnDevice::Create(const Kernel& kernel, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  BuffersOnDevice buffers;
  const auto allocate = [&](size_t bytes) -> Result<void*> {
    buffers.memory_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(kernel.context(), bytes)));
    return buffers.memory_.back().address();
  };
  for (const Tensor& input : inputs) {
    void* address = COLLAGE_TRY(allocate(input.ByteCount()));
    buffers.inputs_.push_back(address);
    COLLAGE_TRY_STATUS(kernel.context()->CopyIn(address, input.Bytes(), input.ByteCount()));
  }
  for (const Tensor& output : outputs) buffers.outputs_.push_back(COLLAGE_TRY(allocate(output.ByteCount())));
  if (const auto accumulated = kernel.accumulated_input()) buffers.outputs_[0] = const_cast<void*>(buffers.inputs_[*accumulated]);
  buffers.workspace_ = COLLAGE_TRY(allocate(kernel.workspace_bytes()));
  COLLAGE_TRY_STATUS(kernel.context()->WaitForAll());
  return buffers;
}

Status BuffersOnDevice::Run(Kernel& kernel) {
  COLLAGE_TRY_STATUS(kernel.Run(inputs_, outputs_, workspace_));
  return kernel.context()->WaitForAll();
}

Status BuffersOnDevice::RecordTimedRun(Kernel& kernel) {
  DeviceContext& context = *kernel.context();
  COLLAGE_TRY_STATUS(Run(kernel));
  has_anchor_ = COLLAGE_TRY(context.EmptyCaches());
  std::vector<std::function<Status()>> parts;
  if (has_anchor_) {
    parts.emplace_back([&context]() -> Status {
      const Result<bool> gave = context.EmptyCaches();
      return gave ? Status() : Fail(gave.error());
    });
  }
  // Their buffers stay where they are when this moves.
  parts.emplace_back([&kernel, inputs = std::span<const void* const>(inputs_), outputs = std::span<void* const>(outputs_),
                      workspace = workspace_] { return kernel.Run(inputs, outputs, workspace); });
  timed_run_ = COLLAGE_TRY(context.RecordWork(std::move(parts)));
  return {};
}

Result<DeviceTimes> BuffersOnDevice::TimedRun(Kernel& kernel) {
  if (!timed_run_) COLLAGE_TRY_STATUS(RecordTimedRun(kernel));
  std::array<double, 2> seconds = {};
  COLLAGE_TRY_STATUS(timed_run_->GiveTimed(seconds));
  if (!has_anchor_) return DeviceTimes{seconds[0], std::nullopt};
  return DeviceTimes{seconds[1], seconds[0]};
}

Status BuffersOnDevice::CopyOut(const Kernel& kernel, std::span<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    COLLAGE_TRY_STATUS(kernel.context()->CopyOut(outputs[i].MutableBytes(), outputs_[i], outputs[i].ByteCount()));
  return kernel.context()->WaitForAll();
}

}  // namespace collage
