#include <cmath>
#include <limits>
#include <numeric>

#include "collage/onnx/curves.h"
#include "collage/onnx/data_type.h"
#include "collage/onnx/flex_attention.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/heads.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// (batch, length, heads * size) as (batch, heads, length, size); four dimensions are that already.
Result<Expr> HeadsOf(NodeReader& node, Formula& formula, size_t input, const char* attribute) {
  const Expr data = COLLAGE_TRY(node.Input(input));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  if (shape.size() == 4) return data;
  const int64_t heads = COLLAGE_TRY(node.Int(attribute, 0));
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0) {
    return Fail("input " + std::to_string(input) + " of shape " + ToString(shape) + " does not have '" + attribute +
                "' = " + std::to_string(heads) + " heads");
  }
  return SplitHeads(formula, data, heads);
}

/// 0 where allowed, minus infinity elsewhere.
Expr Bias(Formula& formula, const Expr& allowed) { return formula.Call("where", allowed, 0.0, -kInfinity); }

/// The scores that a query may take into account, as an addend; null where it may take all.
class AttentionBias {
 public:
  AttentionBias(NodeReader& node, Formula& formula, int64_t batch, int64_t queries, int64_t keys, int64_t past)
      : node_(node), formula_(formula), batch_(batch), queries_(queries), keys_(keys), past_(past) {}

  Result<Expr> Make() {
    if (node_.HasInput(3)) COLLAGE_TRY_STATUS(AddMask());
    const bool causal = COLLAGE_TRY(node_.Int("is_causal", 0)) != 0;
    const int64_t left = COLLAGE_TRY(node_.Int("left_window_size", -1));
    const int64_t right = COLLAGE_TRY(node_.Int("right_window_size", -1));
    if (causal || left >= 0 || right >= 0) {
      const Expr distance = COLLAGE_TRY(Distance());
      if (causal) Add(Bias(formula_, integers_.Call("greater_equal", distance, 0.0)));
      if (left >= 0) Add(Bias(formula_, integers_.Call("less_equal", distance, static_cast<double>(left))));
      if (right >= 0) Add(Bias(formula_, integers_.Call("greater_equal", distance, -static_cast<double>(right))));
    }
    if (node_.HasInput(6)) Add(Bias(formula_, integers_.Call("less", integers_.Iota({1, 1, 1, keys_}), COLLAGE_TRY(ValidKeys()))));
    COLLAGE_TRY(integers_.Done(nullptr));
    return bias_;
  }

 private:
  void Add(const Expr& addend) { bias_ = bias_ == nullptr ? addend : formula_.Call("add", bias_, addend); }

  /// Keys beyond the mask are not allowed.
  Status AddMask() {
    Expr mask = COLLAGE_TRY(node_.Input(3));
    const TensorType type = COLLAGE_TRY(TensorTypeOf(mask));
    if (type.shape.empty()) return Fail("input 3 (attn_mask) must have dimensions");
    if (type.dtype == DType::kBool) mask = Bias(formula_, mask);
    const int64_t missing = keys_ - type.shape.back();
    if (missing > 0 && type.shape.back() != 1) {
      AttributeValue::List widths;
      for (size_t i = 0; i < type.shape.size(); ++i) widths.emplace_back(std::vector<int64_t>{0, i + 1 == type.shape.size() ? missing : 0});
      mask = formula_.Apply("nn.pad", {mask, formula_.Number(-kInfinity)}, {{"pad_width", widths}, {"pad_mode", "constant"}});
    }
    Add(mask);
    return {};
  }

  Result<Expr> ValidKeys() { return integers_.Reshape(integers_.Cast(COLLAGE_TRY(node_.Input(6)), DType::kInt64), {batch_, 1, 1, 1}); }

  /// How many places a key lies before the query: query + offset - key.
  Result<Expr> Distance() {
    const Expr distance = integers_.Call("subtract", integers_.Iota({1, 1, queries_, 1}), integers_.Iota({1, 1, 1, keys_}));
    if (!node_.HasInput(6)) return integers_.Call("add", distance, static_cast<double>(past_));
    const Expr offset = integers_.Call("subtract", COLLAGE_TRY(ValidKeys()), static_cast<double>(queries_));
    return integers_.Call("add", distance, offset);
  }

  NodeReader& node_;
  Formula& formula_;
  Formula integers_{node_, DType::kInt64};
  int64_t batch_;
  int64_t queries_;
  int64_t keys_;
  int64_t past_;
  Expr bias_;
};

/// Softmax over the keys in which a row that allows none is zero.
Expr MaskedSoftmax(Formula& formula, const Expr& scores, bool may_mask_rows) {
  const Expr probability = formula.Apply("nn.softmax", {scores}, {{"axis", -1}});
  if (!may_mask_rows) return probability;
  const Expr largest = formula.Reduce("max", scores, {-1}, true);
  return formula.Call("where", formula.Call("equal", largest, -kInfinity), 0.0, probability);
}

