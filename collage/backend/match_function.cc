#include "collage/backend/match_function.h"

#include <unordered_map>
#include <vector>

namespace collage {
namespace {

// Recursion is as deep as the pattern is.
class Extraction {
 public:
  explicit Extraction(const Match& match) {
    for (const auto& [name, expr] : match.captures) {
      if (name.starts_with(kOutside)) Cut(expr);
      if (name != kOutsideFields) continue;
      for (const Expr& field : expr->As<Tuple>()->fields) Cut(field);
    }
  }

  Result<Expr> FunctionOf(const Expr& root) {
    const Expr body = COLLAGE_TRY(Copy(root));
    return MakeFunction(parameters_, body);
  }

 private:
  void Cut(const Expr& expr) {
    if (copies_.contains(expr.get())) return;
    parameters_.push_back(MakeVar("x", expr->type()));
    copies_[expr.get()] = parameters_.back();
  }

  Result<Expr> Copy(const Expr& expr) {
    const auto at = copies_.find(expr.get());
    if (at != copies_.end()) return at->second;
    std::vector<Expr> children = Children(expr);
    for (Expr& child : children) child = COLLAGE_TRY(Copy(child));
    return copies_[expr.get()] = COLLAGE_TRY(WithChildren(expr, std::move(children)));
  }

  std::vector<Expr> parameters_;
  std::unordered_map<const ExprNode*, Expr> copies_;
};

}  // namespace

Result<Expr> FunctionOf(const Match& match) { return Extraction(match).FunctionOf(match.root); }

Verdict VerdictOn(const Match& match, const std::function<Status(const Function& function)>& can_run) {
  const Result<Expr> function = FunctionOf(match);
  const Status verdict = function ? can_run(*(*function)->As<Function>()) : Fail(function.error());
  return verdict ? Verdict::Accept() : Verdict::Reject(verdict.error().message);
}

Verdict VerdictOnSequence(const Match& match, const std::function<Status(const OpSequence& sequence)>& can_run) {
  return VerdictOn(match, [&](const Function& function) -> Status { return can_run(COLLAGE_TRY(ToOpSequence(function))); });
}

}  // namespace collage
