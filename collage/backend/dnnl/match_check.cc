#include "collage/backend/dnnl/match_check.h"

#include <omp.h>

#include <string_view>
#include <unordered_map>

#include "collage/backend/dnnl/plan_cache.h"
#include "collage/ir/op_sequence.h"

namespace collage::dnnl_backend {
namespace {

// The matched operators as a function of what lies outside. Recursion is as deep as the pattern is.
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

bool HasConstantOutside(const Match& match) {
  for (const auto& [name, expr] : match.captures) {
    if (name.starts_with(kOutside) && expr->As<Constant>()) return true;
  }
  return false;
}

Result<bool> CanRun(const Match& match) {
  const Expr function = COLLAGE_TRY(Extraction(match).FunctionOf(match.root));
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(*function->As<Function>()));
  if (IsQuantised(sequence)) {
    OpSequence inside;
    COLLAGE_TRY(ParseQuantised(sequence, inside));
  } else if (!RecogniseLayerNormalization(sequence) && !RecogniseShuffle(sequence)) {
    COLLAGE_TRY(ParseChain(sequence));
  }
  return !CachedPlans(sequence, omp_get_max_threads())->empty();
}

}  // namespace

Verdict CheckMatch(const Match& match) {
  if (HasConstantOutside(match)) return Verdict::Reject("oneDNN: an operand is a constant, which another rule takes inside");
  try {
    const Result<bool> can_run = CanRun(match);
    if (!can_run) return Verdict::Reject(can_run.error().message);
    return *can_run ? Verdict::Accept() : Verdict::Reject("oneDNN: no primitive for these shapes, attributes or post-operations");
  } catch (const std::exception& error) {
    return Verdict::Reject(std::string("oneDNN: ") + error.what());
  }
}

}  // namespace collage::dnnl_backend
