#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// A call that does nothing but put tensors one after another along an axis, or cut one tensor along an axis.
struct AxisParts {
  bool is_join = false;  ///< concatenate: the parts are the arguments; else split or strided_slice: they are the results
  size_t axis = 0;
  TensorType whole;
  std::vector<int64_t> begins;   ///< of each part along the axis of the whole
  std::vector<int64_t> extents;  ///< of each part
};

/// Of a concatenate, a split, or a strided_slice that leaves elements out along one axis only and goes there by steps of 1. Nothing for
/// other calls, and where a part is the whole or has no elements.
std::optional<AxisParts> PartsAlongAxis(const Call& call, const Type& result);

}  // namespace collage