/// The dtype of the softmax.
Result<DType> SoftmaxPrecision(const NodeReader& node, DType dtype) {
  if (!node.HasAttribute("softmax_precision")) return dtype;
  const int64_t number = COLLAGE_TRY(node.Int("softmax_precision", 0));
  const std::optional<DType> precision = DTypeOfOnnx(number);
  if (precision && IsFloatingPoint(*precision)) return *precision;
  return Fail("attribute 'softmax_precision' is the data type " + std::to_string(number) + ", which is no floating point type");
}

/// Past keys or values come before those of this call.
Result<Expr> WithPast(NodeReader& node, Formula& formula, const Expr& data, size_t input) {
  if (!node.HasInput(input)) return data;
  return formula.Concatenate({COLLAGE_TRY(node.Input(input)), data}, 2);
}

struct Scores {
  Expr probability;
  Expr reported;  ///< qk_matmul_output
};

Result<Scores> ComputeScores(NodeReader& node, Formula& formula, const Expr& query, const Expr& key, double scale, const Expr& bias) {
  const double root = std::sqrt(scale);
  const Expr scaled_key = formula.Call("multiply", key, root);
  Expr scores = formula.Apply("nn.matmul", {formula.Call("multiply", query, root), scaled_key}, {{"transpose_b", true}});
  const int64_t mode = COLLAGE_TRY(node.Int("qk_matmul_output_mode", 0));
  Scores result{nullptr, scores};
  const double softcap = COLLAGE_TRY(node.Float("softcap", 0));
  if (softcap > 0) scores = formula.Call("multiply", formula.Call("tanh", formula.Call("divide", scores, softcap)), softcap);
  if (mode == 1) result.reported = scores;
  if (bias != nullptr) scores = formula.Call("add", scores, bias);
  if (mode == 2) result.reported = scores;
  const DType dtype = formula.dtype();
  const DType precision = COLLAGE_TRY(SoftmaxPrecision(node, dtype));
  Formula precise(node, precision);
  const Expr probability = MaskedSoftmax(precise, precise.Cast(scores, precision), bias != nullptr);
  COLLAGE_TRY(precise.Done(probability));
  result.probability = formula.Cast(probability, dtype);
  if (mode == 3) result.reported = result.probability;
  return result;
}

/// Back to the form of the input: (batch, length, heads * size) where that had three dimensions.
Expr InFormOfInput(Formula& formula, const Expr& data, size_t rank) { return rank == 4 ? data : JoinHeads(formula, data); }

