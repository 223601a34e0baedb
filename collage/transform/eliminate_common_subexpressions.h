#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Merges calls of operators, tuples and projections that compute the same from the same; arguments of commutative operators
/// may be swapped, and equal constants of up to 64 elements count as the same.
///
///     add(exp(%x), exp(%x))                                  before
///     %0 = exp(%x);  add(%0, %0)                             after
///
/// One expression replaces another only where it is computed anyway: two branches of an if keep theirs, since merged it
/// would run before the if. Calls of functions are not merged: they may not end, and partitions are counted by calls.
Result<IRModule> EliminateCommonSubexpressions(const IRModule& module);

}  // namespace collage
