#pragma once

#include <optional>
#include <span>
#include <vector>

#include "collage/measure/on_device.h"
#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Inputs, outputs and workspace of a kernel, in their physical sizes, every page touched; on the kernel's device where it has one.
class KernelBuffers {
 public:
  /// `inputs` in row-major order, of the types of the kernel's ports (SuitableInputs): NaN, infinities and denormal numbers, which
  /// unsuitable ones lead to, may take another time than numbers.
  KernelBuffers(const Kernel& kernel, std::span<const Tensor> inputs);
  /// Inputs are random in [-1, 1], whatever the kernel computes.
  explicit KernelBuffers(const Kernel& kernel);
  /// Until it has run. Errors are the kernel's, or of buffers that its device cannot hold.
  Status Run(Kernel& kernel) {
    if (!on_device_) return kernel.Run(input_pointers_, output_pointers_, workspace_.MutableBytes());
    if (!*on_device_) return Fail(on_device_->error());
    return (*on_device_)->Run(kernel);
  }
  /// Of one run. It is the same kernel each time.
  Result<DeviceTimes> TimedRun(Kernel& kernel);
  /// Each of so many threads reads its share of the inputs, as their producer would have left them.
  void ReadInputs(int threads) const;

 private:
  void AddOutputs(const Kernel& kernel);

  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
  Tensor workspace_;
  std::optional<Result<BuffersOnDevice>> on_device_;
};

}  // namespace collage
