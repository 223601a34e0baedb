#include <cmath>
#include <limits>
#include <numbers>

#include "collage/onnx/curves.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> ReadLeakyRelu(NodeReader& node) {
  const double alpha = COLLAGE_TRY(node.Float("alpha", 0.01F));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.leaky_relu", {COLLAGE_TRY(node.Input(0))}, {{"alpha", alpha}}))};
}

/// One slope a channel, (C, 1, ...) or (1, C, 1, ...), is ours; other slopes broadcast over the negative part.
Result<std::vector<Expr>> ReadPRelu(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Expr slope = COLLAGE_TRY(node.Input(1));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  Shape channels = COLLAGE_TRY(TensorTypeOf(slope)).shape;
  Formula formula(node, type.dtype);
  const auto broadcast = [&] {
    const Expr negative = formula.Call("multiply", formula.Call("minimum", data, 0.0), slope);
    return formula.Done(formula.Call("add", formula.Call("maximum", data, 0.0), negative));
  };
  if (!IsFloatingPoint(type.dtype)) return broadcast();  // nn.prelu is of real numbers
  // Until opset 6 a vector has one slope a channel; since then slopes broadcast from the last dimension.
  if (node.opset() < 7 && type.shape.size() >= 2 && channels == Shape{type.shape[1]} && channels[0] > 1) {
    return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.prelu", {data, slope}, {{"axis", 1}}))};
  }
  if (channels.size() == type.shape.size() && channels.size() > 1 && channels[0] == 1) channels.erase(channels.begin());
  const bool per_channel = type.shape.size() >= 2 && channels.size() == type.shape.size() - 1 && channels[0] == type.shape[1] &&
                           ElementCount(channels) == channels[0];
  if (per_channel) {
    const Expr vector = COLLAGE_TRY(node.Reshape(slope, {channels[0]}));
    return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.prelu", {data, vector}, {{"axis", 1}}))};
  }
  return broadcast();
}

/// Bounds of Clip: attributes until opset 10, optional inputs from 11 on; null where absent.
Result<Expr> ClipBound(NodeReader& node, size_t input, const std::string& attribute, DType dtype) {
  if (node.opset() >= 11) return node.HasInput(input) ? COLLAGE_TRY(node.Input(input)) : Expr();
  if (!node.HasAttribute(attribute)) return Expr();
  return NodeReader::Scalar(COLLAGE_TRY(node.Float(attribute, 0)), dtype);
}

bool IsScalarFloat(const Expr& bound) {
  const Tensor* value = ConstantValue(bound);
  return value != nullptr && value->ElementCount() == 1 && IsFloatingPoint(value->dtype());
}

/// Two constant bounds are ours; one bound, and bounds that are computed or integers, are exact as maximum and minimum.
Result<std::vector<Expr>> ReadClip(NodeReader& node) {
  Expr data = COLLAGE_TRY(node.Input(0));
  const DType dtype = COLLAGE_TRY(TensorTypeOf(data)).dtype;
  const Expr low = COLLAGE_TRY(ClipBound(node, 1, "min", dtype));
  const Expr high = COLLAGE_TRY(ClipBound(node, 2, "max", dtype));
  if (low != nullptr && high != nullptr && IsScalarFloat(low) && IsScalarFloat(high)) {
    const double a_min = ConstantValue(low)->ToDouble()[0];
    const double a_max = ConstantValue(high)->ToDouble()[0];
    if (a_min <= a_max) return std::vector<Expr>{COLLAGE_TRY(node.Call("clip", {data}, {{"a_min", a_min}, {"a_max", a_max}}))};
  }
  if (low != nullptr && high == nullptr && IsScalarFloat(low) && ConstantValue(low)->ToDouble()[0] == 0) {
    return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.relu", {data}))};
  }
  if (low != nullptr) data = COLLAGE_TRY(node.Call("maximum", {data, low}));
  if (high != nullptr) data = COLLAGE_TRY(node.Call("minimum", {data, high}));
  return std::vector<Expr>{data};
}

