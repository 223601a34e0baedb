#include <limits>
#include <numeric>

#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"

// Operators of com.microsoft on shapes, matrices, images and token ids, as compositions of others.

namespace collage::onnx_io {
namespace {

/// A new dimension of extent 1 before dimension `axis`, which is an input.
Result<std::vector<Expr>> ReadExpandDims(NodeReader& node) {
  const std::vector<int64_t> axis = COLLAGE_TRY(node.IntsInput(1, "axis"));
  if (axis.size() != 1) return Fail("input 1 (axis) must have one element, not " + std::to_string(axis.size()));
  const size_t rank = COLLAGE_TRY(node.InputType(0)).shape.size();
  const int64_t place = COLLAGE_TRY(NormalizeAxis(axis[0], rank + 1));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("expand_dims", {COLLAGE_TRY(node.Input(0))}, {{"axis", place}}))};
}

/// All slices of `size` elements at steps along one dimension; the elements of a slice become the last dimension.
Result<std::vector<Expr>> ReadUnfoldTensor(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("dim", -1)), shape.size()));
  const int64_t extent = shape[static_cast<size_t>(axis)];
  const int64_t size = COLLAGE_TRY(node.Int("size", 0));
  const int64_t step = COLLAGE_TRY(node.Int("step", 1));
  if (size < 1 || size > extent || step < 1)
    return Fail("attributes 'size' " + std::to_string(size) + " and 'step' " + std::to_string(step) + " do not fit the " +
                std::to_string(extent) + " elements of dimension " + std::to_string(axis));
  const int64_t count = (extent - size) / step + 1;
  Formula formula(node, DType::kInt64);
  const Expr starts = formula.Call("multiply", formula.Iota({count, 1}), static_cast<double>(step));
  const Expr places = formula.Call("add", starts, formula.Iota({1, size}));
  const Expr slices = formula.Apply("take", {data, places}, {{"axis", axis}});
  std::vector<int64_t> axes(shape.size() + 1);
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + axis + 1, axes.begin() + axis + 2, axes.end());
  return formula.Done(formula.Transpose(slices, axes));
}

/// Distances between the rows of two matrices: |a|^2 + |b|^2 - 2 a b, which no rounding makes negative.
Result<std::vector<Expr>> ReadCDist(NodeReader& node) {
  const Expr a = COLLAGE_TRY(node.Input(0));
  const Expr b = COLLAGE_TRY(node.Input(1));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(a));
  const Shape other = COLLAGE_TRY(TensorTypeOf(b)).shape;
  if (type.shape.size() != 2 || other.size() != 2 || type.shape[1] != other[1])
    return Fail("inputs " + ToString(type.shape) + " and " + ToString(other) + " are no matrices with rows of one length");
  const std::string metric = COLLAGE_TRY(node.String("metric", "sqeuclidean"));
  if (metric != "sqeuclidean" && metric != "euclidean")
    return Fail("attribute 'metric' is '" + metric + "'; euclidean and sqeuclidean are supported");
  Formula formula(node, type.dtype);
  const auto squares = [&](const Expr& rows) { return formula.Reduce("sum", formula.Call("multiply", rows, rows), {1}, true); };
  const Expr sums = formula.Call("add", squares(a), formula.Transpose(squares(b), {1, 0}));
  const Expr products = formula.Call("multiply", formula.Apply("nn.dense", {a, b}), 2.0);
  const Expr distances = formula.Call("maximum", formula.Call("subtract", sums, products), 0.0);
  return formula.Done(metric == "euclidean" ? formula.Call("sqrt", distances) : distances);
}

/// count places from the first to the last bound of each box, (boxes, count), or their centre where one is wanted. 0 is the first and 1 the
/// last element of the image.
Expr PlacesInBoxes(Formula& formula, const Expr& boxes, int64_t axis, int64_t count) {
  const Expr first = formula.Slice(boxes, 1, axis, axis + 1);
  const Expr last = formula.Slice(boxes, 1, axis + 2, axis + 3);
  if (count == 1) return formula.Call("multiply", formula.Call("add", first, last), 0.5);
  const Expr step = formula.Call("divide", formula.Call("subtract", last, first), static_cast<double>(count - 1));
  return formula.Call("add", first, formula.Call("multiply", step, formula.Cast(formula.Iota({1, count}), formula.dtype())));
}