Result<std::vector<Expr>> ReadAttention(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  Formula formula(node, type.dtype);
  const Expr query = COLLAGE_TRY(HeadsOf(node, formula, 0, "q_num_heads"));
  Expr key = COLLAGE_TRY(HeadsOf(node, formula, 1, "kv_num_heads"));
  Expr value = COLLAGE_TRY(HeadsOf(node, formula, 2, "kv_num_heads"));
  const int64_t past = node.HasInput(4) && COLLAGE_TRY(node.InputType(4)).shape.size() == 4 ? COLLAGE_TRY(node.InputType(4)).shape[2] : 0;
  key = COLLAGE_TRY(WithPast(node, formula, key, 4));
  value = COLLAGE_TRY(WithPast(node, formula, value, 5));
  COLLAGE_TRY(formula.Done(value));
  const Shape queries = Formula::ShapeOf(query);
  const Shape keys = Formula::ShapeOf(key);
  if (keys[1] == 0 || queries[1] % keys[1] != 0) {
    return Fail(std::to_string(queries[1]) + " heads of queries are no multiple of " + std::to_string(keys[1]) + " heads of keys");
  }
  const double scale = COLLAGE_TRY(node.Float("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(queries[3])))));
  const Expr bias = COLLAGE_TRY(AttentionBias(node, formula, queries[0], queries[2], keys[2], past).Make());
  const Expr all_keys = RepeatHeads(formula, key, queries[1]);
  const Scores scores = COLLAGE_TRY(ComputeScores(node, formula, query, all_keys, scale, bias));
  const Expr result = formula.Apply("nn.matmul", {scores.probability, RepeatHeads(formula, value, queries[1])});
  return formula.DoneAll({InFormOfInput(formula, result, type.shape.size()), key, value, scores.reported});
}

/// cos or sin for each place of the sequence, (batch, 1, length, half): rows of a cache at given positions, or as they are.
Result<Expr> RotaryCache(NodeReader& node, Formula& formula, size_t input) {
  Expr cache = COLLAGE_TRY(node.Input(input));
  if (node.HasInput(3)) cache = formula.Apply("take", {cache, COLLAGE_TRY(node.Input(3))}, {{"axis", 0}, {"mode", "clip"}});
  const Shape shape = Formula::ShapeOf(cache);
  if (shape.size() != 3)
    return Fail("input " + std::to_string(input) + " (a cache) gives shape " + ToString(shape) + ", three dimensions are right");
  return formula.Reshape(cache, {shape[0], 1, shape[1], shape[2]});
}

/// Pairs of the first rotary_embedding_dim elements of each head are turned by the angles of the caches.
Result<std::vector<Expr>> ReadRotaryEmbedding(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  Formula formula(node, type.dtype);
  const Expr data = COLLAGE_TRY(HeadsOf(node, formula, 0, "num_heads"));
  const int64_t size = Formula::ShapeOf(data)[3];
  const int64_t given = COLLAGE_TRY(node.Int("rotary_embedding_dim", 0));
  const int64_t rotated = given == 0 ? size : given;
  if (rotated < 0 || rotated > size || rotated % 2 != 0) {
    return Fail("attribute 'rotary_embedding_dim' is " + std::to_string(rotated) + "; an even number up to " + std::to_string(size) +
                " is right");
  }
  const bool interleaved = COLLAGE_TRY(node.Int("interleaved", 0)) != 0;
  const Expr cosine = COLLAGE_TRY(RotaryCache(node, formula, 1));
  const Expr sine = COLLAGE_TRY(RotaryCache(node, formula, 2));
  if (formula.ok() && (Formula::ShapeOf(cosine)[3] != rotated / 2 || Formula::ShapeOf(sine)[3] != rotated / 2)) {
    return Fail("the caches have rows of " + std::to_string(Formula::ShapeOf(cosine)[3]) + " and " +
                std::to_string(Formula::ShapeOf(sine)[3]) + " elements; half of the " + std::to_string(rotated) +
                " elements that are turned is right");
  }
  const Expr result = Rotated(formula, data, cosine, sine, interleaved);
  return formula.Done(InFormOfInput(formula, result, type.shape.size()));
}

/// A depthwise convolution along the sequence that sees no later element; what it has seen last is carried over. The operator of
/// com.microsoft has more attributes.
Result<std::vector<Expr>> ReadCausalConvWithState(NodeReader& node) {
  COLLAGE_TRY_STATUS(node.RequireInt("ndim", 1, 1));
  COLLAGE_TRY_STATUS(node.RequireInt("state_window", 0, 0));
  COLLAGE_TRY_STATUS(node.RequireInt("channels_last", 0, 0));
  const int64_t dilation = COLLAGE_TRY(node.Int("dilation", 1));
  if (dilation < 1) return Fail("attribute 'dilation' is " + std::to_string(dilation) + "; 1 or more is right");
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Expr weight = COLLAGE_TRY(node.Input(1));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Shape kernel = COLLAGE_TRY(TensorTypeOf(weight)).shape;
  if (type.shape.size() != 3 || kernel.size() != 3 || kernel[0] != type.shape[1] || kernel[1] != 1 || kernel[2] < 1) {
    return Fail("data " + ToString(type.shape) + " and weight " + ToString(kernel) + " do not fit (N, C, L) and (C, 1, K)");
  }
  COLLAGE_TRY_STATUS(CheckExtents({kernel[2], dilation}));
  const int64_t carried = (kernel[2] - 1) * dilation;
  Formula formula(node, type.dtype);
  const Shape state{type.shape[0], type.shape[1], carried};
  const Expr past = node.HasInput(3) ? COLLAGE_TRY(node.Input(3)) : formula.Zeros(state, type.dtype);
  const Expr whole = carried == 0 ? data : formula.Concatenate({past, data}, 2);
  const Expr plane = formula.Apply("expand_dims", {whole}, {{"axis", 2}});
  Expr result = formula.Apply("nn.conv2d", {plane, formula.Apply("expand_dims", {weight}, {{"axis", 2}})},
                              {{"groups", kernel[0]},
                               {"channels", kernel[0]},
                               {"kernel_size", std::vector<int64_t>{1, kernel[2]}},
                               {"dilation", std::vector<int64_t>{1, dilation}}});
  if (node.HasInput(2)) result = formula.Apply("nn.bias_add", {result, COLLAGE_TRY(node.Input(2))}, {{"axis", 1}});
  result = formula.Reshape(result, type.shape);
  const std::string activation = COLLAGE_TRY(node.String("activation", "none"));
  if (activation == "silu" || activation == "swish") {
    result = Silu(formula, result);
  } else if (activation != "none") {
    return Fail("attribute 'activation' is '" + activation + "'; none, silu or swish is right");
  }
  const Expr present = carried == 0 ? past : formula.Slice(whole, 2, type.shape[2], type.shape[2] + carried);
  return formula.DoneAll({result, present});
}

Result<std::vector<Expr>> ReadSwiGlu(NodeReader& node) {
  const Expr gate = COLLAGE_TRY(node.Input(0));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr scaled = alpha == 1 ? gate : formula.Call("multiply", gate, alpha);
  const Expr swish = formula.Call("multiply", gate, formula.Call("sigmoid", scaled));
  return formula.Done(formula.Call("multiply", swish, COLLAGE_TRY(node.Input(1))));
}

/// A packed input (batch, steps, heads * size) as heads, or a constant where the rule leaves it out. One head may stand for all.
Result<Expr> HeadsOrConstant(NodeReader& node, Formula& formula, size_t input, bool is_used, double otherwise, const Shape& shape) {
  if (is_used != node.HasInput(input)) {
    return Fail("input " + std::to_string(input) + (is_used ? " is required by" : " must be absent with") + " the attribute 'update_rule'");
  }
  if (!is_used) return formula.Broadcast(formula.Number(otherwise), shape);
  const Expr data = formula.Cast(COLLAGE_TRY(node.Input(input)), formula.dtype());
  const Shape given = COLLAGE_TRY(node.InputType(input)).shape;
  const int64_t heads = given.size() == 3 && given[2] == 1 ? 1 : shape[1];
  if (given.size() != 3 || heads < 1 || given[0] != shape[0] || given[1] != shape[2] || given[2] % heads != 0) {
    return Fail("input " + std::to_string(input) + " has shape " + ToString(given) + ", which does not fit the " +
                std::to_string(shape[1]) + " heads of the keys");
  }
  return formula.Broadcast(SplitHeads(formula, data, heads), shape);
}

/// The state is kept in float32, whatever the data are.
Result<std::vector<Expr>> ReadLinearAttention(NodeReader& node) {
  COLLAGE_TRY_STATUS(node.RequireInt("state_window", 0, 0));
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const std::string rule = COLLAGE_TRY(node.String("update_rule", "gated_delta"));
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return Fail("attribute 'update_rule' is '" + rule + "'; linear, gated, delta or gated_delta is right");
  Formula formula(node, DType::kFloat32);
  const auto wide = [&](const Expr& data) { return formula.Cast(data, DType::kFloat32); };
  Expr query = wide(COLLAGE_TRY(HeadsOf(node, formula, 0, "q_num_heads")));
  const Expr key = wide(COLLAGE_TRY(HeadsOf(node, formula, 1, "kv_num_heads")));
  const Expr value = wide(COLLAGE_TRY(HeadsOf(node, formula, 2, "kv_num_heads")));
  COLLAGE_TRY(formula.Done(value));
  const Shape keys = Formula::ShapeOf(key);
  const Shape state_shape{keys[0], keys[1], keys[3], Formula::ShapeOf(value)[3]};
  const double given = COLLAGE_TRY(node.Float("scale", 0));
  query = formula.Call("multiply", query, given != 0 ? given : 1 / std::sqrt(static_cast<double>(Formula::ShapeOf(query)[3])));
  const DType state_type = node.HasInput(3) ? COLLAGE_TRY(node.InputType(3)).dtype : type.dtype;
  const Expr state = node.HasInput(3) ? wide(COLLAGE_TRY(node.Input(3))) : formula.Zeros(state_shape, DType::kFloat32);
  const Expr decay = COLLAGE_TRY(HeadsOrConstant(node, formula, 4, gated, 0, keys));
  const Expr beta = COLLAGE_TRY(HeadsOrConstant(node, formula, 5, delta, 1, {keys[0], keys[1], keys[2], 1}));
  const Expr both = formula.Apply("nn.linear_attention", {query, key, value, state, decay, beta}, {{"delta", delta}});
  const Expr result = JoinHeads(formula, formula.Project(both, 0));
  return formula.DoneAll({formula.Cast(result, type.dtype), formula.Cast(formula.Project(both, 1), state_type)});
}

Status WriteLinearAttention(NodeWriter&) { return Fail("has no form in opset " + std::to_string(kWrittenOpset)); }

}  // namespace

OperatorFamily AttentionFamily() {
  static constexpr ReadRow kRead[] = {{"Attention", ReadAttention},
                                      {"ai.onnx.preview.FlexAttention", ReadFlexAttention},
                                      {"RotaryEmbedding", ReadRotaryEmbedding},
                                      {"CausalConvWithState", ReadCausalConvWithState},
                                      {"com.microsoft.CausalConvWithState", ReadCausalConvWithState},
                                      {"SwiGLU", ReadSwiGlu},
                                      {"LinearAttention", ReadLinearAttention},
                                      {"com.microsoft.LinearAttention", ReadLinearAttention}};
  static constexpr WriteRow kWrite[] = {{"nn.linear_attention", WriteLinearAttention}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
