#pragma once

#include "collage/ir/expr.h"

namespace collage {

// The rules of simplify_expressions. Each takes a call of an operator and answers what replaces it, or null.

/// x + 0, x * 1 and the like.
Result<Expr> SimplifyNeutral(const Expr& expr, const OpTable& ops);
/// power with exponent 2 or 0.5.
Result<Expr> SimplifyPower(const Expr& expr, const OpTable& ops);
/// Division by constants; rounded reciprocals only when `approximate`.
Result<Expr> SimplifyDivision(const Expr& expr, const OpTable& ops, bool approximate);
/// Operators that give their argument back, and views of views.
Result<Expr> SimplifyViews(const Expr& expr, const OpTable& ops);
/// transpose of transpose.
Result<Expr> SimplifyTranspose(const Expr& expr, const OpTable& ops);
/// qnn.quantize of what qnn.dequantize made with the same scale and zero point.
Result<Expr> SimplifyQuantisation(const Expr& expr, const OpTable& ops);
/// nn.pad before a window operator.
Result<Expr> SimplifyPad(const Expr& expr, const OpTable& ops);

}  // namespace collage
