#include <algorithm>
#include <limits>

#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
namespace {

/// Axes of a reduction, empty for "none at all": an attribute, or an input from opset 13 (ReduceSum) or 18 (the others) on.
Result<std::vector<int64_t>> ReductionAxes(const NodeReader& node, size_t rank) {
  const int64_t input_since = node.op_type() == "ReduceSum" ? 13 : 18;
  const bool is_input = node.opset() >= input_since;
  std::vector<int64_t> axes;
  if (is_input && node.HasInput(1)) axes = COLLAGE_TRY(node.IntsInput(1, "axes"));
  if (!is_input) axes = COLLAGE_TRY(node.Ints("axes", {}));
  if (!axes.empty()) return NormalizeAxes(std::move(axes), rank);
  if (COLLAGE_TRY(node.Int("noop_with_empty_axes", 0)) != 0) return axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

Result<Expr> Reduce(NodeReader& node, const std::string& op, const Expr& data) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const std::vector<int64_t> axes = COLLAGE_TRY(ReductionAxes(node, type.shape.size()));
  const bool keeps = COLLAGE_TRY(node.Int("keepdims", 1)) != 0;
  if (axes.empty()) return data;
  return node.Call(op, {data}, {{"axis", axes}, {"keepdims", keeps}});
}

/// What the largest or smallest of nothing is: the end of the type on the other side.
Tensor EndOf(DType dtype, bool largest) {
  if (IsFloatingPoint(dtype)) return ScalarOf((largest ? -1 : 1) * std::numeric_limits<double>::infinity(), dtype);
  const auto [least, most] = LimitsOfInteger(dtype);
  if (IsNarrow(dtype)) return ScalarOf(largest ? static_cast<double>(least) : static_cast<double>(most), dtype);
  // No double holds both ends of 64 bits.
  return largest ? Tensor::Scalar(least, dtype) : Tensor::Scalar(most, dtype);
}

/// Of bool, the largest is whether any is True and the smallest whether all are.
template <OperatorName op>
Result<std::vector<Expr>> ReadExtreme(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const DType dtype = type.dtype == DType::kBool ? DType::kUInt8 : type.dtype;
  Formula formula(node, dtype);
  const Expr numbers = COLLAGE_TRY(formula.Done(formula.Cast(data, dtype)))[0];
  if (type.ElementCount() > 0) return formula.Done(formula.Cast(COLLAGE_TRY(Reduce(node, op.text, numbers)), type.dtype));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(COLLAGE_TRY(Reduce(node, "sum", numbers)))).shape;
  const Expr end = MakeConstant(EndOf(dtype, std::string(op.text) == "max"));
  return formula.Done(formula.Cast(formula.Broadcast(end, shape), type.dtype));
}

/// ONNX leaves the mean of nothing open; it is 0 here as in ONNX Runtime, which the sum of nothing is.
Result<std::vector<Expr>> ReadMean(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const bool is_nothing = COLLAGE_TRY(TensorTypeOf(data)).ElementCount() == 0;
  return std::vector<Expr>{COLLAGE_TRY(Reduce(node, is_nothing ? "sum" : "mean", data))};
}

template <OperatorName op>
Result<std::vector<Expr>> ReadReduce(NodeReader& node) {
  return std::vector<Expr>{COLLAGE_TRY(Reduce(node, op.text, COLLAGE_TRY(node.Input(0))))};
}

Result<std::vector<Expr>> ReadReduceL1(NodeReader& node) {
  const Expr magnitude = COLLAGE_TRY(node.Call("abs", {COLLAGE_TRY(node.Input(0))}));
  return std::vector<Expr>{COLLAGE_TRY(Reduce(node, "sum", magnitude))};
}

Result<Expr> SumOfSquares(NodeReader& node, const Expr& data) {
  return Reduce(node, "sum", COLLAGE_TRY(node.Call("multiply", {data, data})));
}

Result<std::vector<Expr>> ReadReduceSumSquare(NodeReader& node) {
  return std::vector<Expr>{COLLAGE_TRY(SumOfSquares(node, COLLAGE_TRY(node.Input(0))))};
}

/// Of integers the root or logarithm is one of real numbers, and what is behind its point is cut off.
template <Result<Expr> (*reduce)(NodeReader& node, const Expr& data)>
Result<std::vector<Expr>> ReadAsReal(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const DType dtype = COLLAGE_TRY(TensorTypeOf(data)).dtype;
  if (IsFloatingPoint(dtype)) return std::vector<Expr>{COLLAGE_TRY(reduce(node, data))};
  Formula formula(node, DType::kFloat64);
  const Expr real = COLLAGE_TRY(formula.Done(formula.Cast(data, DType::kFloat64)))[0];
  return formula.Done(formula.Cast(COLLAGE_TRY(reduce(node, real)), dtype));
}

Result<Expr> ReduceL2(NodeReader& node, const Expr& data) { return node.Call("sqrt", {COLLAGE_TRY(SumOfSquares(node, data))}); }

Result<Expr> ReduceLogSum(NodeReader& node, const Expr& data) { return node.Call("log", {COLLAGE_TRY(Reduce(node, "sum", data))}); }

