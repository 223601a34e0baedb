#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/op/interpreter.h"
#include "collage/op/reference_sample.h"

namespace collage {

/// Runs a function or a module on the reference executor.
using RunReference = std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& inputs, const InterpreterOptions&)>;

/// Whether what one operator of a function rounds may reach another that does more than name it anew: of a single one no result is farther
/// from the reference than a right kernel's may be.
bool CompoundsRounding(const Expr& function);

/// How far rounding alone takes each output of a function from the sample's, by Monte Carlo arithmetic (Parker, "Monte Carlo Arithmetic",
/// 1997): the reference executor runs again, and each result of an operator is off by as much as a right kernel may be. Errors are the same
/// for equal functions and seeds in every process. Where a function amplifies rounding, or decides between nearly equal numbers (the
/// largest of some, a box above a threshold), this is more than any tolerance of a single kernel.
class RoundingEffect {
 public:
  /// Nothing runs yet. `sample` must outlive it.
  RoundingEffect(RunReference run, const ReferenceSample& sample, uint64_t seed, InterpreterOptions options = {});

  /// One run more; false where there were all that are worth it. Errors of the reference executor.
  Result<bool> RunAgain();
  /// Of the runs so far, by output.
  [[nodiscard]] const std::vector<Agreement>& farthest() const { return farthest_; }

 private:
  RunReference run_;
  const ReferenceSample& sample_;
  uint64_t seed_;
  InterpreterOptions options_;
  std::vector<Agreement> farthest_;
  int runs_ = 0;
};

}  // namespace collage
