#pragma once

#include <cmath>
#include <numbers>

#include "tests/backend/kernel_harness.h"

namespace collage::testing_backend {

/// As models from PyTorch write it out.
inline Expr GeluByTanh(const Expr& x) {
  const Expr cube = CallOp("multiply", {CallOp("power", {x, Scalar(3)}), Scalar(0.044715)});
  const Expr inner = CallOp("multiply", {CallOp("add", {x, cube}), Scalar(std::sqrt(2 / std::numbers::pi))});
  return CallOp("multiply", {CallOp("multiply", {x, Scalar(0.5)}), CallOp("add", {CallOp("tanh", {inner}), Scalar(1)})});
}

inline Expr GeluByErf(const Expr& x) {
  const Expr error = CallOp("erf", {CallOp("divide", {x, Scalar(std::numbers::sqrt2)})});
  return CallOp("multiply", {CallOp("multiply", {x, CallOp("add", {error, Scalar(1)})}), Scalar(0.5)});
}

inline Expr Swish(const Expr& x) { return CallOp("multiply", {x, CallOp("sigmoid", {x})}); }

}  // namespace collage::testing_backend
