#pragma once

#include "collage/ir/module.h"

namespace collage {

/// Removes lets whose variable nothing that is needed uses, and functions that @main does not reach. (What is not bound by let
/// needs no removal: an expression exists because something refers to it.)
///
///     let %y = exp(%x);  let %z = exp(%y);  %x              before
///     %x                                                     after
///
/// The last of the safe passes: the others leave unused values behind.
Result<IRModule> EliminateDeadCode(const IRModule& module);

}  // namespace collage
