#include "collage/ir/call_work.h"

#include <vector>

#include "collage/ir/visit.h"

namespace collage {

Work WorkOfCall(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op || !op->work) return {};
  const Call& call = *expr->As<Call>();
  std::vector<Type> types;
  types.reserve(call.args.size());
  for (const Expr& arg : call.args) types.push_back(arg->type());
  return op->work(types, expr->type(), call.attributes);
}

double FlopsOf(const IRModule& module) {
  double flops = 0;
  for (const auto& [name, function] : module.functions()) PostOrder(function, [&](const Expr& expr) { flops += WorkOfCall(expr).flops; });
  return flops;
}

}  // namespace collage
