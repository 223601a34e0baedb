#pragma once

#include <string>

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage {

/// Marks a function of the module that cannot run: a call of it fails, with the text of this attribute. Its body is a call of itself, which
/// may have any type and, where nobody heeds the mark, never ends.
inline constexpr const char* kFailureAttribute = "Failure";

/// The text; empty for a function that may run.
std::string FailureOf(const Function& function);

/// Such a function without parameters, for the module under this name. Errors of types that no function gives.
Result<Expr> MakeFailure(const std::string& name, const Type& result, const std::string& text);
/// A call of it.
Result<Expr> CallFailure(const std::string& name, const Type& result);

}  // namespace collage
