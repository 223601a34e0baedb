#include "collage/backend/openvino/integer_weights.h"

#include <optional>

#include "collage/ir/visit.h"
#include "collage/op/quantised_weights.h"
#include "collage/op/table.h"

namespace collage::openvino {
namespace {

/// Along which the channels of the result lie in the weights of a product; nothing for other calls.
std::optional<size_t> WeightAxis(const Call& call, const std::string& op) {
  if (call.args.size() != 2) return std::nullopt;
  const Constant* weights = call.args[1]->As<Constant>();
  if (!weights || weights->value.dtype() != DType::kFloat32) return std::nullopt;
  if (op == "nn.conv2d" || op == "nn.dense") return 0;
  if (op != "nn.matmul" || weights->value.shape().size() != 2) return std::nullopt;
  return call.attributes.Bool("transpose_b", false).value_or(false) ? 0 : 1;
}

bool Quantises(const Expr& body) {
  bool found = false;
  PostOrder(body, [&](const Expr& expr) { found = found || IsCallOf(expr, "qnn.quantize") || IsCallOf(expr, "qnn.dequantize"); });
  return found;
}

/// Without them pairs of products are added in 16 bits, which saturate. Of processors that have them in vectors of 256 bits alone it is not
/// known that all of the library's code uses them.
bool AddsProductsExactly() { return __builtin_cpu_supports("avx512vnni") != 0; }

Result<Expr> WithIntegers(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op) return expr;
  const Call& call = *expr->As<Call>();
  const std::optional<size_t> axis = WeightAxis(call, op->name);
  if (!axis) return expr;
  std::optional<QuantisedWeights> whole = QuantiseExactly(call.args[1]->As<Constant>()->value, *axis);
  if (!whole) return expr;
  const auto channels = static_cast<int64_t>(whole->scales.size());
  const Expr scale = MakeConstant(Tensor::FromVector<float>({{channels}, DType::kFloat32}, whole->scales));
  const Expr zero = MakeConstant(Tensor(TensorType{{channels}, DType::kInt8}));
  const Expr weights = COLLAGE_TRY(MakeCall(Operators().Find("qnn.dequantize"), {MakeConstant(std::move(whole->values)), scale, zero},
                                            {{"axis", static_cast<int64_t>(*axis)}}));
  return MakeCall(call.callee, {call.args[0], weights}, call.attributes, expr->origin());
}

}  // namespace

Result<Expr> WithIntegerWeights(const Function& function) {
  Expr body = function.body;
  if (AddsProductsExactly() && Quantises(body))
    body = COLLAGE_TRY(Rewrite(body, [](const Expr&, const Expr& expr) { return WithIntegers(expr); }));
  return MakeFunction(function.parameters, std::move(body), function.attributes);
}

}  // namespace collage::openvino
