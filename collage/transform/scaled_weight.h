#pragma once

#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The nn.conv2d, nn.conv2d_transpose or nn.dense `expr` with its constant weight scaled, so that output channel c comes out
/// times scale[c]; one factor is that of all channels. Null when `expr` is no such call, when its channels do not lie along
/// `axis`, or when its weight is no constant of float32 or float64. `origin` is where the scale comes from.
Result<Expr> ScaledWeight(const Expr& expr, size_t axis, const std::vector<double>& scale, const Origin& origin);

}  // namespace collage