/// `gamma * x` where x > 0, else `scale * (exp(x / divisor) - 1)`. The exponent is kept from overflowing where it is not used.
Result<std::vector<Expr>> ExponentialUnit(NodeReader& node, double gamma, double scale, double divisor) {
  const DType dtype = COLLAGE_TRY(node.InputType(0)).dtype;
  // The differences from 1 that matter are lost in 16 bits.
  Formula formula(node, IsSixteenBitFloat(dtype) ? DType::kFloat32 : dtype);
  const Expr data = formula.Cast(COLLAGE_TRY(node.Input(0)), formula.dtype());
  const Expr negative = formula.Call("minimum", data, 0.0);
  const Expr exponent = divisor == 1 ? negative : formula.Call("divide", negative, divisor);
  const Expr curve = formula.Call("multiply", formula.Call("subtract", formula.Call("exp", exponent), 1.0), scale);
  const Expr positive = formula.Call("maximum", data, 0.0);
  const Expr result = formula.Call("add", gamma == 1 ? positive : formula.Call("multiply", positive, gamma), curve);
  return formula.Done(formula.Cast(result, dtype));
}

Result<std::vector<Expr>> ReadElu(NodeReader& node) { return ExponentialUnit(node, 1, COLLAGE_TRY(node.Float("alpha", 1)), 1); }

Result<std::vector<Expr>> ReadSelu(NodeReader& node) {
  const double gamma = COLLAGE_TRY(node.Float("gamma", 1.05070102214813232421875F));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1.67326319217681884765625F));
  return ExponentialUnit(node, gamma, gamma * alpha, 1);
}

Result<std::vector<Expr>> ReadCelu(NodeReader& node) {
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  return ExponentialUnit(node, 1, alpha, alpha);
}

Result<std::vector<Expr>> ReadSoftplus(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(Softplus(formula, COLLAGE_TRY(node.Input(0))));
}

Result<std::vector<Expr>> ReadMish(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("multiply", data, formula.Call("tanh", Softplus(formula, data))));
}

Result<std::vector<Expr>> ReadSoftsign(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("divide", data, formula.Call("add", formula.Call("abs", data), 1.0)));
}

Result<std::vector<Expr>> ReadThresholdedRelu(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("where", formula.Call("greater", data, alpha), data, 0.0));
}

Expr HardSigmoidOf(Formula& formula, const Expr& data, double alpha, double beta) {
  return formula.Clip(formula.Call("add", formula.Call("multiply", data, alpha), beta), 0, 1);
}

Result<std::vector<Expr>> ReadHardSigmoid(NodeReader& node) {
  const double alpha = COLLAGE_TRY(node.Float("alpha", 0.2F));
  const double beta = COLLAGE_TRY(node.Float("beta", 0.5F));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(HardSigmoidOf(formula, COLLAGE_TRY(node.Input(0)), alpha, beta));
}

Result<std::vector<Expr>> ReadHardSwish(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("multiply", data, HardSigmoidOf(formula, data, 1.0 / 6, 0.5)));
}

Result<std::vector<Expr>> ReadSwish(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr scaled = alpha == 1 ? data : formula.Call("multiply", data, alpha);
  return formula.Done(formula.Call("multiply", data, formula.Call("sigmoid", scaled)));
}

/// x / 2 * (1 + erf(x / sqrt(2))), or its tanh approximation (Hendrycks and Gimpel 2016).
Result<std::vector<Expr>> ReadGelu(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const std::string approximate = COLLAGE_TRY(node.String("approximate", "none"));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  Expr curve;
  if (approximate == "tanh") {
    const Expr cube = formula.Call("multiply", formula.Call("multiply", data, data), data);
    const Expr inner = formula.Call("add", data, formula.Call("multiply", cube, 0.044715));
    curve = formula.Call("tanh", formula.Call("multiply", inner, std::sqrt(2 / std::numbers::pi)));
  } else if (approximate == "none") {
    curve = formula.Call("erf", formula.Call("divide", data, std::numbers::sqrt2));
  } else {
    return Fail("attribute 'approximate' is '" + approximate + "'; none or tanh is right");
  }
  return formula.Done(formula.Call("multiply", formula.Call("multiply", data, 0.5), formula.Call("add", curve, 1.0)));
}

