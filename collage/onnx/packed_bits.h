#pragma once

#include "collage/onnx/formula.h"

namespace collage::onnx_io {

/// Which bits of a byte are the first of several numbers in it.
enum class First { kLow, kHigh };

/// Rows of bytes, (rows, n), as numbers of so many bits, in another shape of as many rows. What the last byte of a row has too much is cut
/// off. The result has the dtype of the formula.
Result<Expr> Unpacked(NodeReader& node, Formula& formula, const Expr& bytes, int64_t bits, const Shape& shape, First first = First::kLow);

}  // namespace collage::onnx_io
