#include "collage/backend/native/codegen/physical.h"

namespace collage::native {

Shape PhysicalShape(const Shape& shape, const Layout& layout) {
  if (layout.IsPlain()) return shape;
  Shape physical;
  std::vector<int64_t> block(shape.size(), 1);
  for (const Layout::Block& inner : layout.blocks()) block[inner.dimension] *= inner.extent;
  for (size_t dimension : layout.order()) physical.push_back((shape[dimension] + block[dimension] - 1) / block[dimension]);
  for (const Layout::Block& inner : layout.blocks()) physical.push_back(inner.extent);
  return physical;
}

Index ToPhysical(const Index& index, const Shape& shape, const Layout& layout) {
  if (layout.IsPlain()) return index;
  std::vector<Index> parts(shape.size());
  for (size_t dimension = 0; dimension < shape.size(); ++dimension) {
    Shape extents = {0};
    int64_t block = 1;
    for (const Layout::Block& inner : layout.blocks()) {
      if (inner.dimension != dimension) continue;
      extents.push_back(inner.extent);
      block *= inner.extent;
    }
    extents[0] = (shape[dimension] + block - 1) / block;
    parts[dimension] = extents.size() == 1 ? Index{index[dimension]} : Regroup({index[dimension]}, {extents[0] * block}, extents);
  }
  Index physical;
  for (size_t dimension : layout.order()) physical.push_back(parts[dimension][0]);
  std::vector<size_t> next(shape.size(), 1);
  for (const Layout::Block& inner : layout.blocks()) physical.push_back(parts[inner.dimension][next[inner.dimension]++]);
  return physical;
}

Index ToLogical(const Index& physical, const Shape& shape, const Layout& layout) {
  if (layout.IsPlain()) return physical;
  Index logical(shape.size());
  const auto append = [&](size_t dimension, const DimensionIndex& part, int64_t extent) {
    DimensionIndex& whole = logical[dimension];
    whole.offset = whole.offset * extent + part.offset;
    whole.digits.insert(whole.digits.end(), part.digits.begin(), part.digits.end());
  };
  for (size_t i = 0; i < layout.order().size(); ++i) append(layout.order()[i], physical[i], 1);
  for (size_t i = 0; i < layout.blocks().size(); ++i)
    append(layout.blocks()[i].dimension, physical[layout.order().size() + i], layout.blocks()[i].extent);
  return logical;
}

}  // namespace collage::native
