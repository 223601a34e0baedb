#include <cmath>

#include "collage/onnx/curves.h"
#include "collage/onnx/rows.h"

// Normalisations by branches, gates and mixtures of residual streams of com.microsoft. They compute in float32 whatever the data are.

namespace collage::onnx_io {
namespace {

constexpr DType kWide = DType::kFloat32;

Result<Expr> WideInput(NodeReader& node, Formula& formula, size_t input) { return formula.Cast(COLLAGE_TRY(node.Input(input)), kWide); }

/// data / sqrt(mean(data * data) + epsilon) over the last dimension.
Expr Normalized(Formula& formula, const Expr& data, double epsilon) {
  const Expr mean = formula.Reduce("mean", formula.Call("multiply", data, data), {-1}, true);
  return formula.Call("divide", data, formula.Call("sqrt", formula.Call("add", mean, epsilon)));
}

/// What comes out has the dtype of input 0.
Result<std::vector<Expr>> Narrowed(const NodeReader& node, Formula& formula, std::vector<Expr> results) {
  const DType dtype = COLLAGE_TRY(node.InputType(0)).dtype;
  for (Expr& result : results) result = formula.Cast(result, dtype);
  return formula.DoneAll(std::move(results));
}

/// sigmoid(z) * z for z = scale * x, each rounded to the dtype of x.
Result<std::vector<Expr>> ReadScaledSiLU(NodeReader& node) {
  const DType dtype = COLLAGE_TRY(node.InputType(0)).dtype;
  Formula formula(node, kWide);
  const Expr scale = node.HasInput(1) ? formula.Reshape(COLLAGE_TRY(WideInput(node, formula, 1)), {})
                                      : formula.Number(COLLAGE_TRY(node.Float("alpha", 1)));
  const Expr scaled = formula.Cast(formula.Call("multiply", COLLAGE_TRY(WideInput(node, formula, 0)), scale), dtype);
  return formula.Done(Silu(formula, scaled));
}

Result<std::vector<Expr>> ReadGatedAdd(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr gated = formula.Call("multiply", COLLAGE_TRY(node.Input(1)), COLLAGE_TRY(node.Input(2)));
  return formula.Done(formula.Call("add", COLLAGE_TRY(node.Input(0)), gated));
}

/// Groups of as many elements as the scale has are normalised, then multiplied by the activated gate.
Result<std::vector<Expr>> ReadGatedRMSNorm(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(node.InputType(0)).shape;
  const Shape scale = COLLAGE_TRY(node.InputType(1)).shape;
  if (shape.empty() || scale.size() != 1 || scale[0] < 1 || shape.back() % scale[0] != 0)
    return Fail("input 1 (scale) has shape " + ToString(scale) + "; one dimension that divides the last of " + ToString(shape) +
                " is right");
  const std::string activation = COLLAGE_TRY(node.String("activation", "silu"));
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    return Fail("attribute 'activation' is '" + activation + "'; silu, swish or sigmoid is right");
  Formula formula(node, kWide);
  const Expr groups = formula.Reshape(COLLAGE_TRY(WideInput(node, formula, 0)), {ElementCount(shape) / scale[0], scale[0]});
  const Expr normalized = Normalized(formula, groups, COLLAGE_TRY(node.Float("epsilon", 1e-5F)));
  const Expr scaled = formula.Reshape(formula.Call("multiply", normalized, COLLAGE_TRY(WideInput(node, formula, 1))), shape);
  const Expr gate = COLLAGE_TRY(WideInput(node, formula, 2));
  const Expr curve = activation == "sigmoid" ? formula.Call("sigmoid", gate) : Silu(formula, gate);
  return Narrowed(node, formula, {formula.Call("multiply", scaled, curve)});
}

/// The shape (.., branches, size) of streams that lie so, or flattened where 'num_branches' says how many there are.
Result<Shape> BranchShape(const NodeReader& node) {
  Shape shape = COLLAGE_TRY(node.InputType(0)).shape;
  const int64_t branches = COLLAGE_TRY(node.Int("num_branches", 0));
  if (branches == 0 && shape.size() >= 2) return shape;
  if (branches < 1 || shape.empty() || shape.back() % branches != 0)
    return Fail("attribute 'num_branches' is " + std::to_string(branches) + ", of which input 0 of shape " + ToString(shape) +
                " has no branches");
  shape.back() /= branches;
  shape.insert(shape.end() - 1, branches);
  return shape;
}

Result<std::vector<Expr>> ReadBranchwiseRMSNorm(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(BranchShape(node));
  Formula formula(node, kWide);
  const Expr data = formula.Reshape(COLLAGE_TRY(WideInput(node, formula, 0)), shape);
  Expr result = Normalized(formula, data, COLLAGE_TRY(node.Float("epsilon", 1e-5F)));
  if (node.HasInput(1)) {
    const Shape branch(shape.end() - 2, shape.end());
    const Expr scale = COLLAGE_TRY(WideInput(node, formula, 1));
    const bool is_flat = ElementCount(Formula::ShapeOf(scale)) == ElementCount(branch);
    result = formula.Call("multiply", result, is_flat ? formula.Reshape(scale, branch) : scale);
  }
  return Narrowed(node, formula, {formula.Reshape(result, COLLAGE_TRY(node.InputType(0)).shape)});
}

/// Weights of branches, (.., branches), or of their elements in any form, so that they go with (.., branches, size).
Result<Expr> BranchWeights(NodeReader& node, Formula& formula, size_t input, const Shape& shape) {
  const Expr given = COLLAGE_TRY(WideInput(node, formula, input));
  const int64_t count = COLLAGE_TRY(node.InputType(input)).ElementCount();
  if (count == ElementCount(shape)) return formula.Reshape(given, shape);
  Shape narrow = shape;
  narrow.back() = 1;
  if (count == ElementCount(narrow)) return formula.Reshape(given, narrow);
  return Fail("input " + std::to_string(input) + " has shape " + ToString(COLLAGE_TRY(node.InputType(input)).shape) + "; " +
              ToString(narrow) + " or " + ToString(shape) + " is right");
}

Result<std::vector<Expr>> ReadHyperConnectionPreMix(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(BranchShape(node));
  Formula formula(node, kWide);
  const Expr streams = formula.Reshape(COLLAGE_TRY(WideInput(node, formula, 0)), shape);
  const Expr weighted = formula.Call("multiply", streams, COLLAGE_TRY(BranchWeights(node, formula, 1, shape)));
  const Expr sum = formula.Reduce("sum", weighted, {-2}, false);
  return Narrowed(node, formula, {formula.Call("multiply", sum, COLLAGE_TRY(node.Float("reduction_scale", 1)))});
}

Result<std::vector<Expr>> ReadHyperConnectionPostMix(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(BranchShape(node));
  Formula formula(node, kWide);
  Expr streams = formula.Reshape(COLLAGE_TRY(WideInput(node, formula, 0)), shape);
  if (node.HasInput(3)) streams = formula.Apply("nn.matmul", {COLLAGE_TRY(WideInput(node, formula, 3)), streams}, {{"transpose_a", true}});
  const Expr block = formula.Apply("expand_dims", {COLLAGE_TRY(WideInput(node, formula, 1))}, {{"axis", -2}});
  const Expr injected = formula.Call("multiply", block, COLLAGE_TRY(BranchWeights(node, formula, 2, shape)));
  const Expr result = formula.Call("add", streams, injected);
  return Narrowed(node, formula, {formula.Reshape(result, COLLAGE_TRY(node.InputType(0)).shape)});
}

Result<std::vector<Expr>> ReadLinearAttentionGate(NodeReader& node) {
  Formula formula(node, kWide);
  const Expr biased = formula.Call("add", COLLAGE_TRY(WideInput(node, formula, 0)), COLLAGE_TRY(WideInput(node, formula, 1)));
  const Expr decay = formula.Call("multiply", COLLAGE_TRY(WideInput(node, formula, 2)), Softplus(formula, biased));
  if (!node.HasInput(3)) return Narrowed(node, formula, {decay});
  return Narrowed(node, formula, {decay, formula.Call("sigmoid", COLLAGE_TRY(WideInput(node, formula, 3)))});
}

/// How much key and query agree, as a gate of the value that all branches share, (batch, length, branches, hidden).
Result<std::vector<Expr>> ReadEngramGate(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(node.InputType(0)).shape;
  if (shape.size() != 4) return Fail("input 0 (key) has shape " + ToString(shape) + "; (batch, length, branches, hidden) is right");
  const double epsilon = COLLAGE_TRY(node.Float("epsilon", 1e-5F));
  Formula formula(node, kWide);
  const auto scaled = [&](const Expr& data, size_t scale) -> Result<Expr> {
    return formula.Call("multiply", Normalized(formula, data, epsilon), COLLAGE_TRY(WideInput(node, formula, scale)));
  };
  const Expr key = COLLAGE_TRY(scaled(COLLAGE_TRY(WideInput(node, formula, 0)), 3));
  const Expr query = COLLAGE_TRY(scaled(COLLAGE_TRY(WideInput(node, formula, 1)), 4));
  const Expr sum = formula.Reduce("sum", formula.Call("multiply", key, query), {-1}, true);
  const Expr agreement = formula.Call("divide", sum, std::sqrt(static_cast<double>(shape[3])));
  // The operator's own bound, below which the root is flat.
  const Expr root = formula.Call("sqrt", formula.Call("maximum", formula.Call("abs", agreement), 1e-6));
  const Expr gate = formula.Call("sigmoid", formula.Call("multiply", formula.Call("sign", agreement), root));
  const Expr value = formula.Apply("expand_dims", {COLLAGE_TRY(WideInput(node, formula, 2))}, {{"axis", 2}});
  const Expr result = formula.Call("multiply", gate, value);
  if (node.output_count() < 2) return Narrowed(node, formula, {result});
  return Narrowed(node, formula, {result, COLLAGE_TRY(scaled(result, 5))});
}

}  // namespace

OperatorFamily ContribGatesFamily() {
  static constexpr ReadRow kRead[] = {{"com.microsoft.ScaledSiLU", ReadScaledSiLU},
                                      {"com.microsoft.GatedAdd", ReadGatedAdd},
                                      {"com.microsoft.GatedRMSNorm", ReadGatedRMSNorm},
                                      {"com.microsoft.BranchwiseRMSNorm", ReadBranchwiseRMSNorm},
                                      {"com.microsoft.HyperConnectionPreMix", ReadHyperConnectionPreMix},
                                      {"com.microsoft.HyperConnectionPostMix", ReadHyperConnectionPostMix},
                                      {"com.microsoft.LinearAttentionGate", ReadLinearAttentionGate},
                                      {"com.microsoft.EngramGate", ReadEngramGate}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
