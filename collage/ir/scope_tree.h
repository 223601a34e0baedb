#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Variables, @names, operators and constants: what is never numbered.
bool IsLeaf(const Expr& expr);

/// Where the printer writes each expression of one function. A scope is what stands between braces, or behind a let: the body
/// of a function literal, a branch of if, the body of let. An expression belongs to the innermost scope that holds all its uses.
///
/// Lets make scopes nest as deep as a program is long, so common ancestors are found with jump pointers (Myers 1983, "An
/// applicative random-access stack") in logarithmic time.
class ScopeTree {
 public:
  struct Scope {
    size_t parent = 0;
    size_t jump = 0;
    size_t depth = 0;
    const Expr* result = nullptr;
    std::vector<const Expr*> bindings;  ///< what is numbered here, in order
  };

  /// Of a let whose value is a function literal, the text wants the value before the scope that the let opens; for rules of
  /// visibility it lies inside, since the function may call itself.
  enum class Purpose { kPrinting, kVerifying };

  explicit ScopeTree(const Expr& root, Purpose purpose = Purpose::kPrinting);

  [[nodiscard]] const Scope& scope(size_t index) const { return scopes_[index]; }
  /// True when everything of scope `inner` is within scope `outer`, or they are the same.
  [[nodiscard]] bool Encloses(size_t outer, size_t inner) const { return CommonAncestor(outer, inner) == outer; }
  [[nodiscard]] size_t ScopeOf(const Expr& expr) const { return places_.at(expr.get()).scope; }
  /// False for what stands where it is used: leaves, the result of a scope, the value of a let that nothing else uses.
  [[nodiscard]] bool IsNumbered(const Expr& expr) const { return !IsLeaf(expr) && !places_.at(expr.get()).inlined; }
  /// The first of the scopes that a function (body), a let (body) or an if (branches, in order) opens.
  [[nodiscard]] size_t OpenedBy(const ExprNode* expr) const { return places_.at(expr).opens; }

 private:
  static constexpr size_t kNowhere = static_cast<size_t>(-1);
  struct Place {
    size_t scope = kNowhere;
    size_t uses = 0;
    size_t opens = kNowhere;
    bool inlined = false;  // the value of a let, or the result of its scope
  };

  void PlaceChildren(const Expr& expr);
  void Use(const Expr& expr, size_t scope);
  size_t Open(size_t parent, const Expr& result);
  [[nodiscard]] size_t CommonAncestor(size_t a, size_t b) const;

  Purpose purpose_;
  std::vector<Scope> scopes_;
  std::unordered_map<const ExprNode*, Place> places_;
};

}  // namespace collage
