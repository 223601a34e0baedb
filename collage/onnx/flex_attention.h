#pragma once

#include "collage/onnx/node_reader.h"

namespace collage::onnx_io {

/// Attention over (batch, heads, length, size) with bodies that change the scores before the softmax and the probabilities behind it.
Result<std::vector<Expr>> ReadFlexAttention(NodeReader& node);

}  // namespace collage::onnx_io
