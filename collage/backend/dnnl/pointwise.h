#pragma once

#include <optional>
#include <span>

#include "collage/backend/dnnl/chain.h"

namespace collage::dnnl_backend {

/// A pointwise step found at the head of a list of steps.
struct Pointwise {
  PostOp post_op;
  size_t steps = 1;   ///< how many of the steps it covers
  size_t result = 0;  ///< the tensor that it gives
};

/// Recognises what the first steps do to `current`: an activation, arithmetic with a scalar or with another tensor, or an
/// activation written out in several steps (GELU, swish, hard swish). Nothing when the library has no such post-operation.
std::optional<Pointwise> RecognisePointwise(const OpSequence& sequence, std::span<const OpSequence::Step> steps, size_t current);

}  // namespace collage::dnnl_backend
