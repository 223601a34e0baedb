#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// A kernel's time and, by a device's own clock, that of its anchor just before: a fixed piece of work of the device's.
struct DeviceTimes {
  double seconds;
  std::optional<double> anchor_seconds;
};

/// What a kernel reads and writes, on its own device: copies of the host's buffers. For kernels with a context.
class BuffersOnDevice {
 public:
  /// Inputs are copied in. An accumulating kernel's first output is the input that it accumulates into.
  static Result<BuffersOnDevice> Create(const Kernel& kernel, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

  /// Runs the kernel and waits for it.
  Status Run(Kernel& kernel);
  /// The same, timed. It is the same kernel each time.
  Result<DeviceTimes> TimedRun(Kernel& kernel);
  Status CopyOut(const Kernel& kernel, std::span<Tensor> outputs);

 private:
  Status RecordTimedRun(Kernel& kernel);

  std::vector<DeviceMemory> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
  bool has_anchor_ = false;
  std::unique_ptr<RecordedWork> timed_run_;  ///< emptying of the caches, where there is any, and the kernel
};

}  // namespace collage
