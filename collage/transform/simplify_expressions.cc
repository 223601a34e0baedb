#include "collage/transform/simplify_expressions.h"

#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/transform/function_pass.h"
#include "collage/transform/simplify_rules.h"

namespace collage {
namespace {

// What the first rule that applies makes of a call, or null.
Result<Expr> SimplifyOnce(const Expr& expr, const SimplifyOptions& options) {
  if (!CalledOp(expr)) return Expr();
  const OpTable& ops = Operators();
  for (const auto rule : {SimplifyNeutral, SimplifyPower, SimplifyViews, SimplifyTranspose, SimplifyQuantisation, SimplifyPad}) {
    if (Expr simpler = COLLAGE_TRY(rule(expr, ops))) return simpler;
  }
  return SimplifyDivision(expr, ops, options.approximate_reciprocals);
}

}  // namespace

Result<IRModule> SimplifyExpressions(const IRModule& module, const SimplifyOptions& options) {
  const auto simplify = [&](const Expr&, const Expr& expr) -> Result<Expr> {
    Expr result = expr;
    // Ends: every rule removes a call, or replaces one by a call that no rule takes up again.
    while (Expr simpler = COLLAGE_TRY(SimplifyOnce(result, options))) result = std::move(simpler);
    return result;
  };
  return RewriteFunctions(module, [&](const Expr& function) { return Rewrite(function, simplify, MayEnter); });
}

}  // namespace collage
