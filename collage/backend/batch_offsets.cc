#include "collage/backend/batch_offsets.h"

namespace collage {

std::vector<int64_t> BatchOffsets(const Shape& shape, const Shape& batches) { return BatchOffsets(shape, RowMajorStrides(shape), batches); }

std::vector<int64_t> BatchOffsets(const Shape& shape, const std::vector<int64_t>& strides, const Shape& batches) {
  const size_t own = shape.size() - 2;
  std::vector<int64_t> offsets(static_cast<size_t>(ElementCount(batches)), 0);
  for (size_t batch = 0; batch < offsets.size(); ++batch) {
    auto rest = static_cast<int64_t>(batch);
    for (size_t i = batches.size(); i-- > 0; rest /= batches[i]) {
      if (i + own < batches.size()) continue;
      const size_t dimension = i + own - batches.size();
      if (shape[dimension] > 1) offsets[batch] += rest % batches[i] * strides[dimension];
    }
  }
  return offsets;
}

}  // namespace collage
