#include <algorithm>
#include <cmath>

#include "collage/ir/structural.h"
#include "collage/op/rules.h"
#include "collage/transform/constants.h"
#include "collage/transform/simplify_rules.h"

namespace collage {
namespace {

bool IsShortInteger(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUInt8 || dtype == DType::kInt16 || dtype == DType::kUInt16;
}

bool HaveSameAxis(const Expr& a, const Expr& b) {
  const auto rank = static_cast<int64_t>(a->type().AsTensor()->shape.size());
  const auto axis = [&](const Expr& expr) {
    const int64_t given = IntAttribute(expr->As<Call>()->attributes, "axis", -1);
    return given < 0 ? given + rank : given;
  };
  return HasOneScale(a) || axis(a) == axis(b);
}

}  // namespace

Result<Expr> SimplifyQuantisation(const Expr& expr, const OpTable&) {
  if (!IsCallOf(expr, "qnn.quantize") || !IsCallOf(expr->As<Call>()->args[0], "qnn.dequantize")) return Expr();
  const Expr& numbers = expr->As<Call>()->args[0];
  const std::vector<Expr>& to = expr->As<Call>()->args;
  const std::vector<Expr>& from = numbers->As<Call>()->args;
  if (!(from[0]->type() == expr->type()) || !IsShortInteger(expr->type().AsTensor()->dtype) || !HaveSameAxis(numbers, expr)) return Expr();
  for (const size_t parameter : {1, 2}) {
    if (!AsConstant(from[parameter]) || !StructuralEqual(from[parameter], to[parameter])) return Expr();
  }
  // Then two roundings of float32 move no quotient of at most 65 535 by as much as a half.
  const std::optional<std::vector<double>> scales = FloatValues(from[1]);
  const auto is_normal = [](double scale) {
    return std::isnormal(static_cast<float>(scale)) && std::isfinite(static_cast<float>(scale * 65536));
  };
  if (!scales || !std::ranges::all_of(*scales, is_normal)) return Expr();
  return from[0];
}

}  // namespace collage
