#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "collage/onnx/heads.h"
#include "collage/onnx/rows.h"

// The operators of com.microsoft that attend, as compositions of others. Heads lie as (batch, heads, length, size).

namespace collage::onnx_io {
namespace {

/// What softmax over the keys is taken of, (batch, heads, queries, keys).
Expr Scores(Formula& formula, const Expr& query, const Expr& key, double scale, const Expr& bias) {
  const Expr scores = formula.Call("multiply", formula.Apply("nn.matmul", {query, key}, {{"transpose_b", true}}), scale);
  return bias == nullptr ? scores : formula.Call("add", scores, bias);
}

/// Softmax over the keys of scores, times the values.
Expr Attend(Formula& formula, const Expr& scores, const Expr& value) {
  return formula.Apply("nn.matmul", {formula.Apply("nn.softmax", {scores}, {{"axis", -1}}), value});
}

Expr Sum(Formula& formula, const Expr& a, const Expr& b) { return a == nullptr ? b : b == nullptr ? a : formula.Call("add", a, b); }

/// An optional input; null where it is absent.
Result<Expr> Optional(const NodeReader& node, size_t input) { return node.HasInput(input) ? COLLAGE_TRY(node.Input(input)) : Expr(); }

/// What is not to be looked at gets a score of `filter`. The mask tells it of keys, (batch, keys), of pairs, (batch, queries, keys), or
/// where each sentence's keys end, (batch). Behind the ends may be where they begin, or, in a row of 3 * batch + 2, what says where each
/// sentence lies among them all: of use where they are packed, which they are not here.
Result<Expr> MaskBias(NodeReader& node, Formula& formula, size_t input, int64_t batch, int64_t keys, double filter) {
  const Expr mask = COLLAGE_TRY(node.Input(input));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(mask)).shape;
  Expr allowed;
  if (shape.size() == 1 && (shape[0] == batch || shape[0] == 2 * batch || shape[0] == 3 * batch + 2)) {
    const Expr places = formula.Iota({1, 1, 1, keys});
    const auto of_sentences = [&](int64_t first) {
      return formula.Reshape(formula.Slice(formula.Cast(mask, DType::kInt64), 0, first, first + batch), {batch, 1, 1, 1});
    };
    allowed = formula.Call("less", places, of_sentences(0));
    if (shape[0] == 2 * batch) allowed = formula.Call("logical_and", allowed, formula.Call("greater_equal", places, of_sentences(batch)));
  } else if (shape.size() == 2 && shape[1] == keys) {
    allowed = formula.Cast(formula.Reshape(mask, {shape[0], 1, 1, keys}), DType::kBool);
  } else if (shape.size() == 3 && shape[2] == keys) {
    allowed = formula.Cast(formula.Reshape(mask, {shape[0], 1, shape[1], keys}), DType::kBool);
  } else {
    return Fail("input " + std::to_string(input) + " (a mask) has shape " + ToString(shape) + "; (batch), (batch, " + std::to_string(keys) +
                ") or (batch, queries, " + std::to_string(keys) + ") is right");
  }
  return formula.Call("where", allowed, 0.0, filter);
}

/// No query looks at a key behind it, where `past` keys come before the first query.
Expr CausalBias(Formula& formula, int64_t queries, int64_t keys, int64_t past, double filter) {
  const Expr ones = formula.Broadcast(formula.Number(1), {1, 1, queries, keys});
  const Expr seen = formula.Cast(formula.Apply("trilu", {ones}, {{"k", past}, {"upper", false}}), DType::kBool);
  return formula.Call("where", seen, 0.0, filter);
}

/// The inputs of an operator that may mask, by their places; those that it lacks lie beyond its inputs.
struct BiasInputs {
  size_t mask;
  size_t addend;
};

/// All that is added to the scores; null where nothing is.
Result<Expr> ScoreBias(NodeReader& node, Formula& formula, const BiasInputs& inputs, int64_t queries, int64_t keys, int64_t past) {
  const double filter = COLLAGE_TRY(node.Float("mask_filter_value", -10000));
  Expr bias;
  if (node.HasInput(inputs.mask))
    bias = COLLAGE_TRY(MaskBias(node, formula, inputs.mask, COLLAGE_TRY(node.InputType(0)).shape[0], keys, filter));
  if (COLLAGE_TRY(node.Int("unidirectional", 0)) != 0) bias = Sum(formula, bias, CausalBias(formula, queries, keys, past, filter));
  return Sum(formula, bias, COLLAGE_TRY(Optional(node, inputs.addend)));
}

Result<double> ScaleOf(const NodeReader& node, int64_t size) {
  const double given = COLLAGE_TRY(node.Float("scale", 0));
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(size));
}

