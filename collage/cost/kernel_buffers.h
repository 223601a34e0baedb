#pragma once

#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Inputs, outputs and workspace of a kernel, in their physical sizes, every page touched and full of random data.
class KernelBuffers {
 public:
  explicit KernelBuffers(const Kernel& kernel);
  Status Run(Kernel& kernel) { return kernel.Run(input_pointers_, output_pointers_, workspace_.MutableBytes()); }
  /// Seconds of one run.
  Result<double> TimedRun(Kernel& kernel);
  /// Reads the inputs, as their producer would have left them.
  void ReadInputs() const;

 private:
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
  Tensor workspace_;
};

}  // namespace collage
