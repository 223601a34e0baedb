#pragma once

#include <functional>

#include "collage/ir/op_sequence.h"
#include "collage/pattern/rule.h"

namespace collage {

/// Matches capture what stays outside under names that begin so (those of a FusionRule do),
inline constexpr const char* kOutside = "outside";
/// and tuples whose fields stay outside under this one.
inline constexpr const char* kOutsideFields = "fields";

/// The matched operators as a function of what lies outside: what a backend would be asked to compile. Constants are inside.
Result<Expr> FunctionOf(const Match& match);

/// Accepts where `can_run` finds nothing against that function; else its reason.
Verdict VerdictOn(const Match& match, const std::function<Status(const Function& function)>& can_run);
/// The same of the function's operators in their order.
Verdict VerdictOnSequence(const Match& match, const std::function<Status(const OpSequence& sequence)>& can_run);

}  // namespace collage
