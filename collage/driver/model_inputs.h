#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "collage/op/reference_sample.h"
#include "collage/op/rounding_effect.h"
#include "collage/runtime/executable.h"
#include "collage/support/progress.h"

namespace collage {

/// Inputs on which whole plans of a model are timed and compared, the same in every process, and what the reference executor makes of them.
/// Takes one run of the reference executor, and more only where that comes across what is no number. Errors of that executor.
Result<ReferenceSample> ModelSample(const Expr& function, const InterpreterOptions& options = {});

/// What the reference executor says of a model, which runs where that is first asked. Weights that lie in a file are given back afterwards.
class ModelReference {
 public:
  /// On so many threads. `progress` must outlive it; it is told each operator, of so many in all.
  ModelReference(Expr function, size_t operators, int threads, const Progress& progress)
      : function_(std::move(function)), operators_(operators), threads_(threads), progress_(progress) {}

  Result<const ReferenceSample*> Sample();
  /// How far rounding alone takes each output of the sample, as far as that was asked.
  Result<RoundingEffect*> Rounding();

 private:
  [[nodiscard]] InterpreterOptions Watched(const char* stage) const;

  Expr function_;
  size_t operators_;
  int threads_;
  const Progress& progress_;
  std::optional<ReferenceSample> sample_;
  std::optional<RoundingEffect> rounding_;
};

/// Random inputs, the same in every process, whatever the operators behind them need.
std::vector<Tensor> ModelInputs(const Executable& executable);

}  // namespace collage
