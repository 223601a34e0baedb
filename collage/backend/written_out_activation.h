#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "collage/ir/op_sequence.h"

namespace collage {

/// Functions of one number that models write out in several operators.
enum class ActivationKind { kGeluByErf, kGeluByTanh, kSwish, kHardSwish, kSquare };

/// An activation at the head of a list of steps.
struct WrittenOutActivation {
  ActivationKind activation;
  size_t steps;   ///< how many of the steps it covers
  size_t result;  ///< the tensor that it gives
};

/// Recognises an activation of `current` that the first steps write out, in whatever order: by the values that they compute. Nothing where
/// `current` is read behind them.
std::optional<WrittenOutActivation> RecogniseActivation(const OpSequence& sequence, std::span<const OpSequence::Step> steps,
                                                        size_t current);

/// The value of a constant of one element.
std::optional<double> ScalarOf(const OpSequence& sequence, size_t value);
/// Does one of the steps take this tensor?
bool IsReadIn(std::span<const OpSequence::Step> steps, size_t value);

}  // namespace collage
