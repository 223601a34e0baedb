#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collage/tensor/dtype.h"

namespace collage {

/// Extents, outermost first; empty for a scalar. Every extent is known and at least zero: symbolic dimensions are
/// fixed when a model is read.
using Shape = std::vector<int64_t>;

/// Product of the extents; one for a scalar.
int64_t ElementCount(const Shape& shape);
/// Row-major strides in elements.
std::vector<int64_t> RowMajorStrides(const Shape& shape);
/// "(1, 3, 224, 224)"; a one-dimensional shape is "(3,)"; a scalar "()".
std::string ToString(const Shape& shape);

struct TensorType {
  Shape shape;
  DType dtype = DType::kFloat32;

  [[nodiscard]] int64_t ElementCount() const { return collage::ElementCount(shape); }
  [[nodiscard]] size_t ByteCount() const { return static_cast<size_t>(ElementCount()) * ByteSize(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// Relay's form: "Tensor[(1, 10), float32]"; a scalar is its bare dtype, "float32".
std::string ToString(const TensorType& type);

}  // namespace collage
