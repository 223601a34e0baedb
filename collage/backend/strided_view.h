#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collage/ir/op_sequence.h"

namespace collage {

/// Elements of a row-major tensor seen with other extents: what operators make of it without moving one.
struct StridedView {
  size_t value;  ///< the tensor: index into the sequence's values
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  ///< elements, none negative
  int64_t offset = 0;            ///< of the first element, elements
};

/// True for the operators that a view can be made of: what reshapes, transposes, splits and slices.
bool MayBeView(const OpDef& op);

/// A step on the way to a view, and which of its outputs lies on that way.
struct StepTaken {
  const OpSequence::Step* step;
  size_t output;
};
/// What `steps`, each of which takes the output of the one before it, make of `value`. Those that are no views are taken to leave
/// every element at its place. Nothing when elements would have to move.
std::optional<StridedView> ViewOf(const OpSequence& sequence, size_t value, std::span<const StepTaken> steps);
/// `value` as a view of the tensor from which view steps among `steps` make it; of itself when they do not.
std::optional<StridedView> ViewBehind(const OpSequence& sequence, std::span<const OpSequence::Step> steps, size_t value);
/// `value` as a view of the tensor that `steps`, a chain of reshapes and transposes that starts at it, make of it: where its elements are
/// stored in there.
std::optional<StridedView> ViewAhead(const OpSequence& sequence, std::span<const OpSequence::Step> steps, size_t value);

}  // namespace collage
