#include <algorithm>
#include <cmath>

#include "collage/form/rules.h"
#include "collage/op/axis_view.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

/// A byte less a zero point of its type.
constexpr double kFurthest = 255;
/// Up to here float32 holds every integer, so sums are exact in whatever order they are made.
constexpr double kExact = 0x1p24;

/// The dimension of the weights along which the results of a product lie; nothing where they do not lie along one.
std::optional<size_t> ResultAxis(const Call& product, size_t rank) {
  const std::string& op = product.callee->As<Op>()->def->name;
  if (op != "nn.matmul") return 0;
  if (rank != 2) return std::nullopt;
  return product.attributes.Bool("transpose_b", false).value_or(false) ? 0 : 1;
}

Verdict IsExactInFloat(const Match& match) {
  const TensorType* bytes = match.Find("bytes")->type().AsTensor();
  const TensorType* result = match.root->type().AsTensor();
  const Tensor& weight = match.Find("weight")->As<Constant>()->value;
  if (!bytes || (bytes->dtype != DType::kInt8 && bytes->dtype != DType::kUInt8)) return Verdict::Reject("its data are no bytes");
  if (result->dtype != DType::kInt32 || weight.dtype() != DType::kInt32) return Verdict::Reject("it is no product of 32-bit integers");
  if (!match.root->As<Call>()->attributes.String("out_dtype", "").value_or("").empty()) return Verdict::Reject("its type is stated");
  if (const Expr zero = match.Find("zero")) {
    const IntegerLimits limits = LimitsOfInteger(bytes->dtype);
    const std::vector<int64_t> points = zero->As<Constant>()->value.ToInt64();
    const auto is_byte = [&](int64_t point) { return point >= limits.low && point <= static_cast<int64_t>(limits.high); };
    if (!std::all_of(points.begin(), points.end(), is_byte)) return Verdict::Reject("its zero point is none of its data's type");
  }
  const std::optional<size_t> axis = ResultAxis(*match.root->As<Call>(), weight.shape().size());
  if (!axis) return Verdict::Reject("its weights are no matrix");
  const AxisView view(weight.shape(), *axis);
  std::vector<double> sums(static_cast<size_t>(view.extent), 0);
  const std::span<const int32_t> values = weight.Values<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    double& sum = sums[i / static_cast<size_t>(view.inner) % sums.size()];
    sum += kFurthest * std::abs(static_cast<double>(values[i]));
    if (sum > kExact) return Verdict::Reject("its sums may need more than 24 bits");
  }
  return Verdict::Accept();
}

Result<Expr> Floats(const Expr& integers) { return CallOp("cast", {integers}, {{"dtype", "float32"}}); }

Tensor Floats(const Tensor& integers) {
  Tensor floats(TensorType{integers.shape(), DType::kFloat32});
  const std::span<const int32_t> values = integers.Values<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) floats.MutableData<float>()[i] = static_cast<float>(values[i]);
  return floats;
}

Result<std::vector<Expr>> ToFloat(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Call& product = *match.root->As<Call>();
  Expr data = COLLAGE_TRY(Floats(match.Find("bytes")));
  if (const Expr zero = match.Find("zero"))
    data = COLLAGE_TRY(CallOp("subtract", {data, MakeConstant(Floats(zero->As<Constant>()->value))}));
  const Expr weight = MakeConstant(Floats(match.Find("weight")->As<Constant>()->value));
  const Expr sums = COLLAGE_TRY(MakeCall(product.callee, {data, weight}, product.attributes));
  return std::vector<Expr>{COLLAGE_TRY(CallOp("cast", {sums}, {{"dtype", "int32"}}))};
}

Pattern ProductOfBytes() {
  const auto less = [](const Pattern& data) { return pattern::CallOf("subtract", {data, pattern::IsConstant().As("zero")}); };
  const Pattern data = pattern::Optional(pattern::CallOf("cast", {pattern::Wildcard().As("bytes")}), less);
  const Pattern weight = pattern::IsConstant().As("weight");
  return pattern::Or({pattern::CallOf("nn.matmul", {data, weight}), pattern::CallOf("nn.dense", {data, weight}),
                      pattern::CallOf("nn.conv2d", {data, weight})});
}

}  // namespace

FormRule IntegerProductForm() { return {"integer_product", ProductOfBytes(), IsExactInFloat, ToFloat}; }

}  // namespace collage
