#pragma once

#include <vector>

#include "collage/op/reference_sample.h"
#include "collage/runtime/executable.h"

namespace collage {

/// Inputs on which whole plans of a model are timed and compared, the same in every process, and what the reference executor makes of them.
/// Takes one run of the reference executor, and more only where that comes across what is no number. Errors of that executor.
Result<ReferenceSample> ModelSample(const Expr& function, const InterpreterOptions& options = {});

/// How far rounding alone takes each of its outputs (RoundingEffect).
Result<std::vector<Agreement>> ModelRounding(const Expr& function, const ReferenceSample& sample, const InterpreterOptions& options = {});

/// Random inputs, the same in every process, whatever the operators behind them need.
std::vector<Tensor> ModelInputs(const Executable& executable);

}  // namespace collage