Error NoHeads(size_t input, const Shape& shape, int64_t heads) {
  return Error{"input " + std::to_string(input) + " of shape " + ToString(shape) + " does not have 'num_heads' = " + std::to_string(heads) +
               " heads"};
}

/// Query, key and value, packed, or keys and values as heads.
Result<std::vector<Expr>> UnpackedHeads(NodeReader& node, Formula& formula, int64_t heads) {
  std::vector<Expr> parts;
  for (size_t i = 0; i < 3; ++i) {
    const Expr data = COLLAGE_TRY(node.Input(i));
    const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
    const bool is_packed = heads >= 1 && shape.size() == 3 && shape[2] % heads == 0;
    const bool has_heads = shape.size() == 4 && shape[1] == heads && i > 0;
    if (!is_packed && !has_heads) return Fail(NoHeads(i, shape, heads));
    parts.push_back(is_packed ? SplitHeads(formula, data, heads) : data);
  }
  COLLAGE_TRY(formula.Done(parts[2]));
  return parts;
}

/// One bias for the three in a row. Keys and values that come as heads, from an encoder, have theirs already.
Status AddProjectionBias(NodeReader& node, Formula& formula, const Expr& bias, std::vector<Expr>& parts) {
  int64_t place = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape shape = Formula::ShapeOf(parts[i]);
    const int64_t width = shape[1] * shape[3];
    const bool has_bias = COLLAGE_TRY(node.InputType(i)).shape.size() == 3;
    const Expr slice = formula.Reshape(formula.Slice(bias, 0, place, place + width), {1, shape[1], 1, shape[3]});
    if (has_bias) parts[i] = formula.Call("add", parts[i], slice);
    place += width;
  }
  COLLAGE_TRY(formula.Done(parts[0]));
  return {};
}

Result<std::vector<Expr>> ReadMultiHeadAttention(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  for (size_t i : {8, 9}) {
    if (node.HasInput(i)) return Fail("input " + std::to_string(i) + " is not supported");
  }
  Formula formula(node, type.dtype);
  std::vector<Expr> parts = COLLAGE_TRY(UnpackedHeads(node, formula, COLLAGE_TRY(node.Int("num_heads", 0))));
  if (node.HasInput(3)) COLLAGE_TRY_STATUS(AddProjectionBias(node, formula, COLLAGE_TRY(node.Input(3)), parts));
  const int64_t fresh = Formula::ShapeOf(parts[1])[2];
  for (size_t i : {6, 7}) {
    if (node.HasInput(i)) parts[i - 5] = formula.Concatenate({COLLAGE_TRY(node.Input(i)), parts[i - 5]}, 2);
  }
  COLLAGE_TRY(formula.Done(parts[2]));
  const Shape queries = Formula::ShapeOf(parts[0]);
  const int64_t keys = Formula::ShapeOf(parts[1])[2];
  const Expr bias = COLLAGE_TRY(ScoreBias(node, formula, {4, 5}, queries[2], keys, keys - fresh));
  const Expr scores = Scores(formula, parts[0], parts[1], COLLAGE_TRY(ScaleOf(node, queries[3])), bias);
  return formula.DoneAll({JoinHeads(formula, Attend(formula, scores, parts[2])), parts[1], parts[2], scores});
}

/// Attention over the projections of query, key and value in a row, with keys and values of the past, (2, batch, heads, length, size).
Result<std::vector<Expr>> AttendProjected(NodeReader& node, Formula& formula, const Expr& all, const std::vector<int64_t>& widths,
                                          const BiasInputs& inputs, size_t past_input) {
  const int64_t heads = COLLAGE_TRY(node.Int("num_heads", 0));
  const Shape shape = Formula::ShapeOf(all);
  if (shape.size() != 3) return Fail("projections " + ToString(shape) + " must have three dimensions");
  const int64_t total = std::accumulate(widths.begin(), widths.end(), int64_t{0});
  if (widths.size() != 3 || total != shape[2] || heads < 1 || widths[0] % heads != 0 || widths[1] != widths[0] || widths[2] % heads != 0) {
    return Fail("projections of " + std::to_string(shape[2]) + " elements do not split into query, key and value of " +
                std::to_string(heads) + " heads");
  }
  std::vector<Expr> parts;
  int64_t place = 0;
  for (int64_t width : widths) {
    parts.push_back(SplitHeads(formula, formula.Slice(all, 2, place, place + width), heads));
    place += width;
  }
  int64_t past = 0;
  if (node.HasInput(past_input)) {
    const Shape given = COLLAGE_TRY(node.InputType(past_input)).shape;
    if (given.size() != 5 || given[0] != 2) return Fail("input " + std::to_string(past_input) + " (past) has shape " + ToString(given));
    past = given[3];
    for (int64_t i : {0, 1}) {
      const Expr half = formula.Slice(COLLAGE_TRY(node.Input(past_input)), 0, i, i + 1);
      Expr& part = parts[static_cast<size_t>(i) + 1];
      part = formula.Concatenate({formula.Reshape(half, Shape(given.begin() + 1, given.end())), part}, 2);
    }
  }
  const Expr bias = COLLAGE_TRY(ScoreBias(node, formula, inputs, shape[1], past + shape[1], past));
  const double scale = COLLAGE_TRY(ScaleOf(node, widths[0] / heads));
  const Expr result = JoinHeads(formula, Attend(formula, Scores(formula, parts[0], parts[1], scale, bias), parts[2]));
  std::vector<Expr> outputs = COLLAGE_TRY(formula.Done(result));
  if (node.output_count() < 2) return outputs;
  return formula.DoneAll({result, formula.Stack({parts[1], parts[2]}, 0)});
}

