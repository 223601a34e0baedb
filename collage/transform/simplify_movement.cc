#include <algorithm>
#include <numeric>

#include "collage/transform/simplify_rules.h"

namespace collage {
namespace {

// An argument that is a call of a view (reshape, squeeze, ...); null otherwise.
const Call* AsView(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  return op && op->is_view ? expr->As<Call>() : nullptr;
}

// The dimension of the argument that each dimension of the result shows.
std::vector<int64_t> Permutation(const Call& transpose) {
  const auto rank = static_cast<int64_t>(transpose.args[0]->type().AsTensor()->shape.size());
  std::vector<int64_t> reversed(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) reversed[static_cast<size_t>(i)] = rank - 1 - i;
  std::vector<int64_t> axes = transpose.attributes.Ints("axes", reversed).value_or(reversed);
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  return axes;
}

}  // namespace

Result<Expr> SimplifyViews(const Expr& expr, const OpTable& ops) {
  const Call& call = *expr->As<Call>();
  if (IsCallOf(expr, "concatenate")) {
    const Tuple* tuple = call.args[0]->As<Tuple>();
    return tuple && tuple->fields.size() == 1 ? tuple->fields[0] : nullptr;
  }
  if (IsCallOf(expr, "cast")) return call.args[0]->type() == expr->type() ? call.args[0] : nullptr;
  const Call* outer = AsView(expr);
  if (!outer) return Expr();
  if (outer->args[0]->type() == expr->type()) return outer->args[0];
  const Call* inner = AsView(outer->args[0]);
  // reshape reads an extent of 0 as "the same as before", so empty tensors keep their views.
  const Shape& shape = expr->type().AsTensor()->shape;
  if (!inner || shape.empty() || std::find(shape.begin(), shape.end(), 0) != shape.end()) return Expr();
  return MakeCall(ops.Find("reshape"), {inner->args[0]}, {{"newshape", shape}}, Origin::Union({outer->args[0]->origin(), expr->origin()}));
}

Result<Expr> SimplifyTranspose(const Expr& expr, const OpTable& ops) {
  if (!IsCallOf(expr, "transpose")) return Expr();
  const Call& outer = *expr->As<Call>();
  std::vector<int64_t> axes = Permutation(outer);
  if (std::is_sorted(axes.begin(), axes.end())) return outer.args[0];
  if (!IsCallOf(outer.args[0], "transpose")) return Expr();
  const Call& inner = *outer.args[0]->As<Call>();
  const std::vector<int64_t> inner_axes = Permutation(inner);
  for (int64_t& axis : axes) axis = inner_axes[static_cast<size_t>(axis)];
  return MakeCall(ops.Find("transpose"), {inner.args[0]}, {{"axes", axes}}, Origin::Union({outer.args[0]->origin(), expr->origin()}));
}

}  // namespace collage
