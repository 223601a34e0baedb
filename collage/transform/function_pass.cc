#include "collage/transform/function_pass.h"

namespace collage {

bool MayEnter(const Expr& expr) {
  const Function* function = expr->As<Function>();
  return !function || !(function->attributes.Has("Primitive") || function->attributes.Has("Composite"));
}

Result<IRModule> RewriteFunctions(const IRModule& module, const std::function<Result<Expr>(const Expr& function)>& rewrite) {
  IRModule result;
  for (const auto& [name, function] : module.functions()) {
    if (!MayEnter(function)) {
      result.Set(name, function);
      continue;
    }
    Result<Expr> rewritten = rewrite(function);
    if (!rewritten) return Fail(std::move(rewritten).error().At("@" + name));
    result.Set(name, *std::move(rewritten));
  }
  return result;
}

}  // namespace collage
