#include "collage/ir/visit.h"

#include <algorithm>
#include <unordered_set>

namespace collage {
namespace {

struct Item {
  const Expr* expr;
  bool children_done;
};

// Pushes the children so that the first is on top.
void PushChildren(const Expr& expr, std::vector<Item>& stack, CallOrder order = CallOrder::kCalleeFirst) {
  const auto first = static_cast<std::ptrdiff_t>(stack.size());
  ForEachChild(*expr, [&](const Expr& child) { stack.push_back({&child, false}); });
  if (order == CallOrder::kCalleeLast && expr->As<Call>()) std::rotate(stack.begin() + first, stack.begin() + first + 1, stack.end());
  std::reverse(stack.begin() + first, stack.end());
}

template <class Visitor>
void VisitPostOrder(const Expr& root, CallOrder order, Visitor&& visit) {
  std::unordered_set<const ExprNode*> seen;
  std::vector<Item> stack = {{&root, false}};
  while (!stack.empty()) {
    const Item item = stack.back();
    stack.pop_back();
    if (item.children_done) {
      visit(*item.expr);
    } else if (seen.insert(item.expr->get()).second) {
      stack.push_back({item.expr, true});
      PushChildren(*item.expr, stack, order);
    }
  }
}

}  // namespace

void PostOrder(const Expr& root, const std::function<void(const Expr&)>& visit) { VisitPostOrder(root, CallOrder::kCalleeFirst, visit); }

std::vector<const Expr*> PostOrderList(const Expr& root, CallOrder order) {
  std::vector<const Expr*> list;
  VisitPostOrder(root, order, [&](const Expr& expr) { list.push_back(&expr); });
  return list;
}

std::unordered_map<const ExprNode*, size_t> CountUses(const Expr& root) {
  std::unordered_map<const ExprNode*, size_t> uses = {{root.get(), 1}};
  PostOrder(root, [&](const Expr& expr) { ForEachChild(*expr, [&](const Expr& child) { ++uses[child.get()]; }); });
  return uses;
}

Result<Expr> Rewrite(const Expr& root, const Rewriter& rewrite, const std::function<bool(const Expr&)>& enter) {
  std::unordered_map<const ExprNode*, Expr> done;
  const auto rebuild = [&](const Expr& expr) -> Result<Expr> {
    std::vector<Expr> children;
    bool changed = false;
    ForEachChild(*expr, [&](const Expr& child) {
      const auto at = done.find(child.get());
      children.push_back(at == done.end() ? child : at->second);  // absent: inside something that was not entered
      changed = changed || children.back() != child;
    });
    if (!changed) return expr;
    if (expr->As<Let>() && (!children[0]->As<Var>() || children[0] == children[1])) return children[2];
    return WithChildren(expr, std::move(children));
  };
  std::vector<Item> stack = {{&root, false}};
  while (!stack.empty()) {
    const Item item = stack.back();
    const Expr& expr = *item.expr;
    stack.pop_back();
    if (done.contains(expr.get())) continue;
    const bool leave = item.children_done || (enter && !enter(expr));
    if (!leave) {
      stack.push_back({item.expr, true});
      PushChildren(expr, stack);
      if (expr->As<Let>()) std::swap(stack[stack.size() - 1], stack[stack.size() - 2]);  // the value before its variable
      continue;
    }
    const Expr rebuilt = item.children_done ? COLLAGE_TRY(rebuild(expr)) : expr;
    done[expr.get()] = COLLAGE_TRY(rewrite(expr, rebuilt));
  }
  return done.at(root.get());
}

Result<Expr> Substitute(const Expr& root, const std::unordered_map<const ExprNode*, Expr>& replacements) {
  const auto replace = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
    const auto at = replacements.find(original.get());
    return at == replacements.end() ? expr : at->second;
  };
  return Rewrite(root, replace, [&](const Expr& expr) { return !replacements.contains(expr.get()); });
}

}  // namespace collage
