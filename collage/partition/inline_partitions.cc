#include <algorithm>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/partition/cover.h"

namespace collage {
namespace {

std::string TextOf(const Function& function, const char* name) {
  const AttributeValue* value = function.attributes.Find(name);
  return value && value->AsString() ? *value->AsString() : std::string();
}

/// Which functions of a module go, and their bodies as soon as they are rewritten.
class Inliner {
 public:
  Inliner(const IRModule& module, const std::vector<std::string>& compilers) : compilers_(compilers) {
    for (const auto& [name, function] : module.functions()) {
      if (name != "main" && IsWanted(*function->As<Function>(), false)) globals_[name] = function;
    }
    for (const auto& [name, function] : module.functions()) Mark(function, globals_.contains(name));
  }

  [[nodiscard]] bool IsGone(const std::string& global) const { return globals_.contains(global); }

  Result<Expr> Inline(const std::string& name, const Expr& function) {
    const auto rewrite = [this](const Expr& original, const Expr& expr) { return RewriteOne(original, expr); };
    const auto enter = [&](const Expr& expr) { return expr == function || !StaysAKernel(expr); };
    Expr inlined = COLLAGE_TRY(Rewrite(function, rewrite, enter));
    if (const auto global = globals_.find(name); global != globals_.end()) global->second = inlined;
    return inlined;
  }

 private:
  /// Inside a partition that goes, all composites go; elsewhere a label names its backend.
  [[nodiscard]] bool IsWanted(const Function& function, bool inside) const {
    const std::string label = TextOf(function, "Composite");
    if (inside && !label.empty()) return true;
    std::string name = TextOf(function, "Compiler");
    if (!function.attributes.Has("Primitive")) {
      if (label.empty()) return false;
      name = label.substr(0, label.find('.'));
    } else if (name.empty()) {
      name = "native";
    }
    return compilers_.empty() || std::find(compilers_.begin(), compilers_.end(), name) != compilers_.end();
  }

  [[nodiscard]] bool StaysAKernel(const Expr& expr) const {
    const Function* function = expr->As<Function>();
    return function && (function->attributes.Has("Primitive") || function->attributes.Has("Composite")) && !gone_.contains(expr.get());
  }

  void Mark(const Expr& root, bool inside) {
    struct Item {
      const Expr* expr;
      bool inside;
    };
    std::unordered_set<const ExprNode*> seen[2];
    std::vector<Item> stack = {{&root, inside}};
    while (!stack.empty()) {
      const Item item = stack.back();
      const Expr& expr = *item.expr;
      stack.pop_back();
      if (!seen[item.inside ? 1 : 0].insert(expr.get()).second) continue;
      bool inside_now = item.inside;
      if (const Function* function = expr->As<Function>(); function && expr != root) {
        if (IsWanted(*function, item.inside)) {
          gone_.insert(expr.get());
          inside_now = true;
        } else if (StaysAKernel(expr)) {
          continue;
        }
      }
      if (const Let* let = expr->As<Let>(); let && let->value->As<Function>()) bound_[let->variable.get()] = let->value;
      const Call* call = expr->As<Call>();
      ForEachChild(*expr, [&](const Expr& child) {
        if (child->As<Var>() && !(call && child == call->callee) && !expr->As<Let>()) escapes_.insert(child.get());
        stack.push_back({&child, inside_now});
      });
      // A variable given to a call twice, as callee and as argument, escapes too.
      if (call) {
        for (const Expr& arg : call->args) {
          if (arg->As<Var>()) escapes_.insert(arg.get());
        }
      }
      if (const Let* let = expr->As<Let>()) {
        for (const Expr* used : {&let->value, &let->body}) {
          if ((*used)->As<Var>()) escapes_.insert(used->get());
        }
      }
    }
  }

  Result<Expr> RewriteOne(const Expr& original, const Expr& expr) {
    if (gone_.contains(original.get())) rewritten_[original.get()] = expr;
    if (const Call* call = original->As<Call>()) {
      const Expr function = GoneCallee(call->callee);
      if (!function) return expr;
      inlined_.insert(original.get());
      return InlineCall(*function->As<Function>(), expr->As<Call>()->args);
    }
    if (const Let* let = original->As<Let>()) {
      const bool unused = gone_.contains(let->value.get()) && !escapes_.contains(let->variable.get());
      return unused && expr->As<Let>() ? expr->As<Let>()->body : expr;
    }
    // A field of what an inlined partition gives is the field.
    const TupleGetItem* item = original->As<TupleGetItem>();
    if (!item || !inlined_.contains(item->tuple.get()) || !expr->As<TupleGetItem>()) return expr;
    const Tuple* tuple = expr->As<TupleGetItem>()->tuple->As<Tuple>();
    return tuple ? tuple->fields[item->index] : expr;
  }

  /// The function that a call is to be replaced with, or null.
  [[nodiscard]] Expr GoneCallee(const Expr& callee) const {
    if (const GlobalVar* global = callee->As<GlobalVar>()) {
      const auto at = globals_.find(global->name);
      return at == globals_.end() ? nullptr : at->second;
    }
    const auto bound = bound_.find(callee.get());
    const auto at = rewritten_.find(bound == bound_.end() ? callee.get() : bound->second.get());
    return at == rewritten_.end() ? nullptr : at->second;
  }

  /// Variables that the body binds are fresh in every copy.
  static Result<Expr> InlineCall(const Function& function, const std::vector<Expr>& args) {
    std::unordered_map<const ExprNode*, Expr> replacements;
    const auto renew = [&](const Expr& variable) { replacements[variable.get()] = MakeVar(variable->As<Var>()->name, variable->type()); };
    PostOrder(function.body, [&](const Expr& expr) {
      if (const Let* let = expr->As<Let>()) renew(let->variable);
      if (const Function* literal = expr->As<Function>()) {
        for (const Expr& parameter : literal->parameters) renew(parameter);
      }
    });
    for (size_t i = 0; i < args.size(); ++i) replacements[function.parameters[i].get()] = args[i];
    return Substitute(function.body, replacements);
  }

  const std::vector<std::string>& compilers_;
  std::unordered_map<std::string, Expr> globals_;        // functions of the module that go
  std::unordered_set<const ExprNode*> gone_;             // function literals that go, as they were
  std::unordered_map<const ExprNode*, Expr> rewritten_;  // and as they are
  std::unordered_map<const ExprNode*, Expr> bound_;      // functions by the variable that a let binds
  std::unordered_set<const ExprNode*> escapes_;          // variables used for anything but being called
  std::unordered_set<const ExprNode*> inlined_;          // calls that went
};

bool Mentions(const IRModule& module, const std::string& global) {
  bool found = false;
  for (const auto& [name, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) { found = found || (expr->As<GlobalVar>() && expr->As<GlobalVar>()->name == global); });
  }
  return found;
}

}  // namespace

Result<IRModule> InlinePartitions(const IRModule& module, const std::vector<std::string>& compilers) {
  Inliner inliner(module, compilers);
  IRModule result = module;
  // Functions that go come first, so that what calls them gets bodies that are done.
  for (const bool gone : {true, false}) {
    for (const auto& [name, function] : module.functions()) {
      if (inliner.IsGone(name) == gone) result.Set(name, COLLAGE_TRY(inliner.Inline(name, function)));
    }
  }
  for (const auto& [name, function] : module.functions()) {
    if (!inliner.IsGone(name)) continue;
    IRModule without = result;
    without.Remove(name);
    if (!Mentions(without, name)) result = std::move(without);
  }
  return result;
}

}  // namespace collage
