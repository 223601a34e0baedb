#include "collage/tensor/slice_offset.h"

#include <vector>

namespace collage {

std::optional<size_t> SliceOffset(const TensorType& whole, const Layout& layout, size_t axis, int64_t begin, int64_t extent) {
  std::vector<int64_t> block(whole.shape.size(), 1);
  for (const Layout::Block& inner : layout.blocks()) block[inner.dimension] *= inner.extent;
  const bool is_last = begin + extent == whole.shape[axis];
  if (begin % block[axis] != 0 || (!is_last && extent % block[axis] != 0)) return std::nullopt;
  for (size_t i = 0; i < whole.shape.size(); ++i) {
    const size_t dimension = layout.order().empty() ? i : layout.order()[i];
    if (dimension == axis) break;
    if (whole.shape[dimension] > block[dimension]) return std::nullopt;
  }
  TensorType before = whole;
  before.shape[axis] = begin;
  return PhysicalByteCount(before, layout);
}

}  // namespace collage
