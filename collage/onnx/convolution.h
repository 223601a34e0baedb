#pragma once

#include "collage/onnx/node_reader.h"

namespace collage::onnx_io {

/// The convolution of `data` (N, C, spatial...) by `weight` (M, C / group, kernel...) of one, two or three spatial dimensions, as the
/// attributes of a Conv node say, plus `bias` (M) unless it is null. Errors where shapes or attributes do not fit.
Result<Expr> Convolve(NodeReader& node, Expr data, Expr weight, const Expr& bias);

}  // namespace collage::onnx_io
