#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collage/op/reference_sample.h"
#include "collage/runtime/kernel.h"
#include "collage/support/result.h"
#include "collage/tensor/agreement.h"

namespace collage {

/// Whatever computes tensors from tensors, all in row-major order: an Executable, a kernel, a program that was loaded.
using RunTensors = std::function<Result<std::vector<Tensor>>(std::span<const Tensor> inputs)>;

/// Runs on the sample's inputs and compares with its outputs. It agrees where Passes(agreement, sample.tolerance). Errors when it fails.
Result<Agreement> CompareWithReference(const RunTensors& run, const ReferenceSample& sample);
/// Of a kernel that was compiled from the sample's function. An element that it does not write is NaN.
Result<Agreement> CompareWithReference(Kernel& kernel, const ReferenceSample& sample);

/// Why what a whole program gave will not do: it differs from the sample by more than the tolerance. Empty where it does not, and where
/// nothing finite could be compared (IsComparison) and nothing else differs: that is for the caller to say.
std::string ObjectionOfProgram(const Agreement& agreement, double tolerance);

/// Runs a kernel on row-major tensors: converts them into its layouts and back. Errors when their types are not those of its ports.
Result<std::vector<Tensor>> RunKernel(Kernel& kernel, std::span<const Tensor> inputs);

/// The largest difference on the inputs of SampleReference, in units in which kTolerance is the most that passes: differences of functions
/// that round to 16 bits are larger, and are told relative to their tolerance. So are those of functions of several operators that amplify
/// rounding, or decide between nearly equal numbers, relative to what that alone does to them (RoundingExcuse). Errors when the kernel
/// fails, and where nothing excuses the difference or there was nothing to compare. `enter` is told what begins: how long the reference
/// takes is no fault of the kernel.
Result<double> DifferenceFromReference(Kernel& kernel, const Expr& function, uint64_t seed,
                                       const std::function<void(const char* stage)>& enter = {});

}  // namespace collage
