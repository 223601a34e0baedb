#pragma once

#include <functional>

#include "collage/ir/module.h"

namespace collage {

/// False for Primitive and Composite function literals: they are kernels already, and passes leave their insides alone.
bool MayEnter(const Expr& expr);

/// Applies `rewrite` to every function of the module that may be entered. The result keeps each function's type.
Result<IRModule> RewriteFunctions(const IRModule& module, const std::function<Result<Expr>(const Expr& function)>& rewrite);

}  // namespace collage
