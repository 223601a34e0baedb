#pragma once

#include <cstdint>
#include <optional>

#include "collage/tensor/dtype.h"

namespace collage::onnx_io {

/// The element type of a TensorProto.DataType number, or nothing for strings and complex numbers.
std::optional<DType> DTypeOfOnnx(int64_t data_type);
/// The TensorProto.DataType number.
int64_t OnnxDataType(DType dtype);

}  // namespace collage::onnx_io
