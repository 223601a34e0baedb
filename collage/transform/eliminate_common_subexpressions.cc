#include "collage/transform/eliminate_common_subexpressions.h"

#include <algorithm>
#include <unordered_map>

#include "collage/ir/scope_tree.h"
#include "collage/ir/visit.h"
#include "collage/support/hash.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

constexpr int64_t kMostComparedElements = 64;

class Merger {
 public:
  explicit Merger(const Expr& function) : function_(function), tree_(function) {}

  Result<Expr> Run() {
    const std::vector<const Expr*> order = PostOrderList(function_);
    std::unordered_map<size_t, std::vector<const Expr*>> members;
    for (const Expr* expr : order) members[Classify(*expr)].push_back(expr);
    for (auto& [number, same] : members) ChooseRepresentatives(same);
    return Rewrite(
        function_, [&](const Expr& original, const Expr& expr) { return Merged(original, expr); }, MayEnter);
  }

 private:
  // Expressions of one class compute the same value. The key of a class is text: exact, and the same for all that is in it.
  size_t Classify(const Expr& expr) {
    std::string key = KeyOf(expr);
    if (key.empty()) key = "#" + std::to_string(classes_.size());  // a class of its own
    const size_t number = numbers_.emplace(std::move(key), numbers_.size()).first->second;
    classes_[expr.get()] = number;
    return number;
  }

  std::string KeyOf(const Expr& expr) const {
    if (const Tensor* tensor = AsConstant(expr)) return KeyOfConstant(*tensor);
    if (const Call* call = expr->As<Call>()) return KeyOfCall(*call);
    if (const Tuple* tuple = expr->As<Tuple>()) {
      std::string key = "(";
      for (const Expr& field : tuple->fields) key += std::to_string(classes_.at(field.get())) + ",";
      return key;
    }
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
      return std::to_string(classes_.at(item->tuple.get())) + "." + std::to_string(item->index);
    }
    return "";
  }

  static std::string KeyOfConstant(const Tensor& tensor) {
    if (tensor.ElementCount() > kMostComparedElements) return "";
    return "constant " + ToString(tensor.type()) + std::string(reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount());
  }

  std::string KeyOfCall(const Call& call) const {
    const Op* op = call.callee->As<Op>();
    if (!op) return "";
    std::vector<size_t> arguments;
    for (const Expr& argument : call.args) arguments.push_back(classes_.at(argument.get()));
    if (op->def->commutative) std::sort(arguments.begin(), arguments.end());
    std::vector<std::string> attributes;
    for (const auto& [name, value] : call.attributes.entries()) attributes.push_back(name + "=" + ToString(value));
    std::sort(attributes.begin(), attributes.end());
    std::string key = op->def->name + "(";
    for (size_t argument : arguments) key += std::to_string(argument) + ",";
    for (const std::string& attribute : attributes) key += attribute + ",";
    return key;
  }

  // A member stands for those of scopes inside its own, and for later ones of its own. Parents of merged expressions choose
  // alike, because the outermost member along a chain of scopes is the same seen from anywhere on it.
  void ChooseRepresentatives(std::vector<const Expr*>& same) {
    if (same.size() < 2) return;
    if ((*same[0])->As<Constant>()) {  // costs nothing wherever it stands
      for (const Expr* member : same) Represent(*member, same[0]->get());
      return;
    }
    std::stable_sort(same.begin(), same.end(), [&](const Expr* a, const Expr* b) { return Depth(*a) < Depth(*b); });
    std::unordered_map<size_t, const ExprNode*> by_scope;
    for (const Expr* member : same) {
      const ExprNode* representative = nullptr;
      for (const auto& [scope, candidate] : by_scope) {
        if (tree_.Encloses(scope, tree_.ScopeOf(*member))) representative = candidate;
      }
      if (!representative) representative = by_scope[tree_.ScopeOf(*member)] = member->get();
      Represent(*member, representative);
    }
  }

  void Represent(const Expr& member, const ExprNode* representative) {
    representatives_[member.get()] = representative;
    origins_[representative].push_back(member->origin());
  }

  size_t Depth(const Expr& expr) const { return tree_.scope(tree_.ScopeOf(expr)).depth; }

  // Members of a class have equal children once those are merged, so the first that is rebuilt serves for all.
  Result<Expr> Merged(const Expr& original, const Expr& expr) {
    const auto at = representatives_.find(original.get());
    if (at == representatives_.end()) return expr;
    Expr& merged = merged_[at->second];
    if (!merged) merged = WithOrigin(expr, Origin::Union(origins_.at(at->second)));
    return merged;
  }

  const Expr& function_;
  ScopeTree tree_;
  std::unordered_map<std::string, size_t> numbers_;
  std::unordered_map<const ExprNode*, size_t> classes_;
  std::unordered_map<const ExprNode*, const ExprNode*> representatives_;
  std::unordered_map<const ExprNode*, std::vector<Origin>> origins_;  // of those that each representative stands for
  std::unordered_map<const ExprNode*, Expr> merged_;
};

}  // namespace

Result<IRModule> EliminateCommonSubexpressions(const IRModule& module) {
  return RewriteFunctions(module, [](const Expr& function) { return Merger(function).Run(); });
}

}  // namespace collage
