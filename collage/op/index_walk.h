#pragma once

#include <cstdint>
#include <vector>

#include "collage/tensor/tensor_type.h"

namespace collage {

/// Walks over all index vectors of a shape in row-major order.
class IndexWalk {
 public:
  explicit IndexWalk(Shape shape) : shape_(std::move(shape)), index_(shape_.size(), 0), valid_(collage::ElementCount(shape_) > 0) {}

  /// False when there is no index (any more).
  [[nodiscard]] bool Valid() const { return valid_; }
  [[nodiscard]] const std::vector<int64_t>& index() const { return index_; }
  [[nodiscard]] int64_t operator[](size_t dimension) const { return index_[dimension]; }

  void Next() {
    for (size_t d = shape_.size(); d-- > 0;) {
      if (++index_[d] < shape_[d]) return;
      index_[d] = 0;
    }
    valid_ = false;
  }

 private:
  Shape shape_;
  std::vector<int64_t> index_;
  bool valid_;
};

/// Place of an index vector under strides.
inline int64_t PlaceOf(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t place = 0;
  for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
  return place;
}

}  // namespace collage
