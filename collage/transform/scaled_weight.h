#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The nn.conv2d, nn.conv2d_transpose or nn.dense `expr` with its constant weight scaled, so that output channel c comes out
/// times scale[c]; one factor is that of all channels. Null when `expr` is no such call, when its channels do not lie along
/// `axis`, or when its weight is no constant of float32 or float64. `origin` is where the scale comes from.
Result<Expr> ScaledWeight(const Expr& expr, size_t axis, const std::vector<double>& scale, const Origin& origin);

/// `expr`, an nn.conv2d, nn.dense or nn.matmul, of what its first argument is computed from by data * scale + shift, one of each a channel
/// along `axis` of the data: the scales in its constant weight, and what the shifts add to each output channel. Null where channels are
/// not what the weight is summed over, where padding lies between shift and weight, or where the weight is no constant of
/// float32 or float64.
struct AffineInWeight {
  Expr call;                  ///< of `data`
  std::vector<double> shift;  ///< one an output channel
  size_t axis;                ///< of output channels
};
Result<std::optional<AffineInWeight>> WithAffineInput(const Expr& expr, const Expr& data, size_t axis, const std::vector<double>& scale,
                                                      const std::vector<double>& shift, const Origin& origin);

}  // namespace collage
