#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Makes batch normalisation with constant statistics, and multiplication and addition of constants for each channel (the
/// "scale" layers of old models), part of the convolution before them:
///
///     %0 = nn.conv2d(%x, W);  %1 = nn.bias_add(%0, b);  nn.batch_norm(%1, gamma, beta, mean, var).0       before
///     %0 = nn.conv2d(%x, W');  nn.bias_add(%0, b')                                                         after
///
/// Also after nn.conv2d_transpose and nn.dense. A normalisation that stands in front of an unpadded nn.conv2d, an nn.dense or an
/// nn.matmul, and that nothing else reads, goes into the weights behind it, in front of a product through a flattening, too. Nothing is
/// folded into a convolution whose weight is no constant or whose value something else uses as well; a normalisation that stays becomes
/// multiply and add of constants of shape (C, 1, 1), which every backend fuses. A lone addition stays as it is. Constants are computed in
/// double precision and rounded once.
///
/// It stands after simplify_expressions, which takes away what hides a convolution, and before the common subexpressions.
Result<IRModule> FoldBatchNorm(const IRModule& module);

}  // namespace collage