/// One weight for query, key and value in a row.
Result<std::vector<Expr>> ReadContribAttention(NodeReader& node) {
  COLLAGE_TRY_STATUS(node.RequireInt("do_rotary", 0, 0));
  COLLAGE_TRY_STATUS(node.RequireInt("past_present_share_buffer", 0, 0));
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Shape weight = COLLAGE_TRY(node.InputType(1)).shape;
  if (type.shape.size() != 3 || weight.size() != 2 || weight[0] != type.shape[2]) {
    return Fail("data " + ToString(type.shape) + " and weights " + ToString(weight) + " do not fit");
  }
  Formula formula(node, type.dtype);
  const Expr all = Sum(formula, formula.Apply("nn.matmul", {data, COLLAGE_TRY(node.Input(1))}), COLLAGE_TRY(Optional(node, 2)));
  COLLAGE_TRY(formula.Done(all));
  const int64_t third = weight[1] / 3;
  const std::vector<int64_t> widths = COLLAGE_TRY(node.Ints("qkv_hidden_sizes", {third, third, third}));
  return AttendProjected(node, formula, all, widths, {3, 5}, 4);
}

/// As Attention, with data and weight in integers: (data, weight, bias, scales of both, mask, zero points of both, past).
Result<std::vector<Expr>> ReadQAttention(NodeReader& node) {
  COLLAGE_TRY_STATUS(node.RequireInt("do_rotary", 0, 0));
  COLLAGE_TRY_STATUS(node.RequireInt("past_present_share_buffer", 0, 0));
  const std::vector<Expr> operands{COLLAGE_TRY(node.Input(0)), COLLAGE_TRY(node.Input(1)), COLLAGE_TRY(Optional(node, 6)),
                                   COLLAGE_TRY(Optional(node, 7))};
  const Expr sums = COLLAGE_TRY(node.ReadAs("MatMulInteger", operands))[0];
  Formula formula(node, COLLAGE_TRY(node.InputType(3)).dtype);
  const Expr scale = formula.Call("multiply", COLLAGE_TRY(node.Input(3)), COLLAGE_TRY(node.Input(4)));
  const Expr all = formula.Call("add", formula.Call("multiply", formula.Cast(sums, formula.dtype()), scale), COLLAGE_TRY(node.Input(2)));
  COLLAGE_TRY(formula.Done(all));
  const int64_t third = Formula::ShapeOf(all).empty() ? 0 : Formula::ShapeOf(all).back() / 3;
  const size_t none = node.input_count();
  return AttendProjected(node, formula, all, {third, third, third}, {5, none}, 8);
}

/// Attention in which heads of queries share those of keys and values, which are kept for the steps to come.
class GroupQueryAttention {
 public:
  explicit GroupQueryAttention(NodeReader& node, DType dtype) : node_(node), formula_(node, dtype), integers_(node, DType::kInt64) {}

  Result<std::vector<Expr>> Read() {
    COLLAGE_TRY_STATUS(node_.RequireInt("kv_cache_bit_width", 0, 0));
    for (size_t i = 12; i < node_.input_count(); ++i) {
      if (node_.HasInput(i)) return Fail("input " + std::to_string(i) + " is not supported");
    }
    COLLAGE_TRY_STATUS(ReadHeads());
    COLLAGE_TRY_STATUS(ReadPlaces());
    if (COLLAGE_TRY(node_.Int("do_rotary", 0)) != 0) COLLAGE_TRY_STATUS(Rotate());
    if (past_ > 0) {
      key_ = COLLAGE_TRY(WithPast(key_, 3));
      value_ = COLLAGE_TRY(WithPast(value_, 4));
    }
    const Expr scores = COLLAGE_TRY(Scores());
    const Expr weights = COLLAGE_TRY(Softmax(scores));
    const Expr result = formula_.Apply("nn.matmul", {weights, RepeatHeads(formula_, value_, Formula::ShapeOf(query_)[1])});
    COLLAGE_TRY(integers_.Done(offset_));
    std::vector<Expr> outputs = COLLAGE_TRY(formula_.DoneAll({JoinHeads(formula_, result), key_, value_}));
    if (const int64_t which = COLLAGE_TRY(node_.Int("qk_output", 0)); which != 0)
      outputs.push_back(COLLAGE_TRY(SeenScores(which, scores, weights)));
    return outputs;
  }

