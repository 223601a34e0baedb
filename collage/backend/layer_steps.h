#pragma once

// What backends share that take an operator and the steps behind it as one layer of their library.

#include <optional>
#include <string>

#include "collage/ir/op_sequence.h"

namespace collage {

/// There is one result, and all tensors have its type, which is float32 or float16, and elements. Errors begin with the backend's name.
Status CheckFloatTensors(const std::string& backend, const OpSequence& sequence);

/// The other operand of a step that takes `current` as one of two, once, and keeps its shape.
std::optional<size_t> OtherOperand(const OpSequence& sequence, const OpSequence::Step& step, size_t current);

/// A tensor of the shape of `current` that a step adds to it: a parameter or a constant.
std::optional<size_t> AddedTensor(const OpSequence& sequence, const OpSequence::Step& step, size_t current);

}  // namespace collage
