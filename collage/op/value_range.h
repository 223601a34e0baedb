#pragma once

// Which values tensors may take, by interval arithmetic: forwards, from the values of arguments to those of results, and backwards, from
// what an operator needs for finite results (the argument of a logarithm is positive) to what its arguments should be.

#include <limits>
#include <span>
#include <vector>

#include "collage/ir/op_sequence.h"

namespace collage {

/// Every element lies in [low, high]. Unbounded on a side: nothing is known there, and elements may be NaN or infinite.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool IsBounded() const;
  /// max |x|
  [[nodiscard]] double Magnitude() const;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// Unbounded when an element is NaN or infinite; [0, 0] of an empty tensor.
ValueRange RangeOf(const Tensor& tensor);

/// Ranges of a step's outputs, from those of its inputs. Bounded only where every output is finite whatever the inputs are in
/// their ranges; an operator that this file does not know gives unbounded ones.
std::vector<ValueRange> ResultRanges(const OpSequence::Step& step, std::span<const ValueRange> inputs);

/// What inputs should lie in for the outputs to be finite and in `wanted` (unbounded: anything finite). `inputs` are the ranges known so
/// far, which are bounded for constants. Answers are advice: an unbounded one says that nothing is known to help, and what is advised
/// of two inputs together may still be wrong. ResultRanges, or a run, tells.
std::vector<ValueRange> ArgumentDemands(const OpSequence::Step& step, std::span<const ValueRange> inputs,
                                        std::span<const ValueRange> wanted);

}  // namespace collage