 private:
  /// Key and value may lie behind the query in one tensor.
  Status ReadHeads() {
    const int64_t heads = COLLAGE_TRY(node_.Int("num_heads", 0));
    const int64_t shared = COLLAGE_TRY(node_.Int("kv_num_heads", 0));
    const Expr data = COLLAGE_TRY(node_.Input(0));
    const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
    const int64_t parts = node_.HasInput(1) ? heads : heads + 2 * shared;
    if (shape.size() != 3 || heads < 1 || shared < 1 || heads % shared != 0 || shape[2] % parts != 0) return Fail(NoHeads(0, shape, heads));
    const int64_t size = shape[2] / parts;
    const auto part = [&](int64_t begin, int64_t count) {
      return SplitHeads(formula_, formula_.Slice(data, 2, begin * size, (begin + count) * size), count);
    };
    if (node_.HasInput(1)) {
      query_ = SplitHeads(formula_, data, heads);
      key_ = SplitHeads(formula_, COLLAGE_TRY(node_.Input(1)), shared);
      value_ = SplitHeads(formula_, COLLAGE_TRY(node_.Input(2)), shared);
    } else {
      query_ = part(0, heads);
      key_ = part(heads, shared);
      value_ = part(heads + shared, shared);
    }
    COLLAGE_TRY(formula_.Done(query_));
    for (const Expr& heads_of : {key_, value_}) {
      const Shape given = Formula::ShapeOf(heads_of);
      if (given[0] != shape[0] || given[2] != shape[1] || given[3] != size)
        return Fail("the query has shape " + ToString(shape) + ", so that a head of key or value is (" + std::to_string(shape[0]) + ", " +
                    std::to_string(shape[1]) + ", " + std::to_string(size) + "); found " + ToString(given));
    }
    batch_ = shape[0];
    length_ = shape[1];
    return {};
  }

  /// How many keys come before the first query of a sentence, and how many there may be.
  Status ReadPlaces() {
    const Shape past = node_.HasInput(3) ? COLLAGE_TRY(node_.InputType(3)).shape : Shape{};
    past_ = past.size() == 4 ? past[2] : 0;
    keys_ = total_ = length_;
    offset_ = integers_.Zeros({batch_, 1}, DType::kInt64);
    if (past_ == 0) return {};
    const std::vector<int64_t> total = COLLAGE_TRY(node_.ConstantInput(6, "total_sequence_length")).ToInt64();
    if (total.size() != 1 || total[0] > past_ + length_)
      return Fail("input 6 (total_sequence_length) must be one number up to " + std::to_string(past_ + length_));
    total_ = total[0];
    keys_ = std::max(past_, total_);
    const Expr last = integers_.Reshape(integers_.Cast(COLLAGE_TRY(node_.Input(5)), DType::kInt64), {batch_, 1});
    offset_ = integers_.Call("maximum", integers_.Call("add", last, static_cast<double>(1 - length_)), 0.0);
    return {};
  }

  Status Rotate() {
    const Expr places = node_.HasInput(9) ? COLLAGE_TRY(node_.Input(9)) : integers_.Call("add", offset_, integers_.Iota({1, length_}));
    std::vector<Expr> angles;
    for (size_t i : {7, 8}) {
      const Expr rows = formula_.Apply("take", {COLLAGE_TRY(node_.Input(i)), places}, {{"axis", 0}, {"mode", "clip"}});
      angles.push_back(formula_.Reshape(rows, {batch_, 1, length_, formula_.ok() ? Formula::ShapeOf(rows).back() : 1}));
    }
    COLLAGE_TRY(formula_.Done(angles[1]));
    if (Formula::ShapeOf(angles[0]) != Formula::ShapeOf(angles[1]) || 2 * Formula::ShapeOf(angles[0])[3] > Formula::ShapeOf(query_)[3]) {
      return Fail("the caches turn " + std::to_string(2 * Formula::ShapeOf(angles[0])[3]) + " of " +
                  std::to_string(Formula::ShapeOf(query_)[3]) + " elements");
    }
    const bool interleaved = COLLAGE_TRY(node_.Int("rotary_interleaved", 0)) != 0;
    query_ = Rotated(formula_, query_, angles[0], angles[1], interleaved);
    key_ = Rotated(formula_, key_, angles[0], angles[1], interleaved);
    COLLAGE_TRY(formula_.Done(query_));
    return {};
  }