/// Boxes (top, left, bottom, right) of images, sampled at as many places as the crops have elements.
Result<std::vector<Expr>> ReadCropAndResize(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const Shape boxes_shape = COLLAGE_TRY(node.InputType(1)).shape;
  const std::vector<int64_t> size = COLLAGE_TRY(node.IntsInput(3, "crop_size"));
  if (type.shape.size() != 4 || boxes_shape.size() != 2 || boxes_shape[1] != 4 || size.size() != 2 || size[0] < 1 || size[1] < 1)
    return Fail("data " + ToString(type.shape) + ", boxes " + ToString(boxes_shape) + " and crops of " + ToString(Shape(size)) +
                " do not fit (N, C, H, W), (boxes, 4) and (height, width)");
  const std::string mode = COLLAGE_TRY(node.String("mode", "bilinear"));
  if (mode != "bilinear" && mode != "nearest") return Fail("attribute 'mode' is '" + mode + "'; bilinear or nearest is right");
  const int64_t count = boxes_shape[0];
  Formula formula(node, type.dtype);
  const Expr boxes = COLLAGE_TRY(node.Input(1));
  const Shape plane{count, size[0], size[1]};
  const Expr y = formula.Broadcast(formula.Reshape(PlacesInBoxes(formula, boxes, 0, size[0]), {count, size[0], 1}), plane);
  const Expr x = formula.Broadcast(formula.Reshape(PlacesInBoxes(formula, boxes, 1, size[1]), {count, 1, size[1]}), plane);
  // Halves between two elements go to the later one.
  const auto sampled = [&](const Expr& place, int64_t extent) {
    if (mode == "bilinear" || extent == 1) return place;
    const auto steps = static_cast<double>(extent - 1);
    return formula.Call("divide", formula.Call("floor", formula.Call("add", formula.Call("multiply", place, steps), 0.5)), steps);
  };
  const Expr places = formula.Stack({sampled(x, type.shape[3]), sampled(y, type.shape[2])}, 3);
  const Expr grid = formula.Call("subtract", formula.Call("multiply", places, 2.0), 1.0);
  const Expr images = formula.Apply("take", {COLLAGE_TRY(node.Input(0)), COLLAGE_TRY(node.Input(2))}, {{"axis", 0}});
  const Expr samples =
      formula.Apply("image.grid_sample", {images, grid}, {{"method", mode}, {"padding_mode", "border"}, {"align_corners", true}});
  Expr inside = formula.Broadcast(MakeConstant(ScalarOf(1, DType::kBool)), plane);
  const auto require_inside = [&](const Expr& place, int64_t extent) {
    if (extent == 1) return;  // one element is everywhere
    inside = formula.Call("logical_and", inside, formula.Call("greater_equal", place, 0.0));
    inside = formula.Call("logical_and", inside, formula.Call("less_equal", place, 1.0));
  };
  require_inside(y, type.shape[2]);
  require_inside(x, type.shape[3]);
  inside = formula.Reshape(inside, {count, 1, size[0], size[1]});
  return formula.Done(formula.Call("where", inside, samples, COLLAGE_TRY(node.Float("extrapolation_value", 0))));
}

/// 32 bits, those that leave to the left coming back from the right.
Expr RotatedLeft(Formula& bits, const Expr& word, int64_t count) {
  const Expr left = bits.Call("left_shift", word, static_cast<double>(count));
  return bits.Call("bitwise_or", left, bits.Call("right_shift", word, static_cast<double>(32 - count)));
}

Expr WithShifted(Formula& bits, const Expr& word, double count) {
  return bits.Call("bitwise_xor", word, bits.Call("right_shift", word, count));
}

/// The 32-bit words of each element, the low one first.
Result<std::vector<Expr>> WordsOf(NodeReader& node, Formula& bits) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const DType dtype = COLLAGE_TRY(TensorTypeOf(data)).dtype;
  if (dtype == DType::kString) return Fail("input 0 is of strings; numbers of 32 or 64 bits are supported");
  if (ByteSize(dtype) == 4) return std::vector<Expr>{bits.Apply("reinterpret", {data}, {{"dtype", "uint32"}})};
  Formula wide(node, DType::kUInt64);
  const Expr both = wide.Apply("reinterpret", {data}, {{"dtype", "uint64"}});
  const Expr high = wide.Call("right_shift", both, 32.0);
  const Expr low = wide.Call("subtract", both, wide.Call("left_shift", high, 32.0));
  COLLAGE_TRY(wide.Done(low));
  return std::vector<Expr>{bits.Cast(low, DType::kUInt32), bits.Cast(high, DType::kUInt32)};
}

