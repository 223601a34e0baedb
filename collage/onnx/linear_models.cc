// Linear models, kernel machines and what prepares features for them (ai.onnx.ml), as compositions of products and arithmetic.

#include <array>
#include <cmath>

#include "collage/onnx/class_scores.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage::onnx_io {
namespace {

/// float64 where data is, else float32.
Result<DType> DTypeOfNumbers(const NodeReader& node) {
  return COLLAGE_TRY(node.InputType(0)).dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

Expr Matrix(DType dtype, const Shape& shape, const std::vector<float>& values) {
  if (dtype == DType::kFloat64)
    return MakeConstant(Tensor::FromVector(TensorType{shape, dtype}, std::vector<double>(values.begin(), values.end())));
  return MakeConstant(Tensor::FromVector(TensorType{shape, dtype}, values));
}

Status CheckLength(const std::string& attribute, size_t found, int64_t expected) {
  if (static_cast<int64_t>(found) == expected) return {};
  return Fail("attribute '" + attribute + "' has " + std::to_string(found) + " elements, expected " + std::to_string(expected));
}

/// Of a matrix that an attribute holds; extents may be anything that a file says.
Status CheckMatrix(const std::string& attribute, size_t found, int64_t rows, int64_t columns) {
  const auto count = static_cast<int64_t>(found);
  const bool fits = columns == 0 ? count == 0 : count % columns == 0 && count / columns == rows;
  if (fits) return {};
  return Fail("attribute '" + attribute + "' has " + std::to_string(found) + " elements, expected " + std::to_string(rows) + " x " +
              std::to_string(columns));
}

/// Input 0 as [N, features] of the formula's numbers; features alone are one row.
Result<Expr> FeatureRows(NodeReader& node, Formula& formula) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  if (type.shape.empty() || type.shape.size() > 2) return Fail("input 0 is " + ToString(type) + ", expected rows of features");
  const int64_t rows = type.shape.size() == 2 ? type.shape[0] : 1;
  const Expr numbers = formula.Cast(formula.Reshape(COLLAGE_TRY(node.Input(0)), {rows, type.shape.back()}), formula.dtype());
  COLLAGE_TRY(formula.Done(numbers));
  return numbers;
}

/// [N, outputs]: rows by "coefficients", which has a row for each output, and "intercepts", where there are any.
Result<Expr> LinearScores(NodeReader& node, Formula& formula, int64_t outputs) {
  const Expr rows = COLLAGE_TRY(FeatureRows(node, formula));
  const std::vector<float> coefficients = COLLAGE_TRY(node.Floats("coefficients", {}));
  const std::vector<float> intercepts = COLLAGE_TRY(node.Floats("intercepts", {}));
  const int64_t features = Formula::ShapeOf(rows)[1];
  COLLAGE_TRY_STATUS(CheckMatrix("coefficients", coefficients.size(), outputs, features));
  const Expr weights = formula.Transpose(Matrix(formula.dtype(), {outputs, features}, coefficients), {1, 0});
  Expr scores = formula.Call("nn.matmul", rows, weights);
  if (!intercepts.empty()) {
    COLLAGE_TRY_STATUS(CheckLength("intercepts", intercepts.size(), outputs));
    scores = formula.Call("add", scores, Matrix(formula.dtype(), {1, outputs}, intercepts));
  }
  COLLAGE_TRY(formula.Done(scores));
  return scores;
}

Result<std::vector<Expr>> ReadLinearRegressor(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(DTypeOfNumbers(node)));
  const int64_t targets = COLLAGE_TRY(node.Int("targets", 1));
  if (targets < 1) return Fail("attribute 'targets' is " + std::to_string(targets) + ", expected at least 1");
  const std::string transform = COLLAGE_TRY(ScoreTransform(node));
  const Expr scores = COLLAGE_TRY(LinearScores(node, formula, targets));
  return formula.Done(formula.Cast(Transformed(formula, transform, scores), DType::kFloat32));
}

/// The score of the second of two classes, and with it the first one's. Other functions than these two are for more classes, as ONNX
/// Runtime has it.
Expr BothScores(Formula& formula, const std::string& transform, const Expr& positive) {
  if (transform == "LOGISTIC")
    return formula.Concatenate({formula.Call("sigmoid", formula.Call("negative", positive)), formula.Call("sigmoid", positive)}, 1);
  return formula.Concatenate({formula.Call("subtract", 1.0, positive), positive}, 1);
}

