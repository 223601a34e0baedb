#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// What the interpreter must know of a function literal before it runs it.
struct FunctionUses {
  /// How often each expression of the body is used by others there (the body itself once more, as the result). A function
  /// literal inside counts as one user of each variable that it captures. Both branches of an If count, though one runs.
  std::unordered_map<const ExprNode*, uint32_t> counts;
  /// Variables that the body uses but neither the parameters nor a let inside bind, in order of first use.
  std::vector<Expr> captured;
};

/// Analyses each function once. Nested function literals are analysed first, without recursion.
class FunctionUsesCache {
 public:
  const FunctionUses& Of(const Expr& function);

 private:
  std::unordered_map<const ExprNode*, FunctionUses> cache_;
};

/// Calls `visit` with each expression that has to be evaluated (or may have to be) for this one, in evaluation order: not
/// operators, variables that are bound here, nor what is inside a function literal.
void ForEachOperand(const Expr& expr, const std::function<void(const Expr&)>& visit);

}  // namespace collage
