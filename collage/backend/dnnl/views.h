#pragma once

#include <dnnl.hpp>
#include <optional>
#include <span>

#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {

/// A row-major tensor seen with other extents: what reshape and transpose make of it without moving an element.
struct StridedView {
  size_t value;
  dnnl::memory::dims dims;
  dnnl::memory::dims strides;
};

/// True for the steps that a view is made of.
bool IsViewStep(const OpSequence::Step& step);

/// `value` as a view of the tensor from which `steps` (reshape and transpose) make it; of itself when they do not. Nothing
/// when elements would have to move.
std::optional<StridedView> ViewBehind(const OpSequence& sequence, std::span<const OpSequence::Step> steps, size_t value);
/// `value` as a view of the tensor that `steps`, a chain that starts at it, make of it: where its elements are stored in there.
std::optional<StridedView> ViewAhead(const OpSequence& sequence, std::span<const OpSequence::Step> steps, size_t value);

}  // namespace collage::dnnl_backend
