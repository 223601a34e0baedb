#pragma once

#include "collage/ir/expr.h"

namespace collage {

/// Marks a function of the module that is straight-line code, in a module whose other functions only hold control flow.
inline constexpr const char* kBlockAttribute = "Block";

inline bool IsBlock(const Expr& function) {
  const Function* literal = function->As<Function>();
  return literal && literal->attributes.Has(kBlockAttribute);
}

}  // namespace collage
