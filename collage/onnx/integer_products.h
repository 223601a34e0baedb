#pragma once

// Products of integers as ONNX has them. It multiplies bytes (ConvInteger, MatMulInteger), of which our operators are given the numbers
// that they stand for: a cast to int32, less a zero point. Only what is written for people and other tools is written so (WriteOptions).

#include "collage/onnx/attribute.h"
#include "collage/onnx/node_writer.h"
#include "collage/support/result.h"

namespace collage::onnx_io {

/// The step is a convolution of int32 or int64; `attributes` are those of Conv. As ConvInteger where both operands are known to be bytes,
/// else as a sum of products of matrices, one for each place of the window. Errors on other types.
Status WriteIntegerConvolution(NodeWriter& writer, const OnnxAttributes& attributes);

/// The step is a product of matrices without transposed ones. True where it was written as MatMulInteger, which takes operands that are
/// known to be bytes.
bool WriteIntegerMatMul(NodeWriter& writer);

}  // namespace collage::onnx_io
