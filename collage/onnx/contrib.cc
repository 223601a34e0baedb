#include <algorithm>
#include <limits>
#include <numeric>

#include "collage/onnx/curves.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"

// The operators of com.microsoft that exporters and optimisers emit, as compositions of others.

namespace collage::onnx_io {
namespace {

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
  if (name == "HardSwish")
    return formula.Call("multiply", x, formula.Clip(formula.Call("add", formula.Call("multiply", x, 1.0 / 6), 0.5), 0, 1));
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

/// The first dimension moved behind those of the batch, in front of the last.
Expr FirstBehindBatch(Formula& formula, const Expr& data) {
  std::vector<int64_t> axes(Formula::ShapeOf(data).size());
  std::iota(axes.begin(), axes.end(), 0);
  if (axes.size() > 2) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  return formula.Transpose(data, axes);
}

Result<std::vector<Expr>> ReadFusedMatMul(NodeReader& node) {
  Expr a = COLLAGE_TRY(node.Input(0));
  Expr b = COLLAGE_TRY(node.Input(1));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(a));
  if (type.shape.size() < 2 || COLLAGE_TRY(TensorTypeOf(b)).shape.size() < 2) return Fail("A and B must have at least two dimensions");
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  Formula formula(node, type.dtype);
  if (COLLAGE_TRY(node.Int("transBatchA", 0)) != 0) a = FirstBehindBatch(formula, a);
  if (COLLAGE_TRY(node.Int("transBatchB", 0)) != 0) b = FirstBehindBatch(formula, b);
  if (COLLAGE_TRY(node.Int("transA", 0)) != 0) a = SwapLast(formula, a);
  if (COLLAGE_TRY(node.Int("transB", 0)) != 0) b = SwapLast(formula, b);
  const Expr product = formula.Apply("nn.matmul", {a, b});
  return formula.Done(alpha == 1 ? product : formula.Call("multiply", product, alpha));
}

/// A Conv with an addition and an activation behind it.
Result<std::vector<Expr>> ReadFusedConv(NodeReader& node) {
  const Expr bias = node.HasInput(2) ? COLLAGE_TRY(node.Input(2)) : Expr();
  Expr result = COLLAGE_TRY(node.ReadAs("Conv", {COLLAGE_TRY(node.Input(0)), COLLAGE_TRY(node.Input(1)), bias}))[0];
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  if (node.HasInput(3)) result = formula.Call("add", result, COLLAGE_TRY(node.Input(3)));
  const Expr activated =
      COLLAGE_TRY(Activate(formula, COLLAGE_TRY(node.String("activation", "")), result, COLLAGE_TRY(node.Floats("activation_params", {}))));
  return formula.Done(activated);
}

/// A Gemm with an activation behind it, whose parameters are attributes of their own.
Result<std::vector<Expr>> ReadFusedGemm(NodeReader& node) {
  const Expr result = COLLAGE_TRY(node.ReadAs("Gemm", COLLAGE_TRY(node.Inputs())))[0];
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (node.HasAttribute(name)) parameters.push_back(COLLAGE_TRY(node.Float(name, 0)));
  }
  const Expr activated = COLLAGE_TRY(Activate(formula, COLLAGE_TRY(node.String("activation", "")), result, parameters));
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

/// Rows of a table at given places.
Expr Rows(Formula& formula, const Expr& table, const Expr& places) {
  return formula.Apply("take", {table, places}, {{"axis", 0}, {"mode", "clip"}});
}

/// What input 2 to 6 of an embedding mean, or rows of it: with `quantized`, a scale and a zero point lie behind all of them.
template <bool quantized>
Result<Expr> RealRows(NodeReader& node, Formula& formula, size_t input, const Expr& rows) {
  if (!quantized) return rows;
  const auto scalar = [&](size_t of) -> Result<Expr> { return formula.Reshape(COLLAGE_TRY(node.Input(of)), {}); };
  return formula.Apply("qnn.dequantize", {rows, COLLAGE_TRY(scalar(input + 6)), COLLAGE_TRY(scalar(input + 11))});
}

/// Embeddings of words, of places and, where there are any, of segments, summed and normalised. Outputs: the result, how many words
/// of each sentence its mask lets through, and the sum.
template <bool quantized>
Result<std::vector<Expr>> ReadEmbedLayerNormalization(NodeReader& node) {
  const Expr words = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(words)).shape;
  const Expr places = COLLAGE_TRY(node.Input(3));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(places));
  if (shape.size() != 2 || type.shape.size() != 2 || type.shape[0] < shape[1]) {
    return Fail("words " + ToString(shape) + " and embeddings of their places " + ToString(type.shape) + " do not fit");
  }
  Formula formula(node, quantized ? DType::kFloat32 : type.dtype);
  const auto real = [&](size_t input, const Expr& rows) { return RealRows<quantized>(node, formula, input, rows); };
  const bool has_places = !quantized && node.HasInput(8);
  const Expr place = has_places ? Rows(formula, places, COLLAGE_TRY(node.Input(8))) : formula.Slice(places, 0, 0, shape[1]);
  const Expr word = Rows(formula, COLLAGE_TRY(node.Input(2)), words);
  Expr sum = formula.Call("add", COLLAGE_TRY(real(2, word)), COLLAGE_TRY(real(3, place)));
  if (node.HasInput(1)) {
    const Expr segment = Rows(formula, COLLAGE_TRY(node.Input(4)), COLLAGE_TRY(node.Input(1)));
    sum = formula.Call("add", sum, COLLAGE_TRY(real(4, segment)));
  }
  const Expr gamma = COLLAGE_TRY(real(5, COLLAGE_TRY(node.Input(5))));
  const Expr beta = COLLAGE_TRY(real(6, COLLAGE_TRY(node.Input(6))));
  const Expr result = LayerNorm(formula, sum, gamma, beta, COLLAGE_TRY(node.Float("epsilon", 1e-12F)));
  const Expr counts =
      node.HasInput(7) ? formula.Reduce("sum", COLLAGE_TRY(node.Input(7)), {1}, false) : formula.Zeros({shape[0]}, DType::kInt32);
  if (quantized) return formula.DoneAll({result, counts});
  return formula.DoneAll({result, counts, sum});
}

}  // namespace