/// log(sum(exp(x - max))) + max, which does not overflow.
Result<Expr> ReduceLogSumExp(NodeReader& node, const Expr& data) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const std::vector<int64_t> axes = COLLAGE_TRY(ReductionAxes(node, type.shape.size()));
  if (axes.empty()) return data;
  if (type.ElementCount() == 0) return ReduceLogSum(node, data);
  const Expr largest = COLLAGE_TRY(node.Call("max", {data}, {{"axis", axes}, {"keepdims", true}}));
  const Expr shifted = COLLAGE_TRY(node.Call("subtract", {data, largest}));
  const Expr sum = COLLAGE_TRY(node.Call("sum", {COLLAGE_TRY(node.Call("exp", {shifted}))}, {{"axis", axes}, {"keepdims", true}}));
  const Expr logarithm = COLLAGE_TRY(node.Call("log", {sum}));
  const Expr result = COLLAGE_TRY(node.Call("add", {logarithm, largest}));
  if (COLLAGE_TRY(node.Int("keepdims", 1)) != 0) return result;
  return node.Call("squeeze", {result}, {{"axis", axes}});
}

template <OperatorName op>
Result<std::vector<Expr>> ReadArgReduce(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), type.shape.size()));
  Attributes attributes{{"axis", axis}, {"keepdims", COLLAGE_TRY(node.Int("keepdims", 1)) != 0}};
  if (COLLAGE_TRY(node.Int("select_last_index", 0)) != 0) attributes.Set("select_last_index", true);
  return std::vector<Expr>{COLLAGE_TRY(node.Call(op.text, {data}, attributes))};
}

/// The axes that a call reduces, ascending.
Result<std::vector<int64_t>> ReducedAxes(const NodeWriter& writer) {
  const size_t rank = writer.InputType(0).shape.size();
  std::vector<int64_t> all;
  for (size_t i = 0; i < rank; ++i) all.push_back(static_cast<int64_t>(i));
  const AttributeValue* attribute = writer.attributes().Find("axis");
  const bool has_axes = attribute != nullptr && !attribute->IsNone();
  const std::vector<int64_t> axes = COLLAGE_TRY(NormalizeAxes(COLLAGE_TRY(writer.attributes().Ints("axis", all)), rank));
  if (!has_axes || !COLLAGE_TRY(writer.attributes().Bool("exclude", false))) return axes;
  std::erase_if(all, [&](int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
  return all;
}

template <OperatorName op_type>
Status WriteReduce(NodeWriter& writer) {
  const std::vector<int64_t> axes = COLLAGE_TRY(ReducedAxes(writer));
  const int64_t keepdims{COLLAGE_TRY(writer.attributes().Bool("keepdims", false))};
  if (axes.empty()) {
    writer.Emit("Identity", writer.Inputs());
  } else if (std::string(op_type.text) == "ReduceSum" || writer.opset() >= kOpsetOfAxesAsInput) {
    writer.Emit(op_type.text, {writer.Input(0), writer.Ints(axes)}, {{"keepdims", keepdims}});
  } else {
    writer.Emit(op_type.text, writer.Inputs(), {{"axes", axes}, {"keepdims", keepdims}});
  }
  return {};
}

template <OperatorName op_type>
Status WriteArgReduce(NodeWriter& writer) {
  const std::vector<int64_t> axes = COLLAGE_TRY(ReducedAxes(writer));
  if (axes.size() != 1) return Fail("over " + std::to_string(axes.size()) + " axes has no ONNX form");
  writer.Emit(op_type.text, writer.Inputs(),
              {{"axis", axes[0]},
               {"keepdims", int64_t{COLLAGE_TRY(writer.attributes().Bool("keepdims", false))}},
               {"select_last_index", int64_t{COLLAGE_TRY(writer.attributes().Bool("select_last_index", false))}}});
  return {};
}

}  // namespace

OperatorFamily ReductionFamily() {
  static constexpr ReadRow kRead[] = {{"ReduceSum", ReadReduce<"sum">},           {"ReduceMean", ReadMean},
                                      {"ReduceMax", ReadExtreme<"max">},          {"ReduceMin", ReadExtreme<"min">},
                                      {"ReduceProd", ReadReduce<"prod">},         {"ReduceL1", ReadReduceL1},
                                      {"ReduceL2", ReadAsReal<ReduceL2>},         {"ReduceSumSquare", ReadReduceSumSquare},
                                      {"ReduceLogSum", ReadAsReal<ReduceLogSum>}, {"ReduceLogSumExp", ReadAsReal<ReduceLogSumExp>},
                                      {"ArgMax", ReadArgReduce<"argmax">},        {"ArgMin", ReadArgReduce<"argmin">}};
  static constexpr WriteRow kWrite[] = {{"sum", WriteReduce<"ReduceSum">},   {"mean", WriteReduce<"ReduceMean">},
                                        {"max", WriteReduce<"ReduceMax">},   {"min", WriteReduce<"ReduceMin">},
                                        {"prod", WriteReduce<"ReduceProd">}, {"argmax", WriteArgReduce<"ArgMax">},
                                        {"argmin", WriteArgReduce<"ArgMin">}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