  /// Those of the past up to the offset, then the new ones, then zeros.
  Result<Expr> WithPast(const Expr& fresh, size_t input) {
    const Expr all = formula_.Concatenate({COLLAGE_TRY(node_.Input(input)), fresh}, 2);
    COLLAGE_TRY(formula_.Done(all));
    const Expr place = integers_.Iota({1, keys_});
    const Expr distance = integers_.Call("subtract", place, offset_);
    const Expr is_past = integers_.Call("less", distance, 0.0);
    const Expr source = integers_.Call("where", is_past, place, integers_.Call("add", distance, static_cast<double>(past_)));
    Shape shape = Formula::ShapeOf(all);
    shape[2] = keys_;
    const Expr indices = integers_.Call("minimum", source, static_cast<double>(past_ + length_ - 1));
    const Expr rows = COLLAGE_TRY(RowsAt(all, indices, shape));
    const Expr is_given = integers_.Reshape(integers_.Call("less", distance, static_cast<double>(length_)), {batch_, 1, keys_, 1});
    return formula_.Call("where", is_given, rows, 0.0);
  }

  /// Rows of `all` at `indices`, (batch, keys), in each head. Where there is one batch all share them, which more libraries compute.
  Result<Expr> RowsAt(const Expr& all, const Expr& indices, const Shape& shape) {
    const bool is_shared = batch_ == 1;
    const Expr places =
        is_shared ? integers_.Reshape(indices, {keys_}) : integers_.Broadcast(integers_.Reshape(indices, {batch_, 1, keys_, 1}), shape);
    COLLAGE_TRY(integers_.Done(places));
    if (!is_shared) return formula_.Apply("gather", {all, places}, {{"axis", 2}});
    return formula_.Apply("take", {all, places}, {{"axis", 2}, {"mode", "clip"}});
  }

  Result<Expr> Scores() {
    const Shape shape = Formula::ShapeOf(query_);
    const Expr keys = RepeatHeads(formula_, key_, shape[1]);
    const Expr products = formula_.Apply("nn.matmul", {query_, keys}, {{"transpose_b", true}});
    Expr scores = formula_.Call("multiply", products, COLLAGE_TRY(ScaleOf(node_, shape[3])));
    const double softcap = COLLAGE_TRY(node_.Float("softcap", 0));
    if (softcap > 0) scores = formula_.Call("multiply", formula_.Call("tanh", formula_.Call("divide", scores, softcap)), softcap);
    if (node_.HasInput(10)) scores = formula_.Call("add", scores, COLLAGE_TRY(node_.Input(10)));
    const Expr first = integers_.Reshape(offset_, {batch_, 1, 1, 1});
    const Expr distance =
        integers_.Call("subtract", integers_.Call("add", first, integers_.Iota({1, 1, length_, 1})), integers_.Iota({1, 1, 1, keys_}));
    if (COLLAGE_TRY(node_.Int("causal", 1)) != 0) Forbid(scores, integers_.Call("less", distance, 0.0));
    const int64_t window = COLLAGE_TRY(node_.Int("local_window_size", -1));
    if (window >= 0) Forbid(scores, integers_.Call("greater_equal", distance, static_cast<double>(window)));
    return scores;
  }

  void Forbid(Expr& scores, const Expr& where) {
    scores = formula_.Call("where", where, -std::numeric_limits<double>::infinity(), scores);
    forbidden_.push_back(where);
  }

  /// Scores before softmax or behind it, of as many keys as there are, where buffers have room for more. What is not seen has 0.
  Result<Expr> SeenScores(int64_t which, Expr scores, const Expr& weights) {
    if (which != 1 && which != 2) return Fail("attribute 'qk_output' is " + std::to_string(which) + "; 0, 1 or 2 is right");
    for (const Expr& where : forbidden_) scores = formula_.Call("where", where, 0.0, scores);
    const Expr& given = which == 1 ? scores : weights;
    return COLLAGE_TRY(formula_.Done(total_ == keys_ ? given : formula_.Slice(given, 3, 0, total_)))[0];
  }

  /// With a sink: one more score of each head, whose value is zero.
  Result<Expr> Softmax(const Expr& scores) {
    const bool smooth = COLLAGE_TRY(node_.Int("smooth_softmax", 0)) == 1;
    if (!smooth && !node_.HasInput(11)) return formula_.Apply("nn.softmax", {scores}, {{"axis", -1}});
    const Shape shape = Formula::ShapeOf(scores);
    COLLAGE_TRY(formula_.Done(scores));
    const Expr sink = node_.HasInput(11) ? formula_.Reshape(COLLAGE_TRY(node_.Input(11)), {1, shape[1], 1, 1})
                                         : formula_.Zeros({1, 1, 1, 1}, formula_.dtype());
    const Expr all = formula_.Concatenate({scores, formula_.Broadcast(sink, {shape[0], shape[1], shape[2], 1})}, 3);
    return formula_.Slice(formula_.Apply("nn.softmax", {all}, {{"axis", -1}}), 3, 0, shape[3]);
  }

