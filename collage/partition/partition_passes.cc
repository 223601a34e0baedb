#include "collage/ir/visit.h"
#include "collage/partition/classic_flow.h"

namespace collage {
namespace {

std::string TextOf(const Attributes& attributes, const char* name) {
  const AttributeValue* value = attributes.Find(name);
  return value && value->AsString() ? *value->AsString() : std::string();
}

}  // namespace

Result<IRModule> RunPartitionPasses(const IRModule& module, const std::vector<NamedRules>& backends) {
  const auto rewrite = [&](const Expr&, const Expr& expr) -> Result<Expr> {
    const Function* function = expr->As<Function>();
    if (!function || !function->attributes.Has("Primitive")) return expr;
    const std::string compiler = TextOf(function->attributes, "Compiler");
    for (const NamedRules& backend : backends) {
      if (backend.name != compiler || !backend.rules->on_partition) continue;
      const std::string place = "backend " + compiler + ", partition " + TextOf(function->attributes, "global_symbol");
      Result<Expr> changed = backend.rules->on_partition(expr);
      if (!changed) return Fail(changed.error().At(place));
      if (!((*changed)->type() == expr->type())) {
        return Fail(place + ": its pass gave a function of type " + ToString((*changed)->type()) + ", expected " + ToString(expr->type()));
      }
      return changed;
    }
    return expr;
  };
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) {
    const auto enter = [&function = function](const Expr& expr) { return expr == function || !IsAtomicFunction(expr); };
    result.Set(name, COLLAGE_TRY(Rewrite(function, rewrite, enter)));
  }
  return result;
}

}  // namespace collage
