#include "collage/ir/scope_tree.h"

#include "collage/ir/visit.h"

namespace collage {

bool IsLeaf(const Expr& expr) { return expr->As<Var>() || expr->As<GlobalVar>() || expr->As<Op>() || expr->As<Constant>(); }

ScopeTree::ScopeTree(const Expr& root, Purpose purpose) : purpose_(purpose) {
  const std::vector<const Expr*> order = PostOrderList(root, CallOrder::kCalleeLast);
  places_.reserve(order.size());
  for (const Expr* expr : order) {
    ForEachChild(**expr, [&](const Expr& child) { ++places_[child.get()].uses; });
  }
  scopes_.push_back({0, 0, 0, &root, {}});
  Use(root, 0);
  for (size_t i = order.size(); i-- > 0;) PlaceChildren(*order[i]);
  for (const Expr* expr : order) {
    Place& place = places_.at(expr->get());
    place.inlined = place.inlined || scopes_[place.scope].result->get() == expr->get();
    if (IsNumbered(*expr)) scopes_[place.scope].bindings.push_back(expr);
  }
}

size_t ScopeTree::Open(size_t parent, const Expr& result) {
  const Scope& above = scopes_[parent];
  const Scope& jump = scopes_[above.jump];
  const bool level = above.depth - jump.depth == jump.depth - scopes_[jump.jump].depth;
  scopes_.push_back({parent, level ? jump.jump : parent, above.depth + 1, &result, {}});
  return scopes_.size() - 1;
}

size_t ScopeTree::CommonAncestor(size_t a, size_t b) const {
  if (scopes_[a].depth < scopes_[b].depth) std::swap(a, b);
  while (scopes_[a].depth > scopes_[b].depth) {
    const size_t jump = scopes_[a].jump;
    a = scopes_[jump].depth >= scopes_[b].depth ? jump : scopes_[a].parent;
  }
  while (a != b) {
    const bool jump = scopes_[a].jump != scopes_[b].jump;
    a = jump ? scopes_[a].jump : scopes_[a].parent;
    b = jump ? scopes_[b].jump : scopes_[b].parent;
  }
  return a;
}

void ScopeTree::Use(const Expr& expr, size_t scope) {
  size_t& place = places_[expr.get()].scope;
  place = place == kNowhere ? scope : CommonAncestor(place, scope);
}

void ScopeTree::PlaceChildren(const Expr& expr) {
  const size_t scope = places_.at(expr.get()).scope;
  if (const Function* function = expr->As<Function>()) {
    const size_t body = Open(scope, function->body);
    places_.at(expr.get()).opens = body;
    for (const Expr& parameter : function->parameters) Use(parameter, body);
    Use(function->body, body);
  } else if (const Let* let = expr->As<Let>()) {
    const size_t body = Open(scope, let->body);
    places_.at(expr.get()).opens = body;
    const bool verifying = purpose_ == Purpose::kVerifying;
    Use(let->variable, verifying ? body : scope);
    Use(let->value, verifying && let->value->As<Function>() ? body : scope);
    places_.at(let->value.get()).inlined = places_.at(let->value.get()).uses == 1;
    Use(let->body, body);
  } else if (const If* branch = expr->As<If>()) {
    const size_t then_branch = Open(scope, branch->then_branch);
    const size_t else_branch = Open(scope, branch->else_branch);
    places_.at(expr.get()).opens = then_branch;
    Use(branch->condition, scope);
    Use(branch->then_branch, then_branch);
    Use(branch->else_branch, else_branch);
  } else {
    ForEachChild(*expr, [&](const Expr& child) { Use(child, scope); });
  }
}

}  // namespace collage
