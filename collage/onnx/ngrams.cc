#include <algorithm>

#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/strings.h"

namespace collage::onnx_io {
namespace {

constexpr int64_t kMostSkips = 1000;  // each is a comparison of its own

/// The n-grams of one length: their elements, row by row, and how much each adds to which column of the result.
struct Grams {
  int64_t length;
  std::vector<int64_t> elements;  ///< integers, or numbers of strings
  std::vector<int64_t> columns;
  std::vector<float> weights;

  [[nodiscard]] int64_t Count() const { return static_cast<int64_t>(columns.size()); }
};

/// The pool holds all n-grams of length 1, then those of length 2, and so on; `ngram_counts` says where each length begins.
Result<std::vector<Grams>> ReadPool(const NodeReader& node) {
  std::vector<int64_t> pool = COLLAGE_TRY(node.Ints("pool_int64s", {}));
  for (const std::string& text : COLLAGE_TRY(node.Strings("pool_strings", {}))) pool.push_back(static_cast<int64_t>(NumberOfString(text)));
  const std::vector<int64_t> begins = COLLAGE_TRY(node.Ints("ngram_counts", {}));
  const std::vector<int64_t> columns = COLLAGE_TRY(node.Ints("ngram_indexes", {}));
  const std::vector<float> weights = COLLAGE_TRY(node.Floats("weights", std::vector<float>(columns.size(), 1.0F)));
  const auto end = static_cast<int64_t>(pool.size());
  std::vector<Grams> all;
  size_t gram = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t stop = i + 1 < begins.size() ? begins[i + 1] : end;
    const auto length = static_cast<int64_t>(i) + 1;
    if (begins[i] < 0 || stop < begins[i] || stop > end || (stop - begins[i]) % length != 0) {
      return Fail("attribute 'ngram_counts' does not cut a pool of " + std::to_string(end) + " elements into n-grams");
    }
    Grams grams{length, {pool.begin() + begins[i], pool.begin() + stop}, {}, {}};
    for (int64_t k = 0; k < (stop - begins[i]) / length; ++k, ++gram) {
      if (gram >= columns.size() || gram >= weights.size() || columns[gram] < 0 || columns[gram] >= (int64_t{1} << 30)) {
        return Fail("attribute 'ngram_indexes' or 'weights' has no right value for n-gram " + std::to_string(gram));
      }
      grams.columns.push_back(columns[gram]);
      grams.weights.push_back(weights[gram]);
    }
    all.push_back(std::move(grams));
  }
  return all;
}

/// How often each n-gram stands in the rows of data, (rows, n-grams), where its elements lie `step` apart.
Expr CountsOf(Formula& formula, const Expr& data, const Grams& grams, int64_t step) {
  const Shape shape = Formula::ShapeOf(data);
  const int64_t places = shape[1] - (grams.length - 1) * step;
  if (places < 1) return formula.Zeros({shape[0], grams.Count()}, DType::kFloat32);
  Expr found;
  for (int64_t i = 0; i < grams.length; ++i) {
    std::vector<int64_t> column;
    for (int64_t k = 0; k < grams.Count(); ++k) column.push_back(grams.elements[static_cast<size_t>(k * grams.length + i)]);
    // Of strings these are their numbers.
    const TensorType type{{1, 1, grams.Count()}, data->type().AsTensor()->dtype};
    const Expr wanted = MakeConstant(Tensor::FromVector(type, column));
    const Expr given = formula.Reshape(formula.Slice(data, 1, i * step, i * step + places), {shape[0], places, 1});
    const Expr same = formula.Call("equal", given, wanted);
    found = found == nullptr ? same : formula.Call("logical_and", found, same);
  }
  return formula.Reduce("sum", formula.Cast(found, DType::kFloat32), {1}, false);
}

/// A matrix (n-grams, columns of the result) with the weight of each n-gram in its column.
Result<Expr> WeightMatrix(NodeReader& node, const Grams& grams, int64_t columns, bool weighted) {
  const TensorType type{{grams.Count(), columns}, DType::kFloat32};
  COLLAGE_TRY_STATUS(CheckExtents(type.shape));
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor matrix(type);
  for (int64_t k = 0; k < grams.Count(); ++k) {
    const auto at = static_cast<size_t>(k);
    matrix.MutableData<float>()[k * columns + grams.columns[at]] = weighted ? grams.weights[at] : 1.0F;
  }
  return MakeConstant(std::move(matrix));
}

/// Counts of n-grams of integers or strings: each length and distance of elements by itself.
Result<std::vector<Expr>> ReadTfIdfVectorizer(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const std::vector<Grams> pool = COLLAGE_TRY(ReadPool(node));
  const std::string mode = COLLAGE_TRY(node.String("mode", ""));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return Fail("attribute 'mode' is '" + mode + "'; TF, IDF or TFIDF is right");
  if (type.shape.empty() || type.shape.size() > 2) return Fail("data " + ToString(type.shape) + " must have one or two dimensions");
  const int64_t shortest = COLLAGE_TRY(node.Int("min_gram_length", 1));
  const int64_t longest = COLLAGE_TRY(node.Int("max_gram_length", 1));
  const int64_t skips = COLLAGE_TRY(node.Int("max_skip_count", 0));
  if (skips < 0 || skips > kMostSkips)
    return Fail("attribute 'max_skip_count' is " + std::to_string(skips) + "; 0 to " + std::to_string(kMostSkips) + " is right");
  int64_t columns = 1;
  for (const Grams& grams : pool) {
    for (const int64_t column : grams.columns) columns = std::max(columns, column + 1);
  }
  Formula formula(node, DType::kFloat32);
  const int64_t rows = type.shape.size() == 2 ? type.shape[0] : 1;
  const bool is_of_strings = type.dtype == DType::kString;
  if (is_of_strings != node.HasAttribute("pool_strings")) {
    return Fail("data is " + ToString(type) + ", but the attribute '" + (is_of_strings ? "pool_int64s" : "pool_strings") + "' is given");
  }
  const DType element = is_of_strings ? DType::kString : DType::kInt64;
  const Expr data = formula.Reshape(formula.Cast(COLLAGE_TRY(node.Input(0)), element), {rows, type.shape.back()});
  COLLAGE_TRY(formula.Done(data));
  Expr result = formula.Zeros({rows, columns}, DType::kFloat32);
  for (const Grams& grams : pool) {
    if (grams.length < shortest || grams.length > longest || grams.Count() == 0) continue;
    Expr counts = CountsOf(formula, data, grams, 1);
    // No distance is larger than the data.
    const int64_t furthest = grams.length == 1 ? 1 : std::min(skips + 1, type.shape.back());
    for (int64_t step = 2; step <= furthest; ++step) counts = formula.Call("add", counts, CountsOf(formula, data, grams, step));
    if (mode == "IDF") counts = formula.Call("minimum", counts, 1.0);
    const Expr weights = COLLAGE_TRY(WeightMatrix(node, grams, columns, mode != "TF"));
    result = formula.Call("add", result, formula.Apply("nn.matmul", {counts, weights}));
  }
  return formula.Done(type.shape.size() == 2 ? result : formula.Reshape(result, {columns}));
}

}  // namespace

OperatorFamily NgramsFamily() {
  static constexpr ReadRow kRead[] = {{"TfIdfVectorizer", ReadTfIdfVectorizer}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
