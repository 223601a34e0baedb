#include "collage/tensor/tensor_type.h"

namespace collage {

int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::string ToString(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string ToString(const TensorType& type) {
  if (type.shape.empty()) return std::string(Name(type.dtype));
  return "Tensor[" + ToString(type.shape) + ", " + std::string(Name(type.dtype)) + "]";
}

}  // namespace collage
