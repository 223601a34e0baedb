#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/window.h"

// The operators of com.microsoft that exporters and optimisers emit, as compositions of others.

namespace collage::onnx_io {
namespace {

/// x / 2 * (1 + erf(x / sqrt(2))).
Expr Gelu(Formula& formula, const Expr& x) {
  const Expr curve = formula.Call("erf", formula.Call("divide", x, std::numbers::sqrt2));
  return formula.Call("multiply", formula.Call("multiply", x, 0.5), formula.Call("add", curve, 1.0));
}

/// Its approximation by tanh (Hendrycks and Gimpel 2016).
Expr FastGelu(Formula& formula, const Expr& x) {
  const Expr cube = formula.Call("multiply", formula.Call("multiply", x, x), x);
  const Expr inner = formula.Call("add", x, formula.Call("multiply", cube, 0.044715));
  const Expr curve = formula.Call("tanh", formula.Call("multiply", inner, std::sqrt(2 / std::numbers::pi)));
  return formula.Call("multiply", formula.Call("multiply", x, 0.5), formula.Call("add", curve, 1.0));
}

/// The sum of input 0 and, where there is one, input 1.
Result<Expr> WithBias(NodeReader& node, Formula& formula) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  return node.HasInput(1) ? formula.Call("add", data, COLLAGE_TRY(node.Input(1))) : data;
}

template <auto function>
Result<std::vector<Expr>> ReadBiased(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr data = COLLAGE_TRY(WithBias(node, formula));
  return formula.Done(function(formula, data));
}

Result<std::vector<Expr>> ReadQuickGelu(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1.702F));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("multiply", data, formula.Call("sigmoid", formula.Call("multiply", data, alpha))));
}

/// The activations of fused operators, by ONNX's names.
Result<Expr> Activate(Formula& formula, const std::string& name, const Expr& x, const std::vector<float>& parameters) {
  const auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? static_cast<double>(parameters[i]) : fallback; };
  if (name.empty()) return x;
  if (name == "Relu") return formula.Call("nn.relu", x);
  if (name == "Tanh") return formula.Call("tanh", x);
  if (name == "Sigmoid") return formula.Call("sigmoid", x);
  if (name == "LeakyRelu") return formula.Apply("nn.leaky_relu", {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "Clip") {
    const double limit = std::numeric_limits<float>::max();
    return formula.Clip(x, parameter(0, -limit), parameter(1, limit));
  }
  if (name == "HardSigmoid") {
    return formula.Clip(formula.Call("add", formula.Call("multiply", x, parameter(0, 0.2)), parameter(1, 0.5)), 0, 1);
  }
  return Fail("attribute 'activation' is '" + name + "', which is not supported");
}

/// The last two dimensions swapped.
Expr SwapLast(Formula& formula, const Expr& data) {
  std::vector<int64_t> axes(Formula::ShapeOf(data).size());
  std::iota(axes.begin(), axes.end(), 0);
  if (axes.size() >= 2) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return formula.Transpose(data, axes);
}

Result<std::vector<Expr>> ReadFusedMatMul(NodeReader& node) {
  for (const char* name : {"transBatchA", "transBatchB"}) COLLAGE_TRY_STATUS(node.RequireInt(name, 0, 0));
  Expr a = COLLAGE_TRY(node.Input(0));
  Expr b = COLLAGE_TRY(node.Input(1));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(a));
  if (type.shape.size() < 2 || COLLAGE_TRY(TensorTypeOf(b)).shape.size() < 2) return Fail("A and B must have at least two dimensions");
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  Formula formula(node, type.dtype);
  if (COLLAGE_TRY(node.Int("transA", 0)) != 0) a = SwapLast(formula, a);
  if (COLLAGE_TRY(node.Int("transB", 0)) != 0) b = SwapLast(formula, b);
  const Expr product = formula.Apply("nn.matmul", {a, b});
  return formula.Done(alpha == 1 ? product : formula.Call("multiply", product, alpha));
}

