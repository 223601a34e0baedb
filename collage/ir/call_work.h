#pragma once

#include "collage/ir/module.h"
#include "collage/ir/op_def.h"

namespace collage {

/// Work of a call with checked types; none where `expr` calls no operator, or one that states none.
Work WorkOfCall(const Expr& expr);

/// Floating point operations of all calls in all functions, each counted once.
double FlopsOf(const IRModule& module);

}  // namespace collage