  NodeReader& node_;
  Formula formula_;
  Formula integers_;
  Expr query_;
  Expr key_;
  Expr value_;
  Expr offset_;  // (batch, 1)
  std::vector<Expr> forbidden_;
  int64_t batch_ = 0;
  int64_t length_ = 0;
  int64_t past_ = 0;
  int64_t keys_ = 0;   // there is room for
  int64_t total_ = 0;  // there are
};

Result<std::vector<Expr>> ReadGroupQueryAttention(NodeReader& node) {
  return GroupQueryAttention(node, COLLAGE_TRY(node.InputType(0)).dtype).Read();
}

/// Data of rotary operators: as heads, or packed.
struct RotaryForm {
  int64_t heads;
  int64_t length;
  bool is_packed;
};

Result<RotaryForm> ReadRotaryForm(const NodeReader& node) {
  const Shape data = COLLAGE_TRY(node.InputType(0)).shape;
  const Shape cache = COLLAGE_TRY(node.InputType(2)).shape;
  COLLAGE_TRY_STATUS(node.RequireInt("is_packed_batching", 0, 0));
  if (cache.size() != 2 || (data.size() != 3 && data.size() != 4))
    return Fail("data " + ToString(data) + " and caches " + ToString(cache) + " do not fit");
  const bool packed = data.size() == 3;
  const int64_t given = COLLAGE_TRY(node.Int("num_heads", 0));
  const int64_t heads = !packed ? data[1] : given > 0 ? given : data[2] / std::max<int64_t>(1, 2 * cache[1]);
  if (packed && (heads < 1 || data[2] % heads != 0)) return Fail(NoHeads(0, data, heads));
  const int64_t size = packed ? data[2] / heads : data.back();
  if (2 * cache[1] > size) return Fail("the caches turn " + std::to_string(2 * cache[1]) + " of " + std::to_string(size) + " elements");
  return RotaryForm{heads, packed ? data[1] : data[2], packed};
}

/// Turned by cosines and sines of (batch, length, half).
Result<std::vector<Expr>> TurnHeads(NodeReader& node, Formula& formula, const RotaryForm& form, std::vector<Expr> angles) {
  for (Expr& angle : angles) angle = formula.Apply("expand_dims", {angle}, {{"axis", 1}});
  COLLAGE_TRY(formula.Done(angles[1]));
  const Expr data = COLLAGE_TRY(node.Input(0));
  const bool interleaved = COLLAGE_TRY(node.Int("interleaved", 0)) != 0;
  const Expr heads = form.is_packed ? SplitHeads(formula, data, form.heads) : data;
  const Expr result = Rotated(formula, heads, angles[0], angles[1], interleaved);
  return formula.Done(form.is_packed ? JoinHeads(formula, result) : result);
}

/// (data, places, caches of cosines and sines); one place is that of the first element of all sequences.
Result<std::vector<Expr>> ReadContribRotaryEmbedding(NodeReader& node) {
  const RotaryForm form = COLLAGE_TRY(ReadRotaryForm(node));
  Formula integers(node, DType::kInt64);
  Expr places = integers.Cast(COLLAGE_TRY(node.Input(1)), DType::kInt64);
  if (COLLAGE_TRY(node.InputType(1)).ElementCount() == 1)
    places = integers.Call("add", integers.Reshape(places, {1, 1}), integers.Iota({1, form.length}));
  COLLAGE_TRY(integers.Done(places));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  std::vector<Expr> angles;
  for (size_t i : {2, 3}) angles.push_back(formula.Apply("take", {COLLAGE_TRY(node.Input(i)), places}, {{"axis", 0}, {"mode", "clip"}}));
  return TurnHeads(node, formula, form, std::move(angles));
}

/// Which of the three places of a token, in time, height and width, each column of the caches is looked up for.
Result<std::vector<int64_t>> PlaceOfColumns(const NodeReader& node, int64_t columns) {
  const std::vector<int64_t> sections = COLLAGE_TRY(node.Ints("mrope_section", {}));
  const bool fit = sections.size() == 3 && *std::min_element(sections.begin(), sections.end()) >= 0 && sections[0] <= columns &&
                   sections[1] <= columns && sections[0] + sections[1] + sections[2] == columns;
  if (!fit)
    return Fail("attribute 'mrope_section' is " + ToString(Shape(sections)) + "; three parts of " + std::to_string(columns) + " are right");
  const int64_t layout = COLLAGE_TRY(node.Int("mrope_layout", 0));
  if (layout != 0 && layout != 1) return Fail("attribute 'mrope_layout' is " + std::to_string(layout) + "; 0 or 1 is right");
  std::vector<int64_t> place_of(static_cast<size_t>(columns), 0);
  for (int64_t place : {1, 2}) {
    const int64_t begin = layout == 1 ? place : place == 1 ? sections[0] : sections[0] + sections[1];
    const int64_t step = layout == 1 ? 3 : 1;
    const int64_t end = layout == 1 ? 3 * sections[static_cast<size_t>(place)] : begin + sections[static_cast<size_t>(place)];
    for (int64_t column = begin; column < std::min(end, columns); column += step) place_of[static_cast<size_t>(column)] = place;
  }
  return place_of;
}

