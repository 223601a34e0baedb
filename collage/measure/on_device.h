#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// What a kernel reads and writes, on its own device: copies of the host's buffers. For kernels with a context.
class BuffersOnDevice {
 public:
  /// Inputs are copied in. An accumulating kernel's first output is the input that it accumulates into.
  static Result<BuffersOnDevice> Create(const Kernel& kernel, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

  /// Runs the kernel and waits for it.
  Status Run(Kernel& kernel);
  Status CopyOut(const Kernel& kernel, std::span<Tensor> outputs);

 private:
  std::vector<DeviceMemory> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
};

}  // namespace collage
