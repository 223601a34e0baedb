#include "collage/transform/scaled_weight.h"

#include <algorithm>

#include "collage/op/window.h"
#include "collage/transform/constants.h"

namespace collage {
namespace {

// Output channel of the weight's element `i` of nn.conv2d_transpose: (input channels, output channels of a group, height, width).
size_t TransposedChannel(size_t i, const Shape& weight, const Convolution& convolution) {
  const auto per_group = static_cast<size_t>(weight[1]);
  const auto plane = static_cast<size_t>(weight[2] * weight[3]);
  const auto inputs_per_group = static_cast<size_t>(convolution.input_channels / convolution.groups);
  return i / (per_group * plane) / inputs_per_group * per_group + i / plane % per_group;
}

}  // namespace

Result<Expr> ScaledWeight(const Expr& expr, size_t axis, const std::vector<double>& scale, const Origin& origin) {
  const OpDef* op = CalledOp(expr);
  if (!op) return Expr();
  const Shape& result = expr->type().AsTensor() ? expr->type().AsTensor()->shape : Shape();
  const bool transposed = op->name == "nn.conv2d_transpose";
  const bool dense = op->name == "nn.dense";
  if (!transposed && !dense && op->name != "nn.conv2d") return Expr();
  if (result.empty() || scale.empty() || axis != (dense ? result.size() - 1 : 1)) return Expr();
  const auto channels = static_cast<size_t>(result[axis]);
  if (scale.size() != 1 && scale.size() != channels) return Expr();
  if (std::all_of(scale.begin(), scale.end(), [](double factor) { return factor == 1; })) return expr;
  const Call& call = *expr->As<Call>();
  std::optional<std::vector<double>> weight = FloatValues(call.args[1]);
  if (!weight || weight->empty()) return Expr();
  const TensorType& type = *call.args[1]->type().AsTensor();
  const auto factor = [&](size_t channel) { return scale[scale.size() == 1 ? 0 : channel]; };
  if (transposed) {
    const Convolution convolution = COLLAGE_TRY(ReadTransposedConvolution(*call.args[0]->type().AsTensor(), type, call.attributes));
    for (size_t i = 0; i < weight->size(); ++i) (*weight)[i] *= factor(TransposedChannel(i, type.shape, convolution));
  } else {
    const size_t per_channel = weight->size() / channels;
    for (size_t i = 0; i < weight->size(); ++i) (*weight)[i] *= factor(i / per_channel);
  }
  return MakeCall(call.callee, {call.args[0], MakeFloatConstant(type, *weight)}, call.attributes, Origin::Union({expr->origin(), origin}));
}

}  // namespace collage