Expr LabelAt(Formula& formula, const Tensor& labels, const Expr& place) {
  return formula.Apply("take", {MakeConstant(labels), place}, {{"axis", 0}});
}

/// [N]: 1 where the only column is above 0.
Expr IsPositive(Formula& formula, const Expr& scores) {
  const Expr above = formula.Cast(formula.Call("greater", scores, 0.0), DType::kInt64);
  return formula.Reshape(above, {Formula::ShapeOf(scores)[0]});
}

/// The label of the highest score, and all scores. Of two classes the second alone may have coefficients.
Result<std::vector<Expr>> ReadLinearClassifier(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(DTypeOfNumbers(node)));
  const Tensor labels = COLLAGE_TRY(ClassLabels(node, "classlabels_ints"));
  const std::string transform = COLLAGE_TRY(ScoreTransform(node));
  const int64_t features = COLLAGE_TRY(node.InputType(0)).shape.empty() ? 0 : COLLAGE_TRY(node.InputType(0)).shape.back();
  const auto given = static_cast<int64_t>(COLLAGE_TRY(node.Floats("coefficients", {})).size());
  const bool is_binary = labels.ElementCount() == 2 && given == features;
  const Expr scores = COLLAGE_TRY(LinearScores(node, formula, is_binary ? 1 : labels.ElementCount()));
  const Expr place = is_binary ? IsPositive(formula, scores) : formula.Reduce("argmax", scores, {1}, false);
  const Expr shown = is_binary ? BothScores(formula, transform, scores) : Transformed(formula, transform, scores);
  return formula.DoneAll({LabelAt(formula, labels, place), formula.Cast(shown, DType::kFloat32)});
}

/// What kernel machines compare rows with, and how.
struct Kernel {
  std::string type;
  double gamma = 0;
  double offset = 0;
  double degree = 0;
};

Result<Kernel> ReadKernel(const NodeReader& node) {
  static constexpr std::array<const char*, 4> kTypes = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  Kernel kernel;
  kernel.type = COLLAGE_TRY(node.String("kernel_type", "LINEAR"));
  COLLAGE_TRY(PlaceOf(kernel.type, kTypes, "kernel_type"));
  const std::vector<float> parameters = COLLAGE_TRY(node.Floats("kernel_params", {}));
  if (!parameters.empty()) {
    COLLAGE_TRY_STATUS(CheckLength("kernel_params", parameters.size(), 3));
    kernel = {kernel.type, parameters[0], parameters[1], parameters[2]};
  }
  return kernel;
}

/// [N, vectors] of rows [N, features]; `values` are vectors [vectors, features].
Result<Expr> Compared(Formula& formula, const Kernel& kernel, const Expr& rows, const std::vector<float>& values, int64_t vectors) {
  const int64_t features = Formula::ShapeOf(rows)[1];
  COLLAGE_TRY_STATUS(CheckMatrix("support_vectors", values.size(), vectors, features));
  const Expr transposed = formula.Transpose(Matrix(formula.dtype(), {vectors, features}, values), {1, 0});
  const Expr product = formula.Call("nn.matmul", rows, transposed);
  if (kernel.type == "LINEAR") return product;
  if (kernel.type == "RBF") {
    // The square of a distance as a sum of squares: of rows near a vector the other form, by products, would lose all digits.
    const Expr apart = formula.Call("subtract", formula.Reshape(rows, {Formula::ShapeOf(rows)[0], 1, features}),
                                    Matrix(formula.dtype(), {1, vectors, features}, values));
    const Expr distance = formula.Reduce("sum", formula.Call("multiply", apart, apart), {2}, false);
    return formula.Call("exp", formula.Call("multiply", distance, -kernel.gamma));
  }
  const Expr inner = formula.Call("add", formula.Call("multiply", product, kernel.gamma), kernel.offset);
  if (kernel.type == "SIGMOID") return formula.Call("tanh", inner);
  return formula.Call("power", inner, kernel.degree);
}

