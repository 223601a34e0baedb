#pragma once

#include <cstdint>

#include "collage/ir/expr.h"
#include "collage/runtime/kernel.h"
#include "collage/support/result.h"

namespace collage {

/// Largest difference that a kernel may show from the reference, relative to the largest value of the output.
inline constexpr double kTolerance = 1e-4;

/// Runs a kernel on seeded random inputs, and the function that it was compiled from on the reference executor. Gives the largest
/// RelativeDifference of any output. Errors when the kernel fails.
Result<double> DifferenceFromReference(Kernel& kernel, const Expr& function, uint64_t seed);

}  // namespace collage
