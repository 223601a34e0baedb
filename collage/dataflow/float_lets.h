#pragma once

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage {

/// A let orders more than data does: when a partition gives the value of %a and takes %b, which is bound in the body of %a's let,
/// there is no place for it although no value depends on itself. Then %b gives way to its value, which is computed once as before:
///
/// before:  %p = partition(%b); let %a = %p.0; let %b = exp(%x); add(%p.1, %a)
/// after:   %0 = exp(%x); %p = partition(%0); let %a = %p.0; add(%p.1, %a)
///
/// Variables that are visible wherever they are used keep their lets. Errors where only a recursive function stands in the way.
Result<Expr> FloatLets(const Expr& function);

}  // namespace collage
