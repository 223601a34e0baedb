#include "collage/op/integer_weights.h"

#include <cstdint>
#include <string>
#include <utility>

#include "collage/ir/visit.h"
#include "collage/op/table.h"

namespace collage {
namespace {

bool IsConvolution(const OpDef& op) { return op.name == "nn.conv2d"; }
bool IsProduct(const OpDef& op) { return op.name == "nn.dense" || op.name == "nn.matmul"; }

/// Nothing for calls without such weights.
std::optional<size_t> WeightAxis(const OpDef& op, const Call& call) {
  if (call.args.size() != 2) return std::nullopt;
  const Constant* weights = call.args[1]->As<Constant>();
  if (!weights || weights->value.dtype() != DType::kFloat32) return std::nullopt;
  if (IsConvolution(op)) return 0;
  if (!IsProduct(op) || weights->value.shape().size() != 2) return std::nullopt;
  return ChannelsOfWeights(op, call.attributes);
}

Result<Expr> Quantised(const Expr& expr, const WeightQuantiser& quantise) {
  const OpDef* op = CalledOp(expr);
  if (!op) return expr;
  const Call& call = *expr->As<Call>();
  const std::optional<size_t> axis = WeightAxis(*op, call);
  if (!axis) return expr;
  std::optional<QuantisedWeights> whole = COLLAGE_TRY(quantise(*op, call.args[1]->As<Constant>()->value, *axis));
  if (!whole) return expr;
  const auto channels = static_cast<int64_t>(whole->scales.size());
  const Expr scale = MakeConstant(Tensor::FromVector<float>({{channels}, DType::kFloat32}, whole->scales));
  const Expr zero = MakeConstant(Tensor(TensorType{{channels}, DType::kInt8}));
  const Expr weights = COLLAGE_TRY(MakeCall(Operators().Find("qnn.dequantize"), {MakeConstant(std::move(whole->values)), scale, zero},
                                            {{"axis", static_cast<int64_t>(*axis)}}));
  return MakeCall(call.callee, {call.args[0], weights}, call.attributes, expr->origin());
}

}  // namespace

size_t ChannelsOfWeights(const OpDef& op, const Attributes& attributes) {
  return op.name == "nn.dense" || attributes.Bool("transpose_b", false).value_or(false) ? 0 : 1;
}

Result<Expr> WithQuantisedWeights(const Function& function, const WeightQuantiser& quantise) {
  Expr body = COLLAGE_TRY(Rewrite(function.body, [&](const Expr&, const Expr& expr) { return Quantised(expr, quantise); }));
  return MakeFunction(function.parameters, std::move(body), function.attributes, function.result_type);
}

bool HasRoundableWeights(const Function& function) {
  bool has_some = false;
  PostOrder(function.body, [&](const Expr& expr) {
    const OpDef* op = CalledOp(expr);
    if (!op || !IsProduct(*op)) return;
    const Call& call = *expr->As<Call>();
    const Call* made = IsCallOf(call.args[1], "qnn.dequantize") ? call.args[1]->As<Call>() : nullptr;
    has_some = has_some || WeightAxis(*op, call) || (made && made->args[0]->As<Constant>());
  });
  return has_some;
}

Result<Expr> WithRoundedWeights(const Function& function) {
  return WithQuantisedWeights(function, [](const OpDef& op, const Tensor& weights, size_t axis) -> Result<std::optional<QuantisedWeights>> {
    if (IsConvolution(op)) return std::nullopt;
    return COLLAGE_TRY(Round(weights, axis));
  });
}

}  // namespace collage
