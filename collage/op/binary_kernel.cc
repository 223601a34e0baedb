#include "collage/op/binary_kernel.h"

#include "collage/op/rules.h"

namespace collage {

std::vector<int64_t> BroadcastStrides(const Shape& shape, const Shape& result) {
  const std::vector<int64_t> own = RowMajorStrides(shape);
  std::vector<int64_t> strides(result.size(), 0);
  const size_t offset = result.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) strides[offset + i] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

void ForEachRow(const Shape& shape, std::vector<int64_t> strides_a, std::vector<int64_t> strides_b, const RowFunction& row) {
  if (ElementCount(shape) == 0) return;
  // Dimensions that both operands walk in step are joined, so that equal shapes are one row.
  Shape extents = shape;
  while (extents.size() > 1) {
    const size_t last = extents.size() - 1;
    if (strides_a[last - 1] != strides_a[last] * extents[last] || strides_b[last - 1] != strides_b[last] * extents[last]) break;
    extents[last - 1] *= extents[last];
    strides_a[last - 1] = strides_a[last];
    strides_b[last - 1] = strides_b[last];
    extents.pop_back();
  }
  if (extents.empty()) return row(0, 0, 0, 1, 0, 0);
  const size_t last = extents.size() - 1;
  const int64_t count = extents[last];
  std::vector<int64_t> index(last, 0);
  int64_t a = 0;
  int64_t b = 0;
  const int64_t rows = ElementCount(extents) / count;
  for (int64_t r = 0; r < rows; ++r) {
    row(r * count, a, b, count, strides_a[last], strides_b[last]);
    for (size_t d = last; d-- > 0;) {
      a += strides_a[d];
      b += strides_b[d];
      if (++index[d] < extents[d]) break;
      a -= strides_a[d] * extents[d];
      b -= strides_b[d] * extents[d];
      index[d] = 0;
    }
  }
}

std::vector<int64_t> AlongAxisStrides(const Shape& data, const Attributes& attributes) {
  std::vector<int64_t> strides(data.size(), 0);
  strides[AxisAttribute(attributes, "axis", 1, data.size())] = 1;
  return strides;
}

}  // namespace collage
