#include "collage/op/function_uses.h"

#include <unordered_set>

#include "collage/support/check.h"

namespace collage {
namespace {

/// One function literal; literals inside it whose analysis is missing are collected in `missing`, and the result is then void.
class Analysis {
 public:
  Analysis(const std::unordered_map<const ExprNode*, FunctionUses>& cache, const Function& function) : cache_(cache) {
    for (const Expr& parameter : function.parameters) bound_.insert(parameter.get());
    Use(function.body);
    while (!pending_.empty()) {
      const Expr expr = pending_.back();
      pending_.pop_back();
      Visit(expr);
    }
    for (const Expr& variable : variables_) {
      if (!bound_.contains(variable.get())) uses.captured.push_back(variable);
    }
  }

  FunctionUses uses;
  std::vector<Expr> missing;

 private:
  void Use(const Expr& expr) {
    if (uses.counts[expr.get()]++ > 0) return;
    if (expr->As<Var>()) {
      variables_.push_back(expr);
    } else {
      pending_.push_back(expr);
    }
  }

  void Visit(const Expr& expr) {
    if (expr->As<Function>()) {
      const auto known = cache_.find(expr.get());
      if (known == cache_.end()) {
        missing.push_back(expr);
        return;
      }
      for (const Expr& variable : known->second.captured) Use(variable);
      return;
    }
    if (const Let* let = expr->As<Let>()) bound_.insert(let->variable.get());
    ForEachOperand(expr, [this](const Expr& operand) { Use(operand); });
  }

  const std::unordered_map<const ExprNode*, FunctionUses>& cache_;
  std::unordered_set<const ExprNode*> bound_;
  std::vector<Expr> variables_;
  std::vector<Expr> pending_;
};

}  // namespace

void ForEachOperand(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  if (const Call* call = expr->As<Call>()) {
    if (!call->callee->As<Op>()) visit(call->callee);
    for (const Expr& arg : call->args) visit(arg);
  } else if (const Tuple* tuple = expr->As<Tuple>()) {
    for (const Expr& field : tuple->fields) visit(field);
  } else if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
    visit(item->tuple);
  } else if (const Let* let = expr->As<Let>()) {
    visit(let->value);
    visit(let->body);
  } else if (const If* branch = expr->As<If>()) {
    visit(branch->condition);
    visit(branch->then_branch);
    visit(branch->else_branch);
  }
}

const FunctionUses& FunctionUsesCache::Of(const Expr& function) {
  std::vector<Expr> pending = {function};
  while (!pending.empty()) {
    const Expr next = pending.back();
    if (cache_.contains(next.get())) {
      pending.pop_back();
      continue;
    }
    const Function* literal = next->As<Function>();
    COLLAGE_CHECK(literal != nullptr);
    Analysis analysis(cache_, *literal);
    if (analysis.missing.empty()) {
      cache_.emplace(next.get(), std::move(analysis.uses));
      pending.pop_back();
    } else {
      pending.insert(pending.end(), analysis.missing.begin(), analysis.missing.end());
    }
  }
  return cache_.at(function.get());
}

}  // namespace collage
