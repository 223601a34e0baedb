#pragma once

#include "collage/pattern/rule.h"

namespace collage::dnnl_backend {

/// Patterns capture what stays outside under names that begin so,
inline constexpr const char* kOutside = "outside";
/// and tuples whose fields stay outside under this one.
inline constexpr const char* kOutsideFields = "fields";

/// Accepts exactly what can be compiled: asks the library for a primitive of the matched operators.
Verdict CheckMatch(const Match& match);

}  // namespace collage::dnnl_backend