/// Until opset 12 everything from `axis` on is one dimension.
Result<std::vector<Expr>> ReadSoftmaxLike(NodeReader& node, const std::string& op) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const bool flattens = node.opset() < 13;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", flattens ? 1 : -1)), shape.size()));
  const int64_t after = ElementCount(Shape(shape.begin() + axis + 1, shape.end()));
  if (!flattens || after == 1) return std::vector<Expr>{COLLAGE_TRY(node.Call(op, {data}, {{"axis", axis}}))};
  const int64_t before = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  const Expr matrix = COLLAGE_TRY(node.Reshape(data, {before, shape[static_cast<size_t>(axis)] * after}));
  const Expr result = COLLAGE_TRY(node.Call(op, {matrix}, {{"axis", -1}}));
  return std::vector<Expr>{COLLAGE_TRY(node.Reshape(result, shape))};
}

Result<std::vector<Expr>> ReadSoftmax(NodeReader& node) { return ReadSoftmaxLike(node, "nn.softmax"); }
Result<std::vector<Expr>> ReadLogSoftmax(NodeReader& node) { return ReadSoftmaxLike(node, "nn.log_softmax"); }

Status WriteLeakyRelu(NodeWriter& writer) {
  writer.Emit("LeakyRelu", writer.Inputs(), {{"alpha", static_cast<float>(COLLAGE_TRY(writer.attributes().Double("alpha", 0.01)))}});
  return {};
}

Status WritePRelu(NodeWriter& writer) {
  const int64_t rank = static_cast<int64_t>(writer.InputType(0).shape.size());
  int64_t axis = COLLAGE_TRY(writer.attributes().Int("axis", 1));
  if (axis < 0) axis += rank;
  Shape column(static_cast<size_t>(rank - axis), 1);
  column[0] = writer.InputType(1).shape[0];
  writer.Emit("PRelu", {writer.Input(0), writer.EmitIntermediate("Reshape", {writer.Input(1), writer.Ints(column)})});
  return {};
}

Status WriteClip(NodeWriter& writer) {
  const DType dtype = writer.InputType(0).dtype;
  const double low = COLLAGE_TRY(writer.attributes().Double("a_min", std::numeric_limits<float>::lowest()));
  const double high = COLLAGE_TRY(writer.attributes().Double("a_max", std::numeric_limits<float>::max()));
  writer.Emit("Clip", {writer.Input(0), writer.Scalar(low, dtype), writer.Scalar(high, dtype)});
  return {};
}

template <OperatorName op_type>
Status WriteSoftmaxLike(NodeWriter& writer) {
  writer.Emit(op_type.text, writer.Inputs(), {{"axis", COLLAGE_TRY(writer.attributes().Int("axis", -1))}});
  return {};
}

}  // namespace

OperatorFamily ActivationFamily() {
  static constexpr ReadRow kRead[] = {{"Relu", ReadDirect<"nn.relu">},
                                      {"LeakyRelu", ReadLeakyRelu},
                                      {"PRelu", ReadPRelu},
                                      {"Clip", ReadClip},
                                      {"Elu", ReadElu},
                                      {"Selu", ReadSelu},
                                      {"Celu", ReadCelu},
                                      {"Softplus", ReadSoftplus},
                                      {"Mish", ReadMish},
                                      {"Softsign", ReadSoftsign},
                                      {"ThresholdedRelu", ReadThresholdedRelu},
                                      {"HardSigmoid", ReadHardSigmoid},
                                      {"HardSwish", ReadHardSwish},
                                      {"Swish", ReadSwish},
                                      {"Gelu", ReadGelu},
                                      {"Sigmoid", ReadDirect<"sigmoid">},
                                      {"Tanh", ReadDirect<"tanh">},
                                      {"Softmax", ReadSoftmax},
                                      {"LogSoftmax", ReadLogSoftmax}};
  static constexpr WriteRow kWrite[] = {{"nn.relu", WriteDirect<"Relu">},
                                        {"nn.leaky_relu", WriteLeakyRelu},
                                        {"nn.prelu", WritePRelu},
                                        {"clip", WriteClip},
                                        {"sigmoid", WriteDirect<"Sigmoid">},
                                        {"tanh", WriteDirect<"Tanh">},
                                        {"nn.softmax", WriteSoftmaxLike<"Softmax">},
                                        {"nn.log_softmax", WriteSoftmaxLike<"LogSoftmax">}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
