#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/tensor/narrow.h"

namespace collage {

inline Expr InType(const Expr& expr, DType dtype, const std::function<Expr(const Expr&)>& other) {
  const auto is_float32 = [](const TensorType* type) { return type != nullptr && type->dtype == DType::kFloat32; };
  if (const Constant* constant = expr->As<Constant>(); constant && is_float32(&constant->value.type())) {
    Tensor narrow(TensorType{constant->value.shape(), dtype});
    Narrow(constant->value, narrow);
    return MakeConstant(std::move(narrow));
  }
  if (const Var* var = expr->As<Var>(); var && is_float32(expr->type().AsTensor()))
    return MakeVar(var->name, TensorType{expr->type().AsTensor()->shape, dtype});
  if (const Call* call = expr->As<Call>()) {
    std::vector<Expr> args;
    for (const Expr& arg : call->args) args.push_back(other(arg));
    return MakeCall(CalledOp(expr), std::move(args), call->attributes).value();
  }
  if (const Tuple* tuple = expr->As<Tuple>()) {
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields) fields.push_back(other(field));
    return MakeTuple(std::move(fields));
  }
  if (const TupleGetItem* item = expr->As<TupleGetItem>()) return MakeTupleGetItem(other(item->tuple), item->index).value();
  return expr;
}

/// The same function, all of whose tensors of float32 have this narrow type. Throws where an operator does not take it.
inline Expr InType(const Function& function, DType dtype) {
  std::unordered_map<const ExprNode*, Expr> twins;
  const auto twin_of = [&](const Expr& expr) { return twins.at(expr.get()); };
  std::vector<Expr> parameters;
  for (const Expr& parameter : function.parameters) {
    parameters.push_back(InType(parameter, dtype, twin_of));
    twins.emplace(parameter.get(), parameters.back());
  }
  PostOrder(function.body, [&](const Expr& expr) {
    if (!twins.contains(expr.get())) twins.emplace(expr.get(), InType(expr, dtype, twin_of));
  });
  return MakeFunction(std::move(parameters), twin_of(function.body), function.attributes).value();
}

}  // namespace collage