/// A Conv with an addition and an activation behind it.
Result<std::vector<Expr>> ReadFusedConv(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Expr weight = COLLAGE_TRY(node.Input(1));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(weight)).shape;
  if (type.shape.size() != 4 || shape.size() != 4) return Fail("has a form for two spatial dimensions only");
  const Window window = COLLAGE_TRY(ReadWindow(node, type.shape, {shape[2], shape[3]}));
  Formula formula(node, type.dtype);
  Expr result = formula.Apply("nn.conv2d", {data, weight},
                              {{"strides", window.strides},
                               {"padding", window.padding},
                               {"dilation", window.dilations},
                               {"groups", COLLAGE_TRY(node.Int("group", 1))},
                               {"channels", shape[0]},
                               {"kernel_size", window.kernel}});
  if (node.HasInput(2)) result = formula.Apply("nn.bias_add", {result, COLLAGE_TRY(node.Input(2))}, {{"axis", 1}});
  if (node.HasInput(3)) result = formula.Call("add", result, COLLAGE_TRY(node.Input(3)));
  const Expr activated =
      COLLAGE_TRY(Activate(formula, COLLAGE_TRY(node.String("activation", "")), result, COLLAGE_TRY(node.Floats("activation_params", {}))));
  return formula.Done(activated);
}

/// Normalised over the last dimension; null inputs leave scale or shift out.
Expr LayerNorm(Formula& formula, const Expr& data, const Expr& gamma, const Expr& beta, double epsilon) {
  if (data == nullptr) return data;
  const Expr shift = beta != nullptr ? beta : formula.Zeros({Formula::ShapeOf(data).back()}, formula.dtype());
  return formula.Apply("nn.layer_norm", {data, gamma, shift}, {{"axis", -1}, {"epsilon", epsilon}});
}

/// data / sqrt(mean(data * data) + epsilon) * scale, over the dimensions from `axis` on.
Expr RootMeanSquareNorm(Formula& formula, const Expr& data, const Expr& scale, int64_t axis, double epsilon) {
  std::vector<int64_t> axes(Formula::ShapeOf(data).size() - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  const Expr mean = formula.Reduce("mean", formula.Call("multiply", data, data), axes, true);
  const Expr root = formula.Call("sqrt", formula.Call("add", mean, epsilon));
  return formula.Call("multiply", formula.Call("divide", data, root), scale);
}

/// Outputs: the result, two statistics that only training reads, and the sum that was normalised.
template <bool root_mean_square>
Result<std::vector<Expr>> ReadSkipNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  if (type.shape.empty()) return Fail("data must have dimensions");
  Formula formula(node, type.dtype);
  Expr sum = formula.Call("add", data, COLLAGE_TRY(node.Input(1)));
  const size_t bias = root_mean_square ? 3 : 4;
  if (node.HasInput(bias)) sum = formula.Call("add", sum, COLLAGE_TRY(node.Input(bias)));
  const double epsilon = COLLAGE_TRY(node.Float("epsilon", 1e-12F));
  const Expr gamma = COLLAGE_TRY(node.Input(2));
  COLLAGE_TRY(formula.Done(sum));
  if (root_mean_square) {
    return formula.DoneAll(
        {RootMeanSquareNorm(formula, sum, gamma, static_cast<int64_t>(type.shape.size()) - 1, epsilon), nullptr, nullptr, sum});
  }
  const Expr beta = node.HasInput(3) ? COLLAGE_TRY(node.Input(3)) : nullptr;
  return formula.DoneAll({LayerNorm(formula, sum, gamma, beta, epsilon), nullptr, nullptr, sum});
}

Result<std::vector<Expr>> ReadSimplifiedLayerNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", -1)), type.shape.size()));
  Formula formula(node, type.dtype);
  return formula.Done(RootMeanSquareNorm(formula, data, COLLAGE_TRY(node.Input(1)), axis, COLLAGE_TRY(node.Float("epsilon", 1e-5F))));
}