Result<std::vector<Expr>> ReadSvmRegressor(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(DTypeOfNumbers(node)));
  const Kernel kernel = COLLAGE_TRY(ReadKernel(node));
  const std::string transform = COLLAGE_TRY(ScoreTransform(node));
  const std::vector<float> coefficients = COLLAGE_TRY(node.Floats("coefficients", {}));
  const std::vector<float> vectors = COLLAGE_TRY(node.Floats("support_vectors", {}));
  const std::vector<float> rho = COLLAGE_TRY(node.Floats("rho", {}));
  const int64_t supports = COLLAGE_TRY(node.Int("n_supports", 0));
  COLLAGE_TRY_STATUS(CheckLength("rho", rho.size(), 1));
  const Expr rows = COLLAGE_TRY(FeatureRows(node, formula));
  Expr scores;
  if (supports > 0) {
    COLLAGE_TRY_STATUS(CheckLength("coefficients", coefficients.size(), supports));
    const Expr compared = COLLAGE_TRY(Compared(formula, kernel, rows, vectors, supports));
    scores = formula.Call("nn.matmul", compared, Matrix(formula.dtype(), {supports, 1}, coefficients));
  } else {
    scores = COLLAGE_TRY(Compared(formula, kernel, rows, coefficients, 1));
  }
  scores = formula.Call("add", scores, static_cast<double>(rho[0]));
  if (COLLAGE_TRY(node.Int("one_class", 0)) != 0) {
    const Expr is_inside = formula.Call("greater", scores, 0.0);
    return formula.Done(formula.Cast(formula.Call("where", is_inside, 1.0, -1.0), DType::kFloat32));
  }
  return formula.Done(formula.Cast(Transformed(formula, transform, scores), DType::kFloat32));
}

/// Each two classes are told apart by one sum over the vectors of both; the sum, above 0 or not, is a vote for one of them.
struct PairOfClasses {
  int64_t first;
  int64_t second;
};

/// Of each class, from a logistic function of what each pair has come to (Platt), held away from what is certain as ONNX Runtime does.
Expr Probabilities(Formula& formula, const Expr& sums, const Expr& slopes, const Expr& offsets) {
  constexpr double kLeast = 1e-7;
  const Expr of_second = formula.Call("sigmoid", formula.Call("add", formula.Call("multiply", sums, slopes), offsets));
  return formula.Call("pairwise_coupling", formula.Clip(formula.Call("subtract", 1.0, of_second), kLeast, 1 - kLeast));
}

/// The label of most votes, and what each pair of classes has come to, or where the model has their parameters the probabilities of
/// classes.
Result<std::vector<Expr>> ReadSvmClassifier(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(DTypeOfNumbers(node)));
  const Kernel kernel = COLLAGE_TRY(ReadKernel(node));
  const Tensor labels = COLLAGE_TRY(ClassLabels(node, "classlabels_ints"));
  const std::string transform = COLLAGE_TRY(ScoreTransform(node));
  const std::vector<float> coefficients = COLLAGE_TRY(node.Floats("coefficients", {}));
  const std::vector<float> vectors = COLLAGE_TRY(node.Floats("support_vectors", {}));
  const std::vector<float> rho = COLLAGE_TRY(node.Floats("rho", {}));
  const std::vector<int64_t> of_classes = COLLAGE_TRY(node.Ints("vectors_per_class", {}));
  const std::vector<float> slopes = COLLAGE_TRY(node.Floats("prob_a", {}));
  const std::vector<float> offsets = COLLAGE_TRY(node.Floats("prob_b", {}));
  const int64_t classes = labels.ElementCount();
  if (vectors.empty()) return Fail("has no 'support_vectors': linear machines are not supported, LinearClassifier is");
  COLLAGE_TRY_STATUS(CheckLength("vectors_per_class", of_classes.size(), classes));
  std::vector<int64_t> begins = {0};
  for (const int64_t count : of_classes) {
    if (count < 0 || count > static_cast<int64_t>(vectors.size()))
      return Fail("attribute 'vectors_per_class' has " + std::to_string(count));
    begins.push_back(begins.back() + count);
  }
  const int64_t supports = begins.back();
  COLLAGE_TRY_STATUS(CheckMatrix("coefficients", coefficients.size(), classes - 1, supports));
  const int64_t pair_count = classes * (classes - 1) / 2;
  COLLAGE_TRY_STATUS(CheckLength("rho", rho.size(), pair_count));
  if (!slopes.empty() || !offsets.empty()) {
    COLLAGE_TRY_STATUS(CheckLength("prob_a", slopes.size(), pair_count));
    COLLAGE_TRY_STATUS(CheckLength("prob_b", offsets.size(), pair_count));
  }
  std::vector<PairOfClasses> pairs;
  for (int64_t first = 0; first < classes; ++first) {
    for (int64_t second = first + 1; second < classes; ++second) pairs.push_back({first, second});
  }
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>((supports + 2 * classes) * pair_count) * sizeof(double)));
  std::vector<float> weights(static_cast<size_t>(supports * pair_count));
  std::vector<float> votes_above(static_cast<size_t>(pair_count * classes));
  std::vector<float> votes_below(votes_above.size());
  for (int64_t p = 0; p < pair_count; ++p) {
    const auto [first, second] = pairs[static_cast<size_t>(p)];
    const auto take = [&](int64_t of_class, int64_t row) {
      for (int64_t i = begins[static_cast<size_t>(of_class)]; i < begins[static_cast<size_t>(of_class) + 1]; ++i)
        weights[static_cast<size_t>(i * pair_count + p)] = coefficients[static_cast<size_t>(row * supports + i)];
    };
    take(first, second - 1);
    take(second, first);
    votes_above[static_cast<size_t>(p * classes + first)] = 1;
    votes_below[static_cast<size_t>(p * classes + second)] = 1;
  }
  const DType dtype = formula.dtype();
  const Expr rows = COLLAGE_TRY(FeatureRows(node, formula));
  const Expr compared = COLLAGE_TRY(Compared(formula, kernel, rows, vectors, supports));
  Expr sums = formula.Call("nn.matmul", compared, Matrix(dtype, {supports, pair_count}, weights));
  sums = formula.Call("add", sums, Matrix(dtype, {1, pair_count}, rho));
  const Expr above = formula.Call("greater", sums, 0.0);
  const Expr votes =
      formula.Call("add", formula.Call("nn.matmul", formula.Cast(above, dtype), Matrix(dtype, {pair_count, classes}, votes_above)),
                   formula.Call("nn.matmul", formula.Cast(formula.Call("logical_not", above), dtype),
                                Matrix(dtype, {pair_count, classes}, votes_below)));
  const Expr place = formula.Reduce("argmax", votes, {1}, false);
  if (!slopes.empty()) {
    const Expr shown = Probabilities(formula, sums, Matrix(dtype, {1, pair_count}, slopes), Matrix(dtype, {1, pair_count}, offsets));
    return formula.DoneAll({LabelAt(formula, labels, place), formula.Cast(Transformed(formula, transform, shown), DType::kFloat32)});
  }
  Expr shown = classes == 2 ? formula.Concatenate({formula.Call("negative", sums), sums}, 1) : sums;
  // Of two classes other functions than LOGISTIC have no effect.
  if (classes != 2 || transform == "LOGISTIC") shown = Transformed(formula, transform, shown);
  return formula.DoneAll({LabelAt(formula, labels, place), formula.Cast(shown, DType::kFloat32)});
}