/// MurmurHash3_x86_32 (Austin Appleby, in the public domain) of the bytes of each element.
Result<std::vector<Expr>> ReadMurmurHash3(NodeReader& node) {
  Formula bits(node, DType::kUInt32);
  const std::vector<Expr> words = COLLAGE_TRY(WordsOf(node, bits));
  const int64_t seed = COLLAGE_TRY(node.Int64("seed", 0));
  if (seed < 0 || seed > std::numeric_limits<uint32_t>::max())
    return Fail("attribute 'seed' is " + std::to_string(seed) + "; an unsigned number of 32 bits is right");
  Expr hash = bits.Number(static_cast<double>(seed));
  for (const Expr& word : words) {
    const Expr first = RotatedLeft(bits, bits.Call("multiply", word, 0xcc9e2d51), 15);
    hash = RotatedLeft(bits, bits.Call("bitwise_xor", hash, bits.Call("multiply", first, 0x1b873593)), 13);
    hash = bits.Call("add", bits.Call("multiply", hash, 5.0), 0xe6546b64);
  }
  hash = bits.Call("bitwise_xor", hash, static_cast<double>(4 * words.size()));
  hash = bits.Call("multiply", WithShifted(bits, hash, 16), 0x85ebca6b);
  hash = bits.Call("multiply", WithShifted(bits, hash, 13), 0xc2b2ae35);
  hash = WithShifted(bits, hash, 16);
  const bool positive = COLLAGE_TRY(node.Int("positive", 1)) == 1;
  return bits.Done(positive ? hash : bits.Apply("reinterpret", {hash}, {{"dtype", "int32"}}));
}

/// A token that would repeat a run of `ngram_size` tokens gets a score of minus infinity.
Result<std::vector<Expr>> ReadNGramRepeatBlock(NodeReader& node) {
  const Expr tokens = COLLAGE_TRY(node.Input(0));
  const Expr scores = COLLAGE_TRY(node.Input(1));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(tokens)).shape;
  const TensorType type = COLLAGE_TRY(TensorTypeOf(scores));
  if (shape.size() != 2 || type.shape.size() != 2 || shape[0] != type.shape[0])
    return Fail("tokens " + ToString(shape) + " and scores " + ToString(type.shape) + " are no matrices of one batch");
  const int64_t size = COLLAGE_TRY(node.Int("ngram_size", 0));
  if (size < 1) return Fail("attribute 'ngram_size' is " + std::to_string(size) + "; 1 or more is right");
  const int64_t length = shape[1];
  const int64_t runs = length - size + 1;
  if (runs < 1) return std::vector<Expr>{scores};
  Formula formula(node, type.dtype);
  Expr repeats = formula.Broadcast(formula.Number(1), {shape[0], runs});
  for (int64_t i = 0; i + 1 < size; ++i) {
    const Expr last = formula.Slice(tokens, 1, runs + i, runs + i + 1);
    const Expr same = formula.Call("equal", formula.Slice(tokens, 1, i, i + runs), last);
    repeats = formula.Call("multiply", repeats, formula.Cast(same, type.dtype));
  }
  const Expr counts =
      formula.Apply("scatter_elements", {formula.Zeros(type.shape, type.dtype), formula.Slice(tokens, 1, size - 1, length), repeats},
                    {{"axis", 1}, {"reduction", "add"}});
  const Expr blocked = formula.Call("greater", counts, 0.0);
  return formula.Done(formula.Call("where", blocked, -std::numeric_limits<double>::infinity(), scores));
}

