#include "collage/dataflow/float_lets.h"

#include <unordered_map>
#include <unordered_set>

#include "collage/ir/scope_tree.h"
#include "collage/ir/visit.h"

namespace collage {
namespace {

using Values = std::unordered_map<const ExprNode*, Expr>;  // by the variable of a let

/// Lets with a variable that is used where it is not visible, and all lets that their values go through.
Values FindObstacles(const Values& lets, const std::vector<const ExprNode*>& invisible) {
  Values obstacles;
  std::unordered_set<const ExprNode*> seen(invisible.begin(), invisible.end());
  std::vector<const ExprNode*> stack(invisible);
  while (!stack.empty()) {
    const ExprNode* node = stack.back();
    stack.pop_back();
    const auto go_to = [&](const Expr& expr) {
      if (seen.insert(expr.get()).second) stack.push_back(expr.get());
    };
    if (const auto let = lets.find(node); let != lets.end()) {
      obstacles.insert(*let);
      go_to(let->second);
    }
    ForEachChild(*node, go_to);
  }
  return obstacles;
}

class Floater {
 public:
  explicit Floater(const Values& obstacles) : obstacles_(obstacles) {}

  Result<Expr> Run(const Expr& root) {
    std::vector<std::pair<const Expr*, bool>> stack = {{&root, false}};
    std::unordered_set<const ExprNode*> open;
    while (!stack.empty()) {
      const auto [expr, children_done] = stack.back();
      stack.pop_back();
      if (done_.contains(expr->get())) continue;
      if (children_done) {
        done_[expr->get()] = COLLAGE_TRY(Rebuild(*expr));
        continue;
      }
      if (!open.insert(expr->get()).second) return Fail("a recursive function stands between a partition and what it takes");
      stack.push_back({expr, true});
      ForEachNeeded(*expr, [&](const Expr& child) {
        if (!done_.contains(child.get())) stack.push_back({&child, false});
      });
    }
    return done_.at(root.get());
  }

 private:
  template <class Visitor>
  void ForEachNeeded(const Expr& expr, Visitor&& visit) const {
    if (const auto value = obstacles_.find(expr.get()); value != obstacles_.end()) {
      visit(value->second);
    } else if (const Let* let = expr->As<Let>(); let && obstacles_.contains(let->variable.get())) {
      visit(let->body);
    } else {
      ForEachChild(*expr, visit);
    }
  }

  Result<Expr> Rebuild(const Expr& expr) const {
    if (const auto value = obstacles_.find(expr.get()); value != obstacles_.end()) return done_.at(value->second.get());
    if (const Let* let = expr->As<Let>(); let && obstacles_.contains(let->variable.get())) return done_.at(let->body.get());
    std::vector<Expr> children;
    ForEachChild(*expr, [&](const Expr& child) { children.push_back(done_.at(child.get())); });
    return WithChildren(expr, std::move(children));
  }

  const Values& obstacles_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

Result<Expr> FloatLets(const Expr& function) {
  Values lets;
  std::unordered_map<const ExprNode*, const ExprNode*> binder;
  PostOrder(function, [&](const Expr& expr) {
    const Let* let = expr->As<Let>();
    if (!let) return;
    lets.emplace(let->variable.get(), let->value);
    binder.emplace(let->variable.get(), expr.get());
  });
  if (lets.empty()) return function;
  const ScopeTree tree(function, ScopeTree::Purpose::kVerifying);
  std::vector<const ExprNode*> invisible;
  PostOrder(function, [&](const Expr& expr) {
    const auto let = binder.find(expr.get());
    if (let != binder.end() && tree.ScopeOf(expr) != tree.OpenedBy(let->second)) invisible.push_back(expr.get());
  });
  if (invisible.empty()) return function;
  return Floater(FindObstacles(lets, invisible)).Run(function);
}

}  // namespace collage
