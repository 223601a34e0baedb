#pragma once

#include "collage/ir/block.h"
#include "collage/ir/module.h"

namespace collage {

/// True where OutlineBlocks would leave the module as it is: nothing in @main but operators, kernels and what binds them together.
bool IsStraightLine(const IRModule& module);

/// Takes control flow and computing apart. Afterwards every function of the module is either a block, which computes and has no
/// control flow, or consists of calls of functions, ifs whose branches are calls, tuples and projections. A module that is straight-line
/// stays as it is; functions that @main does not reach disappear.
///
///   def @main(%x, %c) { if (%c) { nn.relu(%x) } else { %x } }
///
/// becomes
///
///   def @main(%x, %c) { if (%c) { @main_then(%x) } else { @main_else(%x) } }
///   def @main_then(%captured0) { @block(%captured0) }
///   def @main_else(%captured0) { %captured0 }
///   def @block(%p0, Block=1) { nn.relu(%p0) }
///
/// What lies between two steps of control flow is one block: a plan may then put whatever it likes of it into one partition, and none
/// crosses a branch or a call. An expression belongs to the branch that alone uses it, and is computed as early as what it needs is there.
/// A recursion that calls itself last still does so. Errors: closures, and functions as values, which a plan has no place for.
///
/// It runs last: behind it, passes see less of the program at once.
Result<IRModule> OutlineBlocks(const IRModule& module);

}  // namespace collage