/// An attribute with a number for each feature, or one for all of them, as what broadcasts to data; null where it is absent.
Result<Expr> PerFeature(const NodeReader& node, const std::string& name, const TensorType& data) {
  const std::vector<float> values = COLLAGE_TRY(node.Floats(name, {}));
  if (values.empty()) return Expr();
  const auto count = static_cast<int64_t>(values.size());
  if (count != 1 && (data.shape.empty() || count != data.shape.back()))
    return Fail("attribute '" + name + "' has " + std::to_string(count) + " elements for data " + ToString(data));
  return Matrix(DType::kFloat32, {count}, values);
}

Result<std::vector<Expr>> ReadScaler(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  Formula formula(node, DType::kFloat32);
  Expr data = formula.Cast(COLLAGE_TRY(node.Input(0)), DType::kFloat32);
  if (const Expr offset = COLLAGE_TRY(PerFeature(node, "offset", type))) data = formula.Call("subtract", data, offset);
  if (const Expr scale = COLLAGE_TRY(PerFeature(node, "scale", type))) data = formula.Call("multiply", data, scale);
  return formula.Done(data);
}

/// Rows by their greatest element, the sum of their magnitudes, or their length. A row for which that is zero stays as it is.
Result<std::vector<Expr>> ReadNormalizer(NodeReader& node) {
  static constexpr std::array<const char*, 3> kNorms = {"MAX", "L1", "L2"};
  const std::string norm = COLLAGE_TRY(node.String("norm", "MAX"));
  COLLAGE_TRY(PlaceOf(norm, kNorms, "norm"));
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  Formula formula(node, DType::kFloat32);
  const Expr rows = COLLAGE_TRY(FeatureRows(node, formula));
  Expr size;
  if (norm == "MAX") size = formula.Reduce("max", rows, {1}, true);
  if (norm == "L1") size = formula.Reduce("sum", formula.Call("abs", rows), {1}, true);
  if (norm == "L2") size = formula.Call("sqrt", formula.Reduce("sum", formula.Call("multiply", rows, rows), {1}, true));
  const Expr divisor = formula.Call("where", formula.Call("equal", size, 0.0), 1.0, size);
  return formula.Done(formula.Reshape(formula.Call("divide", rows, divisor), type.shape));
}

