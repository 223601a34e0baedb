#pragma once

#include "collage/ir/expr.h"

namespace collage {

/// Of what a call of constants is folded into: the call's, and those of the constants that it reads, fields of tuples included.
Origin OriginOfFolded(const Expr& call);

/// Of all calls inside a function, those of function literals included: where a kernel made of it comes from.
Origin OriginOfCalls(const Expr& function);

}  // namespace collage
