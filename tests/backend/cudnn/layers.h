#pragma once

#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "tests/backend/kernel_harness.h"

namespace collage::testing_cudnn {

using testing_backend::CallOp;
using testing_backend::FunctionOf;
using testing_backend::Input;
using testing_backend::RandomConstant;
using testing_backend::Scalar;

inline const Device kDevice{DeviceKind::kCuda, 0, 1};

inline Attributes Pads(std::vector<int64_t> padding) { return Attributes{{"padding", std::move(padding)}}; }

inline Expr Clipped(const Expr& x, double low, double high) { return CallOp("clip", {x}, {{"a_min", low}, {"a_max", high}}); }

inline Expr Swish(const Expr& x) { return CallOp("multiply", {x, CallOp("sigmoid", {x})}); }

inline Expr GeluByErf(const Expr& x) {
  const Expr error = CallOp("erf", {CallOp("divide", {x, Scalar(std::numbers::sqrt2)})});
  return CallOp("multiply", {CallOp("multiply", {x, CallOp("add", {error, Scalar(1)})}), Scalar(0.5)});
}

}  // namespace collage::testing_cudnn
