#pragma once

#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage::onnx_io {

/// The shape that a Reshape gives data of shape `data`: fills in 0 ("as before", unless it `allows_zero`) and -1 ("what remains"). Errors
/// where one cannot be filled in, or where the result is too large; otherwise element counts may still differ.
Result<Shape> ResolveShape(const Shape& data, Shape shape, bool allows_zero);

}  // namespace collage::onnx_io
