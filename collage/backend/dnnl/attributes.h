#pragma once

#include <dnnl.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/backend/dnnl/chain.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {

/// Post-operations as the library wants them, and the tensors that they read.
struct Attached {
  dnnl::primitive_attr attributes;
  std::vector<Argument> arguments;
  std::optional<size_t> accumulated;
};

/// How a primitive sees the extents of an operand that is broadcast to its result; nothing when it cannot.
using OperandView = std::function<std::optional<dnnl::memory::dims>(const Shape& operand)>;
/// Ones in front up to the rank of the result.
OperandView AlignedTo(const Shape& result);
/// For a result seen as a matrix whose rows are all dimensions but the last.
OperandView FlattenedRows(const Shape& result);

/// Turns the post-operations from `first` on into attributes for a result in layout `tag`. The addition of a whole tensor that
/// is used for nothing else becomes a sum when `allow_sum`. The scratchpad is the user's.
std::optional<Attached> AttachPostOps(const Chain& chain, const OperandView& view, const std::string& tag, bool allow_sum,
                                      size_t first = 0);

}  // namespace collage::dnnl_backend
