#include <algorithm>
#include <cmath>

#include "collage/transform/constants.h"
#include "collage/transform/simplify_rules.h"

namespace collage {
namespace {

// The call gives its argument back when that has the call's type: a constant of zeros may also be there to broadcast.
Expr ArgumentIf(const Expr& expr, size_t kept, size_t neutral, double value) {
  const Call& call = *expr->As<Call>();
  return IsConstantOf(call.args[neutral], value) && call.args[kept]->type() == expr->type() ? call.args[kept] : nullptr;
}

// The reciprocal is a normal number in float32 too; of a power of two it is exact.
bool HasReciprocal(double value, bool exact) {
  int exponent = 0;
  const double fraction = std::abs(std::frexp(value, &exponent));
  return std::isfinite(value) && value != 0 && (!exact || fraction == 0.5) && exponent > -120 && exponent < 120;
}

}  // namespace

Result<Expr> SimplifyNeutral(const Expr& expr, const OpTable&) {
  const std::string& name = CalledOp(expr)->name;
  Expr argument;
  if (name == "add" || name == "subtract") argument = ArgumentIf(expr, 0, 1, 0);
  if (name == "multiply" || name == "divide" || name == "power") argument = ArgumentIf(expr, 0, 1, 1);
  if (!argument && name == "add") argument = ArgumentIf(expr, 1, 0, 0);
  if (!argument && name == "multiply") argument = ArgumentIf(expr, 1, 0, 1);
  return argument;
}

Result<Expr> SimplifyPower(const Expr& expr, const OpTable& ops) {
  if (!IsCallOf(expr, "power")) return Expr();
  const Call& call = *expr->As<Call>();
  const Expr& base = call.args[0];
  if (!(base->type() == expr->type())) return Expr();
  if (IsConstantOf(call.args[1], 2)) return MakeCall(ops.Find("multiply"), {base, base}, {}, expr->origin());
  const bool floating = IsFloatingPoint(expr->type().AsTensor()->dtype);
  if (floating && IsConstantOf(call.args[1], 0.5)) return MakeCall(ops.Find("sqrt"), {base}, {}, expr->origin());
  return Expr();
}

Result<Expr> SimplifyDivision(const Expr& expr, const OpTable& ops, bool approximate) {
  if (!IsCallOf(expr, "divide")) return Expr();
  const Call& call = *expr->As<Call>();
  std::optional<std::vector<double>> values = FloatValues(call.args[1]);
  if (!values || values->empty()) return Expr();
  const auto invertible = [&](double value) { return HasReciprocal(value, !approximate); };
  if (!std::all_of(values->begin(), values->end(), invertible)) return Expr();
  for (double& value : *values) value = 1 / value;
  return MakeCall(ops.Find("multiply"), {call.args[0], MakeFloatConstant(*call.args[1]->type().AsTensor(), *values)}, {}, expr->origin());
}

}  // namespace collage
