#include <algorithm>

#include "collage/ir/visit.h"
#include "collage/partition/cover.h"

namespace collage {
namespace {

const Function* CalledLiteral(const Expr& expr) {
  const Call* call = expr->As<Call>();
  return call ? call->callee->As<Function>() : nullptr;
}

Result<Expr> InlineCall(const Call& call) {
  const Function& function = *call.callee->As<Function>();
  std::unordered_map<const ExprNode*, Expr> arguments;
  for (size_t i = 0; i < call.args.size(); ++i) arguments[function.parameters[i].get()] = call.args[i];
  return Substitute(function.body, arguments);
}

/// A field of a tuple that is built on the spot is the field.
Expr SimplifyProjection(const Expr& expr) {
  const TupleGetItem* item = expr->As<TupleGetItem>();
  const Tuple* tuple = item ? item->tuple->As<Tuple>() : nullptr;
  return tuple ? tuple->fields[item->index] : expr;
}

}  // namespace

Result<IRModule> InlinePartitions(const IRModule& module, const std::vector<std::string>& compilers) {
  const auto is_wanted = [&](const Expr& expr) {
    const Function* function = expr->As<Function>();
    if (!function || !function->attributes.Has("Primitive")) return false;
    const AttributeValue* compiler = function->attributes.Find("Compiler");
    const std::string name = compiler && compiler->AsString() ? *compiler->AsString() : "native";
    return compilers.empty() || std::find(compilers.begin(), compilers.end(), name) != compilers.end();
  };
  const auto inline_composite = [](const Expr&, const Expr& expr) -> Result<Expr> {
    const Function* literal = CalledLiteral(expr);
    if (literal && literal->attributes.Has("Composite")) return InlineCall(*expr->As<Call>());
    return SimplifyProjection(expr);
  };
  const auto inline_partition = [&](const Expr&, const Expr& expr) -> Result<Expr> {
    if (!CalledLiteral(expr) || !is_wanted(expr->As<Call>()->callee)) return SimplifyProjection(expr);
    const Expr flat = COLLAGE_TRY(InlineCall(*expr->As<Call>()));
    return flat;
  };
  IRModule result;
  for (const auto& [name, function] : module.functions()) {
    // Composites first, but only those inside the partitions that go.
    Expr opened = COLLAGE_TRY(Rewrite(
        function,
        [&](const Expr&, const Expr& expr) -> Result<Expr> {
          if (!is_wanted(expr)) return expr;
          const Function& partition = *expr->As<Function>();
          Expr body = COLLAGE_TRY(Rewrite(partition.body, inline_composite));
          return MakeFunction(partition.parameters, body, partition.attributes);
        },
        [&](const Expr& expr) { return expr == function || !expr->As<Function>() || !expr->As<Function>()->attributes.Has("Primitive"); }));
    result.Set(name, COLLAGE_TRY(Rewrite(opened, inline_partition)));
  }
  return result;
}

}  // namespace collage
