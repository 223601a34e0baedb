#include "collage/transform/eliminate_dead_code.h"

#include <unordered_map>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

// What the result needs: the value of a let counts once its variable is needed.
std::unordered_set<const ExprNode*> Needed(const Expr& function) {
  std::unordered_set<const ExprNode*> needed;
  std::unordered_map<const ExprNode*, const ExprNode*> values;  // of let variables
  std::vector<const ExprNode*> stack = {function.get()};
  const auto push = [&](const Expr& expr) { stack.push_back(expr.get()); };
  while (!stack.empty()) {
    const ExprNode* node = stack.back();
    stack.pop_back();
    if (!needed.insert(node).second) continue;
    if (const Let* let = node->As<Let>()) {
      values.emplace(let->variable.get(), let->value.get());
      push(let->body);
    } else if (node->As<Var>()) {
      const auto value = values.find(node);
      if (value != values.end()) stack.push_back(value->second);
    } else {
      ForEachChild(*node, push);
    }
  }
  return needed;
}

Result<Expr> WithoutDeadLets(const Expr& function) {
  const std::unordered_set<const ExprNode*> needed = Needed(function);
  const auto drop = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
    const Let* let = expr->As<Let>();
    return let && original->As<Let>() && !needed.contains(let->variable.get()) ? let->body : expr;
  };
  return Rewrite(function, drop, MayEnter);
}

IRModule WithoutUnusedFunctions(const IRModule& module) {
  std::unordered_map<std::string, Expr> functions(module.functions().begin(), module.functions().end());
  std::unordered_set<std::string> used;
  std::vector<std::string> pending = {"main"};
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    const auto function = functions.find(name);
    if (function == functions.end() || !used.insert(name).second) continue;
    PostOrder(function->second, [&](const Expr& expr) {
      if (const GlobalVar* global = expr->As<GlobalVar>()) pending.push_back(global->name);
    });
  }
  IRModule result;
  for (const auto& [name, function] : module.functions()) {
    if (used.contains(name)) result.Set(name, function);
  }
  return result;
}

}  // namespace

Result<IRModule> EliminateDeadCode(const IRModule& module) {
  return WithoutUnusedFunctions(COLLAGE_TRY(RewriteFunctions(module, WithoutDeadLets)));
}

}  // namespace collage
