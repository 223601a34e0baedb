#pragma once

#include <openvino/core/type/element_type.hpp>
#include <optional>

#include "collage/tensor/dtype.h"

namespace collage::openvino {

/// Nothing for types that the CPU plugin computes in another precision than theirs (float64, 16-bit floats).
inline std::optional<ov::element::Type> ToElementType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ov::element::f32;
    case DType::kInt32:
      return ov::element::i32;
    case DType::kInt64:
      return ov::element::i64;
    case DType::kInt8:
      return ov::element::i8;
    case DType::kUInt8:
      return ov::element::u8;
    case DType::kBool:
      return ov::element::boolean;
    default:
      return std::nullopt;
  }
}

}  // namespace collage::openvino
