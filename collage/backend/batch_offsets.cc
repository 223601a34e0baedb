#include "collage/backend/batch_offsets.h"

namespace collage {

std::vector<int64_t> BatchOffsets(const Shape& shape, const Shape& batches) {
  const Shape own(shape.begin(), shape.end() - 2);
  const std::vector<int64_t> strides = RowMajorStrides(own);
  const int64_t matrix = shape[shape.size() - 2] * shape.back();
  std::vector<int64_t> offsets(static_cast<size_t>(ElementCount(batches)), 0);
  for (size_t batch = 0; batch < offsets.size(); ++batch) {
    auto rest = static_cast<int64_t>(batch);
    for (size_t i = batches.size(); i-- > 0; rest /= batches[i]) {
      if (i + own.size() < batches.size()) continue;
      const size_t dimension = i + own.size() - batches.size();
      if (own[dimension] > 1) offsets[batch] += rest % batches[i] * strides[dimension] * matrix;
    }
  }
  return offsets;
}

}  // namespace collage
