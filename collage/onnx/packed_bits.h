#pragma once

#include "collage/onnx/formula.h"

namespace collage::onnx_io {

/// Rows of bytes, (rows, n), as numbers of 2, 4 or 8 bits, the lowest bits of a byte first, in another shape of as many rows.
/// The result has the dtype of the formula.
Expr Unpacked(NodeReader& node, Formula& formula, const Expr& bytes, int64_t bits, const Shape& shape);

}  // namespace collage::onnx_io
