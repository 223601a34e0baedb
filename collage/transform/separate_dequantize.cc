#include "collage/transform/separate_dequantize.h"

#include "collage/ir/visit.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

/// A number is made of each integer: by dequantising, or as 32 bits, less a constant.
bool MakesNumbers(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return false;
  const Call& call = *expr->As<Call>();
  if (op->name == "qnn.dequantize") return IsByte(call.args[0]);
  if (op->name == "cast") return IsByte(call.args[0]) && expr->type().AsTensor()->dtype == DType::kInt32;
  return op->name == "subtract" && MakesNumbers(call.args[0]) && !IsCallOf(call.args[0], "subtract") && AsConstant(call.args[1]);
}

Result<Expr> CopyOf(const Expr& expr) {
  const Call& call = *expr->As<Call>();
  std::vector<Expr> args = call.args;
  if (MakesNumbers(args[0])) args[0] = COLLAGE_TRY(CopyOf(args[0]));
  return MakeCall(call.callee, std::move(args), call.attributes, expr->origin());
}

Result<Expr> Separate(const Expr& function) {
  const std::unordered_map<const ExprNode*, size_t> uses = CountUses(function);
  const auto separate = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
    const bool takes_values = expr->As<Call>() || expr->As<Tuple>();
    if (!takes_values || MakesNumbers(expr)) return expr;
    const std::vector<Expr> before = Children(original);
    std::vector<Expr> children = Children(expr);
    for (size_t i = 0; i < children.size(); ++i) {
      if (MakesNumbers(children[i]) && uses.at(before[i].get()) > 1) children[i] = COLLAGE_TRY(CopyOf(children[i]));
    }
    return WithChildren(expr, std::move(children));
  };
  return Rewrite(function, separate, MayEnter);
}

}  // namespace

Result<IRModule> SeparateDequantize(const IRModule& module) { return RewriteFunctions(module, Separate); }

}  // namespace collage
