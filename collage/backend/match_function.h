#pragma once

#include "collage/pattern/rule.h"

namespace collage {

/// Matches capture what stays outside under names that begin so (those of a FusionRule do),
inline constexpr const char* kOutside = "outside";
/// and tuples whose fields stay outside under this one.
inline constexpr const char* kOutsideFields = "fields";

/// The matched operators as a function of what lies outside: what a backend would be asked to compile. Constants are inside.
Result<Expr> FunctionOf(const Match& match);

}  // namespace collage
