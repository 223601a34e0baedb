#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "collage/tensor/tensor.h"

namespace collage {

/// A tensor seen as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;

  AxisView(const Shape& shape, size_t axis) : extent(shape[axis]) {
    for (size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  }
};

/// Calls `visit(T{})` with the element type of a tensor that a type rule has required to be float32 or float64.
template <class Visitor>
void VisitFloatType(DType dtype, Visitor&& visit) {
  COLLAGE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64);
  dtype == DType::kFloat32 ? visit(float{}) : visit(double{});
}

/// As above, for float32, float64 or an integer type.
template <class Visitor>
void VisitNumberType(DType dtype, Visitor&& visit) {
  VisitElementType(dtype, [&](auto element) {
    if constexpr (!std::is_same_v<decltype(element), bool>) visit(element);
  });
}

}  // namespace collage
