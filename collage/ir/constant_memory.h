#pragma once

#include <cstddef>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Bytes of weights from which on their memory is looked after: libraries and compilers take about as much without any.
inline constexpr size_t kLargeWeights = size_t{128} << 20;

/// The constants of an expression, each memory once.
std::vector<Tensor> ConstantTensors(const Expr& expr);
/// Their bytes.
size_t ConstantBytes(const Expr& expr);
/// Gives back their memory as far as files hold it (support/mappings.h).
void GiveBackConstants(const Expr& expr);

}  // namespace collage