/// As RotaryEmbedding, with three places of each token, (3, batch, length).
Result<std::vector<Expr>> ReadMRotaryEmbedding(NodeReader& node) {
  const RotaryForm form = COLLAGE_TRY(ReadRotaryForm(node));
  if (const float scale = COLLAGE_TRY(node.Float("scale", 1)); scale != 1)
    return Fail("attribute 'scale' is " + std::to_string(scale) + "; only 1 is supported");
  const Shape given = COLLAGE_TRY(node.InputType(1)).shape;
  if (given.size() != 3 || given[0] != 3 || given[2] != form.length)
    return Fail("input 1 (position_ids) has shape " + ToString(given) + "; (3, batch, " + std::to_string(form.length) + ") is right");
  const int64_t columns = COLLAGE_TRY(node.InputType(2)).shape[1];
  const std::vector<int64_t> place_of = COLLAGE_TRY(PlaceOfColumns(node, columns));
  Formula integers(node, DType::kInt64);
  const Expr column_places = MakeConstant(Tensor::FromVector(TensorType{{columns}, DType::kInt64}, place_of));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  std::vector<Expr> angles;
  for (size_t i : {2, 3}) {
    Expr all;
    for (int64_t place : {0, 1, 2}) {
      const Expr places = formula.Reshape(formula.Slice(COLLAGE_TRY(node.Input(1)), 0, place, place + 1), {given[1], given[2]});
      const Expr rows = formula.Apply("take", {COLLAGE_TRY(node.Input(i)), places}, {{"axis", 0}, {"mode", "clip"}});
      const Expr is_here = integers.Call("equal", column_places, static_cast<double>(place));
      all = all == nullptr ? rows : formula.Call("where", is_here, rows, all);
    }
    angles.push_back(all);
  }
  return TurnHeads(node, formula, form, std::move(angles));
}

/// One step of a decoder: keys and values of an encoder, or those of the past with the new ones behind them, which may lie in buffers
/// that are longer.
class DecoderMaskedAttention {
 public:
  DecoderMaskedAttention(NodeReader& node, DType dtype) : node_(node), formula_(node, dtype), integers_(node, DType::kInt64) {}

  Result<std::vector<Expr>> Read() {
    if (!node_.HasInput(1) || !node_.HasInput(2)) return Fail("query, key and value in one input are not supported; give inputs 1 and 2");
    std::vector<Expr> parts = COLLAGE_TRY(UnpackedHeads(node_, formula_, COLLAGE_TRY(node_.Int("num_heads", 0))));
    if (node_.HasInput(10)) COLLAGE_TRY_STATUS(AddProjectionBias(node_, formula_, COLLAGE_TRY(node_.Input(10)), parts));
    COLLAGE_TRY(formula_.Done(parts[2]));
    seen_ = present_ = {parts[1], parts[2]};
    if (node_.HasInput(5)) COLLAGE_TRY_STATUS(AddPast());
    const int64_t keys = Formula::ShapeOf(seen_[0])[2];
    const double filter = COLLAGE_TRY(node_.Float("mask_filter_value", -10000));
    if (node_.HasInput(3))
      bias_ = Sum(formula_, bias_, COLLAGE_TRY(MaskBias(node_, formula_, 3, Formula::ShapeOf(parts[0])[0], keys, filter)));
    bias_ = Sum(formula_, bias_, COLLAGE_TRY(Optional(node_, 4)));
    const double scale = COLLAGE_TRY(ScaleOf(node_, Formula::ShapeOf(parts[0])[3]));
    const Expr result = Attend(formula_, Scores(formula_, parts[0], seen_[0], scale, bias_), seen_[1]);
    COLLAGE_TRY(integers_.Done(result));
    return formula_.DoneAll({JoinHeads(formula_, result), present_[0], present_[1]});
  }

