#pragma once

#include "collage/pattern/rule.h"

namespace collage::dnnl_backend {

/// Accepts exactly what can be compiled: asks the library for a primitive of the matched operators.
Verdict CheckMatch(const Match& match);

}  // namespace collage::dnnl_backend
