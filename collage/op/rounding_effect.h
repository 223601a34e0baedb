#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collage/op/interpreter.h"
#include "collage/op/reference_sample.h"

namespace collage {

/// Runs a function or a module on the reference executor.
using RunReference = std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& inputs, const InterpreterOptions&)>;

/// How far rounding alone takes each output of a function from the sample's, by Monte Carlo arithmetic (Parker, "Monte Carlo Arithmetic",
/// 1997): the reference executor runs again, and each result of an operator is off by as much as a right kernel may be. The farthest of a
/// few runs, whose errors are the same for equal functions and seeds in every process. Where a function amplifies rounding, or decides
/// between nearly equal numbers (the largest of some, a box above a threshold), this is more than any tolerance of a single kernel.
/// Errors of the reference executor.
Result<std::vector<Agreement>> RoundingEffect(const RunReference& run, const ReferenceSample& sample, uint64_t seed,
                                              const InterpreterOptions& options = {});

}  // namespace collage
