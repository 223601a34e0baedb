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

// Where the elements of a weight lie: the output channel that an element is summed into, and the input channel that it multiplies.
struct WeightPlaces {
  size_t outputs;
  size_t inputs;        // all of the data
  size_t group_inputs;  // that one output channel sees
  size_t plane;         // elements behind each pair of channels
  bool outputs_last;    // (inputs, outputs)

  [[nodiscard]] size_t Output(size_t i) const { return outputs_last ? i % outputs : i / (group_inputs * plane); }
  [[nodiscard]] size_t Input(size_t i) const {
    if (outputs_last) return i / outputs;
    const size_t groups = inputs / group_inputs;
    return Output(i) / (outputs / groups) * group_inputs + i / plane % group_inputs;
  }
};

// Nothing where the channels of the data do not lie along `axis`, or where padding lies around them that `has_shift` would shift.
Result<std::optional<WeightPlaces>> PlacesOfWeight(const Call& call, const std::string& op, size_t axis, bool has_shift) {
  const TensorType& data = *call.args[0]->type().AsTensor();
  const TensorType& weight = *call.args[1]->type().AsTensor();
  const auto extent = [&](size_t i) { return static_cast<size_t>(weight.shape[i]); };
  if (op == "nn.conv2d") {
    const Convolution convolution = COLLAGE_TRY(ReadConvolution(data, weight, call.attributes));
    const Window& window = convolution.window;
    const bool padded = window.pad_begin != std::array<int64_t, 2>{} || window.pad_end != std::array<int64_t, 2>{};
    if (axis != 1 || (padded && has_shift)) return std::nullopt;
    return WeightPlaces{extent(0), static_cast<size_t>(convolution.input_channels), extent(1), extent(2) * extent(3), false};
  }
  if (weight.shape.size() != 2 || data.shape.empty() || axis != data.shape.size() - 1) return std::nullopt;
  const bool transposed = op == "nn.dense" || COLLAGE_TRY(call.attributes.Bool("transpose_b", false));
  if (op != "nn.dense" && COLLAGE_TRY(call.attributes.Bool("transpose_a", false))) return std::nullopt;
  if (transposed) return WeightPlaces{extent(0), extent(1), extent(1), 1, false};
  return WeightPlaces{extent(1), extent(0), extent(0), 1, true};
}

}  // namespace

Result<std::optional<AffineInWeight>> WithAffineInput(const Expr& expr, const Expr& data, size_t axis, const std::vector<double>& scale,
                                                      const std::vector<double>& shift, const Origin& origin) {
  const OpDef* op = CalledOp(expr);
  if (!op || (op->name != "nn.conv2d" && op->name != "nn.dense" && op->name != "nn.matmul")) return std::nullopt;
  const Call& call = *expr->As<Call>();
  std::optional<std::vector<double>> weight = FloatValues(call.args[1]);
  if (!weight || weight->empty()) return std::nullopt;
  const bool has_shift = std::any_of(shift.begin(), shift.end(), [](double value) { return value != 0; });
  const std::optional<WeightPlaces> places = COLLAGE_TRY(PlacesOfWeight(call, op->name, axis, has_shift));
  if (!places || scale.size() != places->inputs || shift.size() != places->inputs) return std::nullopt;
  AffineInWeight result{nullptr, std::vector<double>(places->outputs, 0),
                        op->name == "nn.conv2d" ? 1 : expr->type().AsTensor()->shape.size() - 1};
  for (size_t i = 0; i < weight->size(); ++i) {
    result.shift[places->Output(i)] += (*weight)[i] * shift[places->Input(i)];
    (*weight)[i] *= scale[places->Input(i)];
  }
  result.call = COLLAGE_TRY(MakeCall(call.callee, {data, MakeFloatConstant(*call.args[1]->type().AsTensor(), *weight)}, call.attributes,
                                     Origin::Union({expr->origin(), origin})));
  return result;
}

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