/// Hashes of the runs of 2 to `max_ngram_size` tokens that end at each token, several of each run, and the tokens that the next call
/// wants to know of.
Result<std::vector<Expr>> ReadNGramHashMapping(NodeReader& node) {
  const Expr tokens = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(tokens));
  const int64_t longest = COLLAGE_TRY(node.Int("max_ngram_size", 0));
  const int64_t heads = COLLAGE_TRY(node.Int("n_head_per_ngram", 0));
  COLLAGE_TRY_STATUS(node.RequireInt("reset_on_eos", 0, 0));
  if (node.HasInput(6)) return Fail("input 6 (segment_ids) is not supported");
  const Shape factors = COLLAGE_TRY(node.InputType(1)).shape;
  const Shape sizes = COLLAGE_TRY(node.InputType(2)).shape;
  if (type.shape.size() != 2 || factors.size() != 1 || longest < 2 || longest > factors[0])
    return Fail("attribute 'max_ngram_size' is " + std::to_string(longest) + " for tokens " + ToString(type.shape) + " and multipliers " +
                ToString(factors) + "; 2 to as many as there are multipliers is right");
  if (heads < 1 || sizes.size() != 1 || sizes[0] / heads != longest - 1 || sizes[0] % heads != 0)
    return Fail("input 2 (vocab_sizes) has shape " + ToString(sizes) + "; " + std::to_string(heads) + " ('n_head_per_ngram') for each of " +
                std::to_string(longest - 1) + " lengths of runs is right");
  const int64_t length = type.shape[1];
  const int64_t before = longest - 1;
  Formula formula(node, type.dtype);
  Expr history;
  if (node.HasInput(3)) {
    history = COLLAGE_TRY(node.Input(3));
  } else {
    const Expr padding = node.HasInput(5) ? formula.Reshape(COLLAGE_TRY(node.Input(5)), {1, 1})
                                          : formula.Number(static_cast<double>(COLLAGE_TRY(node.Int("pad_id", 0))));
    history = formula.Broadcast(padding, {type.shape[0], before});
  }
  const Expr all = formula.Concatenate({history, tokens}, 1);
  Expr mixed;
  std::vector<Expr> hashes;
  for (int64_t back = 0; back < longest; ++back) {
    const Expr factor = formula.Slice(COLLAGE_TRY(node.Input(1)), 0, back, back + 1);
    const Expr term = formula.Call("multiply", formula.Slice(all, 1, before - back, before - back + length), factor);
    mixed = back == 0 ? term : formula.Call("bitwise_xor", mixed, term);
    if (back == 0) continue;
    const Expr moduli = formula.Slice(COLLAGE_TRY(node.Input(2)), 0, (back - 1) * heads, back * heads);
    hashes.push_back(formula.Call("floor_mod", formula.Apply("expand_dims", {mixed}, {{"axis", 2}}), moduli));
  }
  Expr result = formula.Concatenate(hashes, 2);
  if (node.HasInput(4)) result = formula.Call("add", result, COLLAGE_TRY(node.Input(4)));
  return formula.DoneAll({result, formula.Slice(all, 1, length, length + before)});
}

/// Products of 16-bit integers, whose sums are of 32 bits.
Result<std::vector<Expr>> ReadMatMulInteger16(NodeReader& node) {
  const bool is_signed = COLLAGE_TRY(node.InputType(0)).dtype == DType::kInt16 || COLLAGE_TRY(node.InputType(1)).dtype == DType::kInt16;
  Formula formula(node, is_signed ? DType::kInt32 : DType::kUInt32);
  const auto wide = [&](size_t input) -> Result<Expr> { return formula.Cast(COLLAGE_TRY(node.Input(input)), formula.dtype()); };
  return formula.Done(formula.Apply("nn.matmul", {COLLAGE_TRY(wide(0)), COLLAGE_TRY(wide(1))}));
}

}  // namespace

OperatorFamily ContribTensorsFamily() {
  static constexpr ReadRow kRead[] = {{"com.microsoft.ExpandDims", ReadExpandDims},
                                      {"com.microsoft.UnfoldTensor", ReadUnfoldTensor},
                                      {"com.microsoft.CDist", ReadCDist},
                                      {"com.microsoft.Inverse", ReadDirect<"linalg.inv">},
                                      {"com.microsoft.CropAndResize", ReadCropAndResize},
                                      {"com.microsoft.MurmurHash3", ReadMurmurHash3},
                                      {"com.microsoft.NGramRepeatBlock", ReadNGramRepeatBlock},
                                      {"com.microsoft.NGramHashMapping", ReadNGramHashMapping},
                                      {"com.microsoft.MatMulInteger16", ReadMatMulInteger16},
                                      {"com.microsoft.GridSample", ReadAsDefault<"GridSample">},
                                      {"com.microsoft.SampleOp", ReadAsDefault<"Identity">}};
  static constexpr WriteRow kWrite[] = {{"linalg.inv", WriteDirect<"com.microsoft.Inverse">}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
