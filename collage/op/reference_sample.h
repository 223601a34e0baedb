#pragma once

// Inputs on which a function can be compared, and what it gives there. Random numbers in [-1, 1] will not do for all: a logarithm is NaN
// for half of them, and NaN says nothing about a kernel and may take another time than a number. Which values a parameter should have
// follows from the operators behind it (value_range.h). Where intervals cannot show that every value is finite, some ways to choose inputs
// are tried on the reference executor, and the first for which all are is taken.

#include <cstdint>
#include <optional>
#include <vector>

#include "collage/op/interpreter.h"
#include "collage/op/value_range.h"
#include "collage/tensor/agreement.h"

namespace collage {

/// From which parameters are drawn of which no operator asks for more.
struct InputRanges {
  ValueRange numbers;
  ValueRange integers;
};

struct ReferenceSample {
  std::vector<Tensor> inputs;    ///< one a tensor of the parameters, tuples flattened
  std::vector<Tensor> expected;  ///< by the reference executor
  /// Calls of operators that saw or gave no finite value, in the order in which they ran. What they compute has not been compared, whatever
  /// the outputs are.
  std::vector<Expr> unreached;
  double tolerance = kTolerance;  ///< RoundingTolerance of the function
  /// QuantisationSteps of the outputs, where the function has no control flow.
  std::vector<double> steps = {};
  InputRanges ranges = {};  ///< from which the inputs were drawn: of those that were tried, what suits the function best

  /// Of one output with what it should be, in steps where it has some.
  [[nodiscard]] Agreement CompareOutput(size_t output, const Tensor& found) const {
    return Compare(found, expected[output], output < steps.size() ? steps[output] : 0);
  }
};

/// By how much the function's own rounding explains that results differ: Tolerance of the coarsest type that a value is rounded to, or that
/// of its permit, which asks for no less than what is asked of float32. A value that an operator makes of a wider type is rounded, and so
/// is one of a narrow type that it computes: a sum in another order may be rounded the other way. What only moves such values is exact.
double RoundingTolerance(const Expr& function);

/// Inputs and outputs of a function, the same for equal functions and seeds in every process. Floating point inputs are in [-1, 1] where
/// nothing else is needed, or all over the range of a quantiser that reads them; indices are in range, other integers in {0, ..., 7}, or
/// zeros and ones where those make no finite values. Errors of the reference executor.
Result<ReferenceSample> SampleReference(const Expr& function, uint64_t seed, const InterpreterOptions& options = {});

/// The inputs alone: they are found without running the function wherever that is possible. `known` are ranges that suit it, as those of
/// a model suit what computes a part of it from the model's own inputs; then it never runs.
Result<std::vector<Tensor>> SuitableInputs(const Expr& function, uint64_t seed, const std::optional<InputRanges>& known = {});

}  // namespace collage
