#pragma once

#include <vector>

#include "collage/tensor/layout.h"

namespace collage {

/// Position (in elements) of a logical index in a layout, straight from the definition of the tag: blocks are peeled off innermost
/// first, what remains of each dimension is numbered in the outer order.
inline size_t PhysicalOffset(const TensorType& type, const Layout& layout, std::vector<int64_t> index) {
  std::vector<size_t> order = layout.order();
  if (order.empty()) {
    for (size_t i = 0; i < type.shape.size(); ++i) order.push_back(i);
  }
  std::vector<int64_t> extent = type.shape;
  size_t offset = 0;
  size_t stride = 1;
  for (size_t i = layout.blocks().size(); i-- > 0;) {
    const Layout::Block& block = layout.blocks()[i];
    offset += static_cast<size_t>(index[block.dimension] % block.extent) * stride;
    index[block.dimension] /= block.extent;
    extent[block.dimension] = (extent[block.dimension] + block.extent - 1) / block.extent;
    stride *= static_cast<size_t>(block.extent);
  }
  for (size_t i = order.size(); i-- > 0;) {
    offset += static_cast<size_t>(index[order[i]]) * stride;
    stride *= static_cast<size_t>(extent[order[i]]);
  }
  return offset;
}

/// Calls `visit(index)` for every logical index.
template <class Visitor>
void ForEachIndex(const Shape& shape, Visitor&& visit) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t count = ElementCount(shape); count > 0; --count) {
    visit(index);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace collage
