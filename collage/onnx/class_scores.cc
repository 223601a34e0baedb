#include "collage/onnx/class_scores.h"

#include <cmath>
#include <numbers>

#include "collage/tensor/strings.h"

namespace collage::onnx_io {
namespace {

/// The quantile of the normal distribution, with the inverse of erf as S. Winitzki, A handy approximation for the error function and its
/// inverse (2008), has it; ONNX Runtime computes the same.
Expr Probit(Formula& formula, const Expr& probability) {
  constexpr double kA = 0.147;  // Winitzki's
  const Expr y = formula.Call("subtract", formula.Call("multiply", probability, 2.0), 1.0);
  const Expr log = formula.Call("log", formula.Call("multiply", formula.Call("subtract", 1.0, y), formula.Call("add", 1.0, y)));
  const Expr v = formula.Call("add", formula.Call("multiply", log, 0.5), 2 / (std::numbers::pi * kA));
  const Expr inner = formula.Call("subtract", formula.Call("multiply", v, v), formula.Call("multiply", log, 1 / kA));
  const Expr root = formula.Call("sqrt", formula.Call("subtract", formula.Call("sqrt", inner), v));
  const Expr inverse = formula.Call("multiply", formula.Call("where", formula.Call("less", y, 0.0), -1.0, 1.0), root);
  return formula.Call("multiply", inverse, std::numbers::sqrt2);
}

/// As softmax, but of scores that are not zero, which stay zero.
Expr SoftmaxOfOthers(Formula& formula, const Expr& scores) {
  constexpr double kZero = 1e-7;  // up to this ONNX Runtime takes a score for zero
  const Expr is_other = formula.Call("greater", formula.Call("abs", scores), kZero);
  const Expr most = formula.Reduce("max", scores, {1}, true);
  const Expr exponential = formula.Call("exp", formula.Call("subtract", scores, most));
  const Expr others = formula.Call("where", is_other, exponential, 0.0);
  const Expr sum = formula.Reduce("sum", others, {1}, true);
  return formula.Call("where", is_other, formula.Call("divide", others, sum), 0.0);
}

}  // namespace

Result<std::string> ScoreTransform(const NodeReader& node) {
  const std::string transform = COLLAGE_TRY(node.String("post_transform", "NONE"));
  COLLAGE_TRY(PlaceOf(transform, kScoreTransforms, "post_transform"));
  return transform;
}

Expr Transformed(Formula& formula, const std::string& transform, const Expr& scores) {
  if (transform == "SOFTMAX") return formula.Apply("nn.softmax", {scores}, {{"axis", 1}});
  if (transform == "LOGISTIC") return formula.Call("sigmoid", scores);
  if (transform == "SOFTMAX_ZERO") return SoftmaxOfOthers(formula, scores);
  if (transform == "PROBIT") return Probit(formula, scores);
  return scores;
}

Result<Tensor> ClassLabels(const NodeReader& node, const std::string& integers_name) {
  const std::vector<std::string> strings = COLLAGE_TRY(node.Strings("classlabels_strings", {}));
  if (!strings.empty()) return StringTensor({static_cast<int64_t>(strings.size())}, strings);
  const std::vector<int64_t> integers = COLLAGE_TRY(node.Ints(integers_name, {}));
  if (integers.empty()) return Fail("has neither of the attributes 'classlabels_strings' and '" + integers_name + "'");
  return Tensor::FromVector(TensorType{{static_cast<int64_t>(integers.size())}, DType::kInt64}, integers);
}

}  // namespace collage::onnx_io
