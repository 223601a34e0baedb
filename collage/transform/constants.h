#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The tensor of a constant expression, or null.
const Tensor* AsConstant(const Expr& expr);

/// True for a constant (of a computable dtype) all of whose elements equal `value`.
bool IsConstantOf(const Expr& expr, double value);

/// True for tensors of signed or unsigned integers of 8 bits.
bool IsByte(const Expr& expr);

/// True for a call of qnn.quantize or qnn.dequantize whose scale and zero point are one for all elements.
bool HasOneScale(const Expr& expr);

/// A constant of float32 or float64 from values computed in double precision.
Expr MakeFloatConstant(TensorType type, const std::vector<double>& values);

/// The values of a constant that broadcasts over `shape` along dimension `axis` alone: one a channel, or one for all of them. Nothing
/// when it is no floating point constant, varies along another dimension, or would make the result larger than `shape`.
std::optional<std::vector<double>> PerChannelValues(const Expr& expr, const Shape& shape, size_t axis);

/// The elements of a constant of float32 or float64; nothing for anything else.
std::optional<std::vector<double>> FloatValues(const Expr& expr);

}  // namespace collage
