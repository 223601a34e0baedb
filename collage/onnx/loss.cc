#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

/// -log_probability[n, target[n, ..], ..], weighted by class, without the targets that are to be ignored, reduced as the attribute
/// says. Shapes are (N, C, ..) and (N, ..).
Result<Expr> NegativeLogLikelihood(NodeReader& node, const Expr& log_probability, Formula& formula) {
  const Expr target = COLLAGE_TRY(node.Input(1));
  const TensorType target_type = COLLAGE_TRY(TensorTypeOf(target));
  if (target_type.shape.empty()) return Fail("targets must have at least one dimension, not shape ()");
  const std::string reduction = COLLAGE_TRY(node.String("reduction", "mean"));
  if (reduction != "none" && reduction != "mean" && reduction != "sum") {
    return Fail("attribute 'reduction' is '" + reduction + "'; none, mean or sum is right");
  }
  Formula integers(node, target_type.dtype);
  Expr ignored;
  Expr safe = target;
  if (node.HasAttribute("ignore_index")) {
    const auto index = static_cast<double>(COLLAGE_TRY(node.Int("ignore_index", 0)));
    ignored = integers.Call("equal", target, index);
    safe = integers.Call("where", ignored, 0.0, target);
  }
  Shape column = target_type.shape;
  column.insert(column.begin() + 1, 1);
  const Expr picked = formula.Apply("gather", {log_probability, integers.Reshape(safe, column)}, {{"axis", 1}});
  Expr loss = formula.Call("negative", formula.Reshape(picked, target_type.shape));
  Expr weight;
  if (node.HasInput(2)) weight = formula.Apply("take", {COLLAGE_TRY(node.Input(2)), safe}, {{"axis", 0}, {"mode", "clip"}});
  if (ignored != nullptr) weight = formula.Call("where", ignored, 0.0, weight != nullptr ? Formula::Term(weight) : Formula::Term(1.0));
  if (weight != nullptr) {
    weight = formula.Broadcast(weight, target_type.shape);
    loss = formula.Call("multiply", loss, weight);
  }
  COLLAGE_TRY(integers.Done(safe));
  if (reduction == "none") return loss;
  const Expr sum = formula.Apply("sum", {loss});
  if (reduction == "sum") return sum;
  if (weight == nullptr) return formula.Apply("mean", {loss});
  return formula.Call("divide", sum, formula.Apply("sum", {weight}));
}

Status CheckScores(const TensorType& scores) {
  if (scores.shape.size() >= 2) return {};
  return Fail("scores must have at least 2 dimensions, not shape " + ToString(scores.shape));
}

Result<std::vector<Expr>> ReadNegativeLogLikelihoodLoss(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  COLLAGE_TRY_STATUS(CheckScores(type));
  Formula formula(node, type.dtype);
  const Expr loss = COLLAGE_TRY(NegativeLogLikelihood(node, data, formula));
  return formula.Done(loss);
}

Result<std::vector<Expr>> ReadSoftmaxCrossEntropyLoss(NodeReader& node) {
  const Expr scores = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(scores));
  COLLAGE_TRY_STATUS(CheckScores(type));
  Formula formula(node, type.dtype);
  const Expr log_probability = formula.Apply("nn.log_softmax", {scores}, {{"axis", 1}});
  const Expr loss = COLLAGE_TRY(NegativeLogLikelihood(node, log_probability, formula));
  return formula.DoneAll({loss, log_probability});
}

}  // namespace

OperatorFamily LossFamily() {
  static constexpr ReadRow kRead[] = {{"NegativeLogLikelihoodLoss", ReadNegativeLogLikelihoodLoss},
                                      {"SoftmaxCrossEntropyLoss", ReadSoftmaxCrossEntropyLoss}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
