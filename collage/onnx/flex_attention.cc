#include "collage/onnx/flex_attention.h"

#include <cmath>

#include "collage/onnx/data_type.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/heads.h"

namespace collage::onnx_io {
namespace {

/// What the body of that name makes of the data, which must keep its type; the data where there is none.
Result<Expr> Modified(NodeReader& node, const std::string& body, const Expr& data) {
  if (!node.HasAttribute(body)) return data;
  const std::shared_ptr<const OnnxGraph> graph = COLLAGE_TRY(node.GraphAttribute(body));
  Result<ReadBody> read = node.bodies().Read(*graph, {data});
  if (!read) return Fail(read.error().At(body));
  if (read->outputs.size() == 1 && read->outputs[0]->type() == data->type()) return read->outputs[0];
  return Fail(body + " must have one output of type " + ToString(data->type()));
}

Result<DType> Precision(const NodeReader& node, DType dtype) {
  if (!node.HasAttribute("softmax_precision")) return dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const std::optional<DType> given = DTypeOfOnnx(COLLAGE_TRY(node.Int("softmax_precision", 0)));
  if (given && IsFloatingPoint(*given)) return *given;
  return Fail("attribute 'softmax_precision' must be a floating point type");
}

}  // namespace

Result<std::vector<Expr>> ReadFlexAttention(NodeReader& node) {
  const TensorType query = COLLAGE_TRY(node.InputType(0));
  const Shape key = COLLAGE_TRY(node.InputType(1)).shape;
  const Shape value = COLLAGE_TRY(node.InputType(2)).shape;
  if (query.shape.size() != 4 || key.size() != 4 || value.size() != 4 || key[1] < 1 || query.shape[1] % key[1] != 0 || value[1] != key[1])
    return Fail("queries " + ToString(query.shape) + ", keys " + ToString(key) + " and values " + ToString(value) +
                " must be (batch, heads, length, size), with as many heads of values as of keys, and a multiple of queries");
  const int64_t heads = query.shape[1];
  const DType precision = COLLAGE_TRY(Precision(node, query.dtype));
  const double scale = COLLAGE_TRY(node.Float("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(query.shape[3])))));
  Formula formula(node, query.dtype);
  const Expr keys = formula.Transpose(RepeatHeads(formula, COLLAGE_TRY(node.Input(1)), heads), {0, 1, 3, 2});
  const Expr products = formula.Apply("nn.matmul", {COLLAGE_TRY(node.Input(0)), keys});
  const Expr scores = formula.Cast(formula.Call("multiply", products, scale), precision);
  COLLAGE_TRY(formula.Done(scores));
  const Expr modified = COLLAGE_TRY(Modified(node, "score_mod", scores));
  const Expr probabilities = formula.Apply("nn.softmax", {modified}, {{"axis", -1}});
  COLLAGE_TRY(formula.Done(probabilities));
  const Expr weights = formula.Cast(COLLAGE_TRY(Modified(node, "prob_mod", probabilities)), query.dtype);
  return formula.Done(formula.Apply("nn.matmul", {weights, RepeatHeads(formula, COLLAGE_TRY(node.Input(2)), heads)}));
}

}  // namespace collage::onnx_io
