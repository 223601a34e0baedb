#include <algorithm>

#include "collage/form/form.h"

namespace collage {
namespace {

/// Rebuilds an expression where some others are replaced, and what replaces them is rebuilt as well. No recursion.
class Redirector {
 public:
  explicit Redirector(std::unordered_map<const ExprNode*, Expr> redirected) : redirected_(std::move(redirected)) {}

  Result<Expr> Rebuild(const Expr& root) {
    std::vector<Expr> stack = {root};
    while (!stack.empty()) {
      const Expr expr = stack.back();
      if (image_.contains(expr.get())) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      std::vector<Expr> children = Children(expr);
      for (Expr& child : children) {
        const Expr& wanted = Target(child);
        const auto built = image_.find(wanted.get());
        if (built == image_.end()) stack.push_back(wanted);
        if (built != image_.end()) child = built->second;
      }
      if (stack.size() > before) continue;
      image_.emplace(expr.get(), COLLAGE_TRY(WithChildren(expr, std::move(children))));
      stack.pop_back();
    }
    return image_.at(root.get());
  }

  [[nodiscard]] std::unordered_map<const ExprNode*, Expr> TakeImage() { return std::move(image_); }

  [[nodiscard]] const Expr& Target(const Expr& expr) const {
    const auto at = redirected_.find(expr.get());
    return at == redirected_.end() ? expr : at->second;
  }

 private:
  std::unordered_map<const ExprNode*, Expr> redirected_;
  std::unordered_map<const ExprNode*, Expr> image_;
};

}  // namespace

Result<AppliedForms> ApplyForms(const FormedGraph& formed, const std::vector<size_t>& forms) {
  std::unordered_map<const ExprNode*, Expr> redirected;
  for (const size_t form : forms) {
    for (const auto& [original, replacement, inside] : formed.forms[form].results) redirected.emplace(original.get(), replacement);
  }
  Redirector redirector(std::move(redirected));
  const Expr body = COLLAGE_TRY(redirector.Rebuild(redirector.Target(formed.body())));
  const Function& function = *formed.function->As<Function>();
  Expr applied = COLLAGE_TRY(MakeFunction(function.parameters, body, function.attributes));
  return AppliedForms{std::move(applied), redirector.TakeImage()};
}

std::vector<std::vector<size_t>> LayersOfForms(const FormedGraph& formed) {
  std::vector<std::vector<size_t>> layers;
  std::vector<IndexSet> taken;
  for (size_t form = 0; form < formed.forms.size(); ++form) {
    const IndexSet& covered = formed.forms[form].covered;
    size_t layer = 0;
    while (layer < layers.size() && taken[layer].Intersects(covered)) ++layer;
    if (layer == layers.size()) {
      layers.emplace_back();
      taken.emplace_back();
    }
    layers[layer].push_back(form);
    taken[layer] |= covered;
  }
  return layers;
}

}  // namespace collage
