#pragma once

#include "collage/ir/module.h"

namespace collage {

struct SimplifyOptions {
  /// Also turn division by constants into multiplication where the reciprocal is rounded (one unit in the last place).
  bool approximate_reciprocals = false;
};

/// Algebra that all backends like:
///
///     add(%x, 0f), subtract(%x, 0f), multiply(%x, 1f), divide(%x, 1f), power(%x, 1f)   ->  %x
///     power(%x, 2f)                                                                    ->  multiply(%x, %x)
///     power(%x, 0.5f)                                                                  ->  sqrt(%x)
///     divide(%x, 8f)                                                                   ->  multiply(%x, 0.125f)
///     copy(%x), cast(%x) to its own dtype, concatenate((%x,)), views to their own shape ->  %x
///     a view (reshape, squeeze, expand_dims, nn.batch_flatten) of a view               ->  one reshape
///     transpose of transpose                                                           ->  one transpose, or %x
///     nn.pad with zeros, then nn.conv2d or nn.avg_pool2d; of values that are not
///     negative, then nn.max_pool2d                                                     ->  "padding" of the latter
///
/// Results are equal up to the sign of zeros. It stands before fold_batch_norm, which wants convolutions unhidden.
Result<IRModule> SimplifyExpressions(const IRModule& module, const SimplifyOptions& options = {});

}  // namespace collage
