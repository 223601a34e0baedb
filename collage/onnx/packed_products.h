#pragma once

#include "collage/onnx/graph.h"

namespace collage::onnx_io {

/// Products by weights that DequantizeLinear makes of constant integers of 2, 4 or 8 bits, in blocks along the depth, as products by
/// packed weights:
///
///     y = MatMul(a, Transpose(DequantizeLinear(w, scales, zeros)))      before
///     y = com.microsoft.MatMulNBits(a, w', scales', zeros')             after
///
/// The reader would compute such weights as float32, eight times as large. Transpose, and what changes nothing else but the shape, may
/// stand between, and Gemm may be the product. What MatMulNBits cannot say stays: blocks along the columns, that fill no whole bytes, or
/// whose scales are not float32, which rounds. Nodes and initializers that nothing reads any more are gone. Bodies stay as they are.
OnnxGraph WithPackedProducts(OnnxGraph graph);

}  // namespace collage::onnx_io
