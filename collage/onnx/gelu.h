#pragma once

#include "collage/onnx/formula.h"

namespace collage::onnx_io {

/// x / 2 * (1 + erf(x / sqrt(2))); element-wise, of any shape.
Expr Gelu(Formula& formula, const Expr& x);
/// Its approximation by tanh (Hendrycks and Gimpel 2016).
Expr FastGelu(Formula& formula, const Expr& x);

}  // namespace collage::onnx_io