/// Elements that are "replaced_value", which may be NaN, become the imputed value of their feature.
Result<std::vector<Expr>> ReadImputer(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const Expr data = COLLAGE_TRY(node.Input(0));
  const bool is_floating = IsFloatingPoint(type.dtype);
  const char* name = is_floating ? "imputed_value_floats" : "imputed_value_int64s";
  std::vector<double> imputed;
  double replaced = 0;
  if (is_floating) {
    for (const float value : COLLAGE_TRY(node.Floats(name, {}))) imputed.push_back(value);
    replaced = COLLAGE_TRY(node.Float("replaced_value_float", 0));
  } else {
    for (const int64_t value : COLLAGE_TRY(node.Ints(name, {}))) imputed.push_back(static_cast<double>(value));
    replaced = static_cast<double>(COLLAGE_TRY(node.Int64("replaced_value_int64", 0)));
  }
  if (imputed.empty()) return Fail("attribute '" + std::string(name) + "' has no elements");
  if (imputed.size() > 1) COLLAGE_TRY_STATUS(CheckLength(name, imputed.size(), type.shape.empty() ? 1 : type.shape.back()));
  Formula formula(node, type.dtype);
  std::vector<Expr> parts;
  for (const double value : imputed) parts.push_back(formula.Reshape(formula.Number(value), {1}));
  const Expr is_replaced = std::isnan(replaced) ? formula.Call("isnan", data) : formula.Call("equal", data, replaced);
  return formula.Done(formula.Call("where", is_replaced, formula.Concatenate(parts, 0), data));
}

/// Features of all inputs side by side.
Result<std::vector<Expr>> ReadFeatureVectorizer(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  std::vector<Expr> parts;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const TensorType type = COLLAGE_TRY(node.InputType(i));
    const int64_t rows = type.shape.empty() ? 1 : type.shape[0];
    const int64_t features = rows == 0 ? 0 : type.ElementCount() / rows;
    parts.push_back(formula.Cast(formula.Reshape(COLLAGE_TRY(node.Input(i)), {rows, features}), DType::kFloat32));
  }
  return formula.Done(formula.Concatenate(parts, 1));
}

/// A last axis with a number for each category, 1 at that of the element. Numbers are truncated before.
Result<std::vector<Expr>> ReadOneHotEncoder(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const std::vector<std::string> strings = COLLAGE_TRY(node.Strings("cats_strings", {}));
  const std::vector<int64_t> integers = COLLAGE_TRY(node.Ints("cats_int64s", {}));
  const bool has_strings = type.dtype == DType::kString;
  const auto count = static_cast<int64_t>(has_strings ? strings.size() : integers.size());
  if (count == 0) return Fail("data is " + ToString(type) + ", for which there are no categories");
  Formula formula(node, DType::kInt64);
  Shape with_categories = type.shape;
  with_categories.push_back(1);
  const Expr data = has_strings ? COLLAGE_TRY(node.Input(0)) : formula.Cast(COLLAGE_TRY(node.Input(0)), DType::kInt64);
  const Tensor categories = has_strings ? StringTensor({count}, strings) : Tensor::FromVector(TensorType{{count}, DType::kInt64}, integers);
  const Expr equal = formula.Call("equal", formula.Reshape(data, with_categories), MakeConstant(categories));
  return formula.Done(formula.Cast(equal, DType::kFloat32));
}

}  // namespace

OperatorFamily LinearModelFamily() {
  static constexpr ReadRow kRead[] = {{"ai.onnx.ml.LinearRegressor", ReadLinearRegressor},
                                      {"ai.onnx.ml.LinearClassifier", ReadLinearClassifier},
                                      {"ai.onnx.ml.SVMRegressor", ReadSvmRegressor},
                                      {"ai.onnx.ml.SVMClassifier", ReadSvmClassifier},
                                      {"ai.onnx.ml.Scaler", ReadScaler},
                                      {"ai.onnx.ml.Normalizer", ReadNormalizer},
                                      {"ai.onnx.ml.Imputer", ReadImputer},
                                      {"ai.onnx.ml.FeatureVectorizer", ReadFeatureVectorizer},
                                      {"ai.onnx.ml.OneHotEncoder", ReadOneHotEncoder}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
