#include <exception>
#include <functional>
#include <unordered_map>

#include "collage/ir/visit.h"
#include "collage/tensor/narrow.h"
#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

Expr InHalves(const Expr& expr, const std::function<Expr(const Expr&)>& other) {
  const auto is_float32 = [](const TensorType* type) { return type != nullptr && type->dtype == DType::kFloat32; };
  if (const Constant* constant = expr->As<Constant>(); constant && is_float32(&constant->value.type())) {
    Tensor half(TensorType{constant->value.shape(), DType::kFloat16});
    Narrow(constant->value, half);
    return MakeConstant(std::move(half));
  }
  if (const Var* var = expr->As<Var>(); var && is_float32(expr->type().AsTensor()))
    return MakeVar(var->name, TensorType{expr->type().AsTensor()->shape, DType::kFloat16});
  if (const Call* call = expr->As<Call>()) {
    std::vector<Expr> args;
    for (const Expr& arg : call->args) args.push_back(other(arg));
    return ProgramBuilder::Call(CalledOp(expr)->name, std::move(args), call->attributes);
  }
  if (const Tuple* tuple = expr->As<Tuple>()) {
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields) fields.push_back(other(field));
    return MakeTuple(std::move(fields));
  }
  if (const TupleGetItem* item = expr->As<TupleGetItem>()) return ProgramBuilder::Get(other(item->tuple), item->index);
  return expr;
}

/// The same program, all of whose numbers of 32 bits have 16.
Program InHalves(const Program& program) {
  const Function& function = program.Get();
  std::unordered_map<const ExprNode*, Expr> halves;
  const auto half_of = [&](const Expr& expr) { return halves.at(expr.get()); };
  std::vector<Expr> parameters;
  for (const Expr& parameter : function.parameters) {
    parameters.push_back(InHalves(parameter, half_of));
    halves.emplace(parameter.get(), parameters.back());
  }
  PostOrder(function.body, [&](const Expr& expr) {
    if (!halves.contains(expr.get())) halves.emplace(expr.get(), InHalves(expr, half_of));
  });
  return {MakeFunction(std::move(parameters), half_of(function.body), function.attributes).value(), program.ranges};
}

}  // namespace

std::vector<ProgramCase> HalfCases() {
  std::vector<ProgramCase> cases;
  for (const std::vector<ProgramCase>& family :
       {ConvolutionCases(), MatrixCases(), PoolingCases(), NormalisationCases(), PointwiseCases(), ReductionCases(), BlockCases()}) {
    for (const ProgramCase& whole : family) {
      try {
        InHalves(whole.make());
      } catch (const std::exception&) {
        continue;  // an operator that is for other types
      }
      cases.push_back({whole.name + "_float16", [make = whole.make] { return InHalves(make()); }});
    }
  }
  return cases;
}

}  // namespace collage::conformance
