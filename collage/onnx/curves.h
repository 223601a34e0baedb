#pragma once

#include "collage/onnx/formula.h"

namespace collage::onnx_io {

// Functions of each element, of any shape.

/// x / 2 * (1 + erf(x / sqrt(2))).
Expr Gelu(Formula& formula, const Expr& x);
/// Its approximation by tanh (Hendrycks and Gimpel 2016).
Expr FastGelu(Formula& formula, const Expr& x);
/// x * sigmoid(x).
Expr Silu(Formula& formula, const Expr& x);
/// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
Expr Softplus(Formula& formula, const Expr& x);

}  // namespace collage::onnx_io