/// Softmax over the keys of (batch, heads, queries, keys), times the values.
Expr Attend(Formula& formula, const Expr& query, const Expr& key, const Expr& value, double scale, const Expr& bias) {
  Expr scores = formula.Call("multiply", formula.Apply("nn.matmul", {query, key}, {{"transpose_b", true}}), scale);
  if (bias != nullptr) scores = formula.Call("add", scores, bias);
  return formula.Apply("nn.matmul", {formula.Apply("nn.softmax", {scores}, {{"axis", -1}}), value});
}

/// (batch, length, heads * size) <-> (batch, heads, length, size).
Expr SplitHeads(Formula& formula, const Expr& data, int64_t heads) {
  const Shape shape = Formula::ShapeOf(data);
  if (!formula.ok()) return nullptr;
  return formula.Transpose(formula.Reshape(data, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Expr JoinHeads(Formula& formula, const Expr& data) {
  const Shape shape = Formula::ShapeOf(data);
  if (!formula.ok()) return nullptr;
  return formula.Reshape(formula.Transpose(data, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

/// What is not to be looked at gets a score of mask_filter_value: keys whose (batch, keys) mask is 0.
Expr MaskBias(Formula& formula, const Expr& mask, double filter) {
  const Shape shape = Formula::ShapeOf(mask);
  if (!formula.ok()) return nullptr;
  const Expr allowed = formula.Cast(formula.Reshape(mask, {shape[0], 1, 1, shape[1]}), DType::kBool);
  return formula.Call("where", allowed, 0.0, filter);
}

Expr Sum(Formula& formula, const Expr& a, const Expr& b) { return a == nullptr ? b : b == nullptr ? a : formula.Call("add", a, b); }

Status CheckHeads(const NodeReader& node, size_t input, int64_t heads) {
  const Shape shape = COLLAGE_TRY(node.InputType(input)).shape;
  if (shape.size() == 3 && heads >= 1 && shape[2] % heads == 0) return {};
  return Fail("input " + std::to_string(input) + " of shape " + ToString(shape) + " does not have 'num_heads' = " + std::to_string(heads) +
              " heads");
}

/// Separate query, key and value of three dimensions each; one bias for the three in a row.
Result<std::vector<Expr>> ReadMultiHeadAttention(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const int64_t heads = COLLAGE_TRY(node.Int("num_heads", 0));
  COLLAGE_TRY_STATUS(node.RequireInt("unidirectional", 0, 0));
  Formula formula(node, type.dtype);
  std::vector<Expr> parts;
  int64_t place = 0;
  for (size_t i = 0; i < 3; ++i) {
    COLLAGE_TRY_STATUS(CheckHeads(node, i, heads));
    Expr part = COLLAGE_TRY(node.Input(i));
    const int64_t width = Formula::ShapeOf(part)[2];
    if (node.HasInput(3)) part = formula.Call("add", part, formula.Slice(COLLAGE_TRY(node.Input(3)), 0, place, place + width));
    place += width;
    parts.push_back(SplitHeads(formula, part, heads));
  }
  for (size_t i : {6, 7}) {
    if (node.HasInput(i)) parts[i - 5] = formula.Concatenate({COLLAGE_TRY(node.Input(i)), parts[i - 5]}, 2);
  }
  Expr bias;
  if (node.HasInput(4)) {
    if (COLLAGE_TRY(node.InputType(4)).shape.size() != 2) return Fail("input 4 (key_padding_mask) must have two dimensions");
    bias = MaskBias(formula, COLLAGE_TRY(node.Input(4)), COLLAGE_TRY(node.Float("mask_filter_value", -10000)));
  }
  if (node.HasInput(5)) bias = Sum(formula, bias, COLLAGE_TRY(node.Input(5)));
  const double size = static_cast<double>(type.shape[2] / heads);
  const double given = COLLAGE_TRY(node.Float("scale", 0));
  const Expr result = Attend(formula, parts[0], parts[1], parts[2], given != 0 ? given : 1 / std::sqrt(size), bias);
  return formula.DoneAll({JoinHeads(formula, result), parts[1], parts[2]});
}

/// One weight for query, key and value in a row.
Result<std::vector<Expr>> ReadContribAttention(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t heads = COLLAGE_TRY(node.Int("num_heads", 0));
  const Shape weight = COLLAGE_TRY(node.InputType(1)).shape;
  if (node.HasInput(4)) return Fail("input 4 (past) is not supported");
  if (type.shape.size() != 3 || weight.size() != 2 || weight[0] != type.shape[2]) {
    return Fail("data " + ToString(type.shape) + " and weights " + ToString(weight) + " do not fit");
  }
  const int64_t third = weight[1] / 3;
  const std::vector<int64_t> widths = COLLAGE_TRY(node.Ints("qkv_hidden_sizes", {third, third, third}));
  if (widths.size() != 3 || std::accumulate(widths.begin(), widths.end(), int64_t{0}) != weight[1] || heads < 1 || widths[0] % heads != 0 ||
      widths[1] != widths[0] || widths[2] % heads != 0) {
    return Fail("weights " + ToString(weight) + " do not split into query, key and value of " + std::to_string(heads) + " heads");
  }
  Formula formula(node, type.dtype);
  Expr all = formula.Apply("nn.matmul", {data, COLLAGE_TRY(node.Input(1))});
  if (node.HasInput(2)) all = formula.Call("add", all, COLLAGE_TRY(node.Input(2)));
  std::vector<Expr> parts;
  int64_t place = 0;
  for (int64_t width : widths) {
    parts.push_back(SplitHeads(formula, formula.Slice(all, 2, place, place + width), heads));
    place += width;
  }
  const double filter = COLLAGE_TRY(node.Float("mask_filter_value", -10000));
  Expr bias;
  if (node.HasInput(3)) {
    if (COLLAGE_TRY(node.InputType(3)).shape != Shape{type.shape[0], type.shape[1]})
      return Fail("input 3 (mask_index) must be (batch, length)");
    bias = MaskBias(formula, COLLAGE_TRY(node.Input(3)), filter);
  }
  if (COLLAGE_TRY(node.Int("unidirectional", 0)) != 0) {
    const Expr ones = formula.Broadcast(formula.Number(1), {1, 1, type.shape[1], type.shape[1]});
    const Expr seen = formula.Cast(formula.Apply("trilu", {ones}, {{"k", 0}, {"upper", false}}), DType::kBool);
    bias = Sum(formula, bias, formula.Call("where", seen, 0.0, filter));
  }
  if (node.HasInput(5)) bias = Sum(formula, bias, COLLAGE_TRY(node.Input(5)));
  const double given = COLLAGE_TRY(node.Float("scale", 0));
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(widths[0] / heads));
  return formula.Done(JoinHeads(formula, Attend(formula, parts[0], parts[1], parts[2], scale, bias)));
}

/// B is quantized in blocks along its columns: (N, blocks, bytes of a block), 4 bits (low ones first) or 8 an element.
Result<std::vector<Expr>> ReadMatMulNBits(NodeReader& node) {
  const Expr a = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(a));
  const int64_t depth = COLLAGE_TRY(node.Int("K", 0));
  const int64_t columns = COLLAGE_TRY(node.Int("N", 0));
  const int64_t bits = COLLAGE_TRY(node.Int("bits", 4));
  const int64_t block = COLLAGE_TRY(node.Int("block_size", 0));
  if ((bits != 4 && bits != 8) || block < 2 || depth < 1 || columns < 1) {
    return Fail("has " + std::to_string(bits) + " bits in blocks of " + std::to_string(block) + "; 4 or 8 bits are supported");
  }
  if (node.HasInput(4)) return Fail("input 4 (g_idx) is not supported");
  const int64_t blocks = (depth + block - 1) / block;
  Formula formula(node, type.dtype);
  // Bytes, (N, blocks, n) each with its low half first, as numbers.
  const auto unpack = [&](const Expr& bytes, const Shape& shape) {
    if (bits == 8) return formula.Cast(formula.Reshape(bytes, shape), type.dtype);
    Formula integers(node, DType::kUInt8);
    const Expr pairs = integers.Apply(
        "stack", {MakeTuple({integers.Call("bitwise_and", bytes, 15.0), integers.Call("right_shift", bytes, 4.0)})}, {{"axis", -1}});
    const Shape packed = Formula::ShapeOf(pairs);
    const int64_t row = ElementCount(packed) / shape[0];
    Expr flat = integers.Reshape(pairs, {shape[0], row});
    const int64_t wanted = ElementCount(shape) / shape[0];
    if (integers.ok() && row > wanted) flat = integers.Slice(flat, 1, 0, wanted);  // an odd number of zero points fills up its last byte
    return formula.Cast(formula.Reshape(flat, shape), type.dtype);
  };
  const int64_t bytes = blocks * block * bits / 8;
  const Expr packed = COLLAGE_TRY(node.Reshape(COLLAGE_TRY(node.Input(1)), {columns, bytes}));
  const Expr values = unpack(packed, {columns, blocks, block});
  const Expr scales = formula.Reshape(COLLAGE_TRY(node.Input(2)), {columns, blocks, 1});
  Expr zero = formula.Number(bits == 4 ? 8 : 128);
  if (node.HasInput(3)) {
    const Expr points = COLLAGE_TRY(node.Input(3));
    if (COLLAGE_TRY(TensorTypeOf(points)).dtype != DType::kUInt8) return Fail("input 3 (zero_points) must be uint8");
    const int64_t row = COLLAGE_TRY(TensorTypeOf(points)).ElementCount() / columns;
    zero = unpack(COLLAGE_TRY(node.Reshape(points, {columns, row})), {columns, blocks, 1});
  }
  Expr weight = formula.Call("multiply", formula.Call("subtract", values, zero), scales);
  weight = formula.Reshape(weight, {columns, blocks * block});
  if (blocks * block > depth) weight = formula.Slice(weight, 1, 0, depth);
  Expr result = formula.Apply("nn.dense", {a, weight}, {{"units", columns}});
  if (node.HasInput(5)) result = formula.Call("add", result, COLLAGE_TRY(node.Input(5)));
  return formula.Done(result);
}

/// Operators on quantized tensors as ONNX Runtime's optimiser makes them: (data, scale, zero point) for each operand, then the
/// scale and zero point of the result.
Result<Expr> Dequantized(NodeReader& node, Formula& formula, size_t first) {
  const Expr scale = formula.Reshape(COLLAGE_TRY(node.Input(first + 1)), {});
  const Expr data = COLLAGE_TRY(node.Input(first));
  const Expr zero = node.HasInput(first + 2) ? formula.Reshape(COLLAGE_TRY(node.Input(first + 2)), {})
                                             : formula.Zeros({}, COLLAGE_TRY(TensorTypeOf(data)).dtype);
  return formula.Apply("qnn.dequantize", {data, scale, zero});
}

Result<std::vector<Expr>> Quantized(NodeReader& node, Formula& formula, const Expr& real, size_t first, DType dtype) {
  const Expr scale = formula.Reshape(COLLAGE_TRY(node.Input(first)), {});
  const Expr zero = node.HasInput(first + 1) ? formula.Reshape(COLLAGE_TRY(node.Input(first + 1)), {}) : formula.Zeros({}, dtype);
  return formula.Done(formula.Apply("qnn.quantize", {real, scale, zero}));
}

template <bool multiply>
Result<std::vector<Expr>> ReadQLinearBinary(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  const Expr a = COLLAGE_TRY(Dequantized(node, formula, 0));
  const Expr b = COLLAGE_TRY(Dequantized(node, formula, 3));
  return Quantized(node, formula, formula.Call(multiply ? "multiply" : "add", a, b), 6, COLLAGE_TRY(node.InputType(0)).dtype);
}

template <bool leaky>
Result<std::vector<Expr>> ReadQLinearUnary(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  const Expr data = COLLAGE_TRY(Dequantized(node, formula, 0));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 0.01F));
  const Expr result = leaky ? formula.Apply("nn.leaky_relu", {data}, {{"alpha", alpha}}) : formula.Call("sigmoid", data);
  return Quantized(node, formula, result, 3, COLLAGE_TRY(node.InputType(0)).dtype);
}

Result<std::vector<Expr>> ReadQLinearGlobalAveragePool(NodeReader& node) {
  COLLAGE_TRY_STATUS(node.RequireInt("channels_last", 0, 0));
  Formula formula(node, DType::kFloat32);
  const Expr data = COLLAGE_TRY(Dequantized(node, formula, 0));
  std::vector<int64_t> axes;
  for (size_t i = 2; i < COLLAGE_TRY(node.InputType(0)).shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return Quantized(node, formula, formula.Reduce("mean", data, axes, true), 3, COLLAGE_TRY(node.InputType(0)).dtype);
}

/// The scale and zero point of the result come first.
Result<std::vector<Expr>> ReadQLinearConcat(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  std::vector<Expr> parts;
  for (size_t i = 2; i < node.input_count(); i += 3) parts.push_back(COLLAGE_TRY(Dequantized(node, formula, i)));
  if (parts.empty()) return Fail("has no tensors to join");
  const int64_t axis = COLLAGE_TRY(node.Int("axis", 0));
  return Quantized(node, formula, formula.Concatenate(parts, axis), 0, COLLAGE_TRY(node.InputType(2)).dtype);
}

constexpr ReadRow kRead[] = {{"com.microsoft.Gelu", ReadBiased<Gelu>},
                             {"com.microsoft.BiasGelu", ReadBiased<Gelu>},
                             {"com.microsoft.FastGelu", ReadBiased<FastGelu>},
                             {"com.microsoft.QuickGelu", ReadQuickGelu},
                             {"com.microsoft.FusedMatMul", ReadFusedMatMul},
                             {"com.microsoft.TransposeMatMul", ReadFusedMatMul},
                             {"com.microsoft.FusedConv", ReadFusedConv},
                             {"com.microsoft.SkipLayerNormalization", ReadSkipNormalization<false>},
                             {"com.microsoft.SkipSimplifiedLayerNormalization", ReadSkipNormalization<true>},
                             {"SimplifiedLayerNormalization", ReadSimplifiedLayerNormalization},
                             {"com.microsoft.MultiHeadAttention", ReadMultiHeadAttention},
                             {"com.microsoft.Attention", ReadContribAttention},
                             {"com.microsoft.MatMulNBits", ReadMatMulNBits},
                             {"com.microsoft.QLinearAdd", ReadQLinearBinary<false>},
                             {"com.microsoft.QLinearMul", ReadQLinearBinary<true>},
                             {"com.microsoft.QLinearSigmoid", ReadQLinearUnary<false>},
                             {"com.microsoft.QLinearLeakyRelu", ReadQLinearUnary<true>},
                             {"com.microsoft.QLinearGlobalAveragePool", ReadQLinearGlobalAveragePool},
                             {"com.microsoft.QLinearConcat", ReadQLinearConcat}};

}  // namespace

OperatorFamily ContribFamily() { return {kRead, {}}; }

}  // namespace collage::onnx_io