OperatorFamily ContribFamily() {
  static constexpr ReadRow kRead[] = {{"com.microsoft.Gelu", ReadBiased<Gelu>},
                                      {"com.microsoft.BiasGelu", ReadBiased<Gelu>},
                                      {"com.microsoft.FastGelu", ReadBiased<FastGelu>},
                                      {"com.microsoft.QuickGelu", ReadQuickGelu},
                                      {"com.microsoft.FusedMatMul", ReadFusedMatMul},
                                      {"com.microsoft.TransposeMatMul", ReadFusedMatMul},
                                      {"com.microsoft.FusedConv", ReadFusedConv},
                                      {"com.microsoft.FusedGemm", ReadFusedGemm},
                                      {"com.microsoft.SkipLayerNormalization", ReadSkipNormalization<false>},
                                      {"com.microsoft.SkipSimplifiedLayerNormalization", ReadSkipNormalization<true>},
                                      {"com.microsoft.EmbedLayerNormalization", ReadEmbedLayerNormalization<false>},
                                      {"com.microsoft.QEmbedLayerNormalization", ReadEmbedLayerNormalization<true>},
                                      {"SimplifiedLayerNormalization", ReadSimplifiedLayerNormalization},
                                      {"com.microsoft.Trilu", ReadAsDefault<"Trilu">},
                                      {"com.microsoft.GatherND", ReadAsDefault<"GatherND">},
                                      {"com.microsoft.Pad", ReadAsDefault<"Pad">},
                                      {"com.microsoft.Range", ReadAsDefault<"Range">}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
