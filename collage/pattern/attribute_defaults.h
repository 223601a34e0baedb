#pragma once

#include <string>

#include "collage/ir/expr.h"

namespace collage {

/// The attribute of a call or function. Relay's text may leave out what has its default; the defaults of the operators that
/// queries use are known here. None when there is no such attribute.
AttributeValue AttributeOrDefault(const Expr& expr, const std::string& name);

/// Equal values; whole numbers equal floating point ones, and a number a list of that one number.
bool SameValue(const AttributeValue& a, const AttributeValue& b);

}  // namespace collage
