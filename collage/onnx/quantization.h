#pragma once

#include "collage/onnx/formula.h"

namespace collage::onnx_io {

/// One value a block as one value an element of data of shape `data`: each is repeated along the axis, `block` times, and what the last
/// block has too much is cut off. Null stays null.
Expr SpreadBlocks(Formula& formula, const Expr& values, const Shape& data, int64_t axis, int64_t block);

}  // namespace collage::onnx_io
