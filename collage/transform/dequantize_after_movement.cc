#include "collage/transform/dequantize_after_movement.h"

#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

/// Each element of the result is one of its only argument, as it is.
bool OnlyMoves(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op || expr->As<Call>()->args.size() != 1) return false;
  return op->is_view || op->name == "transpose" || op->name == "strided_slice";
}

bool MakesNumbersAlike(const Expr& expr) {
  return IsCallOf(expr, "qnn.dequantize") && IsByte(expr->As<Call>()->args[0]) && HasOneScale(expr);
}

Result<Expr> Move(const Expr& expr) {
  if (!OnlyMoves(expr) || !MakesNumbersAlike(expr->As<Call>()->args[0])) return expr;
  const Call& movement = *expr->As<Call>();
  const Expr& numbers = movement.args[0];
  std::vector<Expr> args = numbers->As<Call>()->args;
  args[0] = COLLAGE_TRY(MakeCall(movement.callee, {args[0]}, movement.attributes, expr->origin()));
  return MakeCall(numbers->As<Call>()->callee, std::move(args), {}, numbers->origin());
}

}  // namespace

Result<IRModule> DequantizeAfterMovement(const IRModule& module) {
  const auto move = [](const Expr&, const Expr& expr) { return Move(expr); };
  return RewriteFunctions(module, [&](const Expr& function) { return Rewrite(function, move, MayEnter); });
}

}  // namespace collage