 private:
  Status AddPast() {
    const bool shares = COLLAGE_TRY(node_.Int("past_present_share_buffer", 0)) != 0;
    for (size_t i : {0, 1}) {
      const Expr past = COLLAGE_TRY(node_.Input(5 + i));
      const Shape given = COLLAGE_TRY(TensorTypeOf(past)).shape;
      const Shape fresh = Formula::ShapeOf(present_[i]);
      if (given.size() != 4 || fresh[2] != 1 || given[0] != fresh[0] || given[1] != fresh[1] || given[3] != fresh[3])
        return Fail("input " + std::to_string(5 + i) + " (past) has shape " + ToString(given) + ", to which " + ToString(fresh) +
                    " is not one step more");
      if (shares) {
        COLLAGE_TRY_STATUS(WriteInto(past, i));
      } else {
        seen_[i] = present_[i] = formula_.Concatenate({past, present_[i]}, 2);
      }
    }
    COLLAGE_TRY(formula_.Done(seen_[1]));
    return {};
  }

  /// Behind the steps of the past, of which there are as many as an input says; what lies further on is not seen.
  Status WriteInto(const Expr& past, size_t part) {
    const int64_t capacity = Formula::ShapeOf(past)[2];
    if (COLLAGE_TRY(node_.InputType(7)).ElementCount() != 1) return Fail("input 7 (past_sequence_length) must be one number");
    const Expr length = integers_.Reshape(integers_.Cast(COLLAGE_TRY(node_.Input(7)), DType::kInt64), {1, 1, 1, 1});
    const Expr is_fresh = integers_.Call("equal", integers_.Iota({1, 1, capacity, 1}), length);
    const Expr fresh = present_[part];
    present_[part] = formula_.Call("where", is_fresh, fresh, past);
    const Expr mine = formula_.Call("where", is_fresh, fresh, COLLAGE_TRY(OfMyBeam(past)));
    const int64_t total = COLLAGE_TRY(KeysInMasks(capacity));
    seen_[part] = formula_.Slice(mine, 2, 0, total);
    const Expr is_later = integers_.Call("greater", integers_.Iota({1, 1, 1, total}), length);
    bias_ = formula_.Call("where", is_later, -std::numeric_limits<double>::infinity(), 0.0);
    return {};
  }

  /// Masks have as many keys as there are, buffers have room for more.
  Result<int64_t> KeysInMasks(int64_t capacity) {
    for (size_t input : {3, 4}) {
      if (!node_.HasInput(input)) continue;
      const Shape shape = COLLAGE_TRY(node_.InputType(input)).shape;
      if (!shape.empty() && shape.back() >= 1 && shape.back() <= capacity) return shape.back();
      return Fail("input " + std::to_string(input) + " has shape " + ToString(shape) + "; 1 to " + std::to_string(capacity) +
                  " keys, as the buffers hold, are right");
    }
    return capacity;
  }

  /// Each step of a beam's past lies in the row of the beam that made it.
  Result<Expr> OfMyBeam(const Expr& past) {
    if (!node_.HasInput(9)) return past;
    const Shape shape = Formula::ShapeOf(past);
    const Shape given = COLLAGE_TRY(node_.InputType(9)).shape;
    if (given.size() != 3 || given[0] * given[1] != shape[0] || given[2] != shape[2])
      return Fail("input 9 (cache_indirection) has shape " + ToString(given) + "; (batch, beams, " + std::to_string(shape[2]) +
                  ") for a batch and beams of " + std::to_string(shape[0]) + " is right");
    const Expr first = integers_.Call("multiply", integers_.Iota({given[0], 1, 1}), static_cast<double>(given[1]));
    const Expr rows = integers_.Call("add", integers_.Cast(COLLAGE_TRY(node_.Input(9)), DType::kInt64), first);
    const Expr indices = integers_.Broadcast(integers_.Reshape(rows, {shape[0], 1, shape[2], 1}), shape);
    return formula_.Apply("gather", {past, indices}, {{"axis", 0}});
  }

  NodeReader& node_;
  Formula formula_;
  Formula integers_;
  std::vector<Expr> seen_;
  std::vector<Expr> present_;
  Expr bias_;
};

Result<std::vector<Expr>> ReadDecoderMaskedMultiHeadAttention(NodeReader& node) {
  return DecoderMaskedAttention(node, COLLAGE_TRY(node.InputType(0)).dtype).Read();
}

}  // namespace

OperatorFamily ContribAttentionFamily() {
  static constexpr ReadRow kRead[] = {{"com.microsoft.MultiHeadAttention", ReadMultiHeadAttention},
                                      {"com.microsoft.Attention", ReadContribAttention},
                                      {"com.microsoft.QAttention", ReadQAttention},
                                      {"com.microsoft.GroupQueryAttention", ReadGroupQueryAttention},
                                      {"com.microsoft.RotaryEmbedding", ReadContribRotaryEmbedding},
                                      {"com.microsoft.MRotaryEmbedding", ReadMRotaryEmbedding},
                                      {"com.microsoft.DecoderMaskedMultiHeadAttention", ReadDecoderMaskedMultiHeadAttention}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
