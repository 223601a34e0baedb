#include <algorithm>

#include "collage/onnx/data_type.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

/// An input of one integer.
Result<int64_t> IntInput(const NodeReader& node, size_t index, const std::string& meaning) {
  const Tensor value = COLLAGE_TRY(node.ConstantInput(index, meaning));
  if (value.ElementCount() == 1) return value.ToInt64()[0];
  return Fail("input " + std::to_string(index) + " (" + meaning + ") must have one element, not shape " + ToString(value.shape()));
}

Expr Int64Constant(const Shape& shape, const std::vector<int64_t>& values) {
  return MakeConstant(Tensor::FromVector(TensorType{shape, DType::kInt64}, values));
}

Result<std::vector<Expr>> ReadTrilu(NodeReader& node) {
  const int64_t k = node.HasInput(1) ? COLLAGE_TRY(IntInput(node, 1, "k")) : 0;
  const bool upper = COLLAGE_TRY(node.Int("upper", 1)) != 0;
  return std::vector<Expr>{COLLAGE_TRY(node.Call("trilu", {COLLAGE_TRY(node.Input(0))}, {{"k", k}, {"upper", upper}}))};
}

/// Backwards is forwards on reversed data.
template <OperatorName op>
Result<std::vector<Expr>> ReadCumulative(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(IntInput(node, 1, "axis")), type.shape.size()));
  const bool reverse = COLLAGE_TRY(node.Int("reverse", 0)) != 0;
  const bool exclusive = COLLAGE_TRY(node.Int("exclusive", 0)) != 0;
  Formula formula(node, type.dtype);
  const Expr forward = reverse ? formula.Reverse(data, axis) : data;
  const Expr result = formula.Apply(op.text, {forward}, {{"axis", axis}, {"exclusive", exclusive}});
  return formula.Done(reverse ? formula.Reverse(result, axis) : result);
}

/// k: an attribute until opset 9, an input from 10 on; `largest` came with 11.
Result<std::vector<Expr>> ReadTopK(NodeReader& node) {
  const int64_t k = node.opset() < 10 ? COLLAGE_TRY(node.Int("k", 0)) : COLLAGE_TRY(IntInput(node, 1, "k"));
  const int64_t axis = COLLAGE_TRY(node.Int("axis", -1));
  const bool largest = COLLAGE_TRY(node.Int("largest", 1)) != 0;
  const Expr result = COLLAGE_TRY(node.Call("topk", {COLLAGE_TRY(node.Input(0))}, {{"k", k}, {"axis", axis}, {"is_ascend", !largest}}));
  const Expr values = COLLAGE_TRY(NodeReader::Project(result, 0));
  return std::vector<Expr>{values, COLLAGE_TRY(NodeReader::Project(result, 1))};
}

/// Indices from -depth on count from the end; values are [off, on].
Result<std::vector<Expr>> ReadOneHot(NodeReader& node) {
  const int64_t depth = COLLAGE_TRY(IntInput(node, 1, "depth"));
  const Expr values = COLLAGE_TRY(node.Input(2));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(values));
  if (type.shape != Shape{2}) return Fail("input 2 (values) has shape " + ToString(type.shape) + ", (2,) is right");
  const int64_t axis = COLLAGE_TRY(node.Int("axis", -1));
  Formula formula(node, DType::kInt64);
  const Expr indices = formula.Cast(COLLAGE_TRY(node.Input(0)), DType::kInt64);
  const Expr wrapped =
      formula.Call("where", formula.Call("less", indices, 0.0), formula.Call("add", indices, static_cast<double>(depth)), indices);
  const Expr off = formula.Reshape(formula.Slice(values, 0, 0, 1), {});
  const Expr on = formula.Reshape(formula.Slice(values, 0, 1, 2), {});
  return formula.Done(formula.Apply("one_hot", {wrapped, on, off}, {{"depth", depth}, {"axis", axis}}));
}

/// 1 at the first largest element along the axis; until opset 12 everything from `axis` on is one dimension.
Result<std::vector<Expr>> ReadHardmax(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const bool flattens = node.opset() < 13;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", flattens ? 1 : -1)), type.shape.size()));
  Shape shape = type.shape;
  if (flattens) {
    shape = {ElementCount(Shape(shape.begin(), shape.begin() + axis)), ElementCount(Shape(shape.begin() + axis, shape.end()))};
  }
  const int64_t along = flattens ? 1 : axis;
  Formula formula(node, type.dtype);
  const Expr places = formula.Apply("argmax", {formula.Reshape(data, shape)}, {{"axis", along}, {"keepdims", false}});
  const Expr result = formula.Apply("one_hot", {places, formula.Number(1), formula.Number(0)},
                                    {{"depth", shape[static_cast<size_t>(along)]}, {"axis", along}});
  return formula.Done(formula.Reshape(result, type.shape));
}

Result<std::vector<Expr>> ReadReverseSequence(NodeReader& node) {
  const int64_t batch = COLLAGE_TRY(node.Int("batch_axis", 1));
  const int64_t time = COLLAGE_TRY(node.Int("time_axis", 0));
  return std::vector<Expr>{
      COLLAGE_TRY(node.Call("reverse_sequence", COLLAGE_TRY(node.Inputs()), {{"seq_axis", time}, {"batch_axis", batch}}))};
}

Result<std::vector<Expr>> ReadEinsum(NodeReader& node) {
  const std::string equation = COLLAGE_TRY(node.String("equation", ""));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("einsum", {MakeTuple(COLLAGE_TRY(node.Inputs()))}, {{"equation", equation}}))};
}

/// Ones on a diagonal; a constant, since only the shape of the input counts.
Result<std::vector<Expr>> ReadEyeLike(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  if (type.shape.size() != 2) return Fail("data must have 2 dimensions, not shape " + ToString(type.shape));
  const int64_t to = COLLAGE_TRY(node.Int("dtype", OnnxDataType(type.dtype)));
  const std::optional<DType> dtype = DTypeOfOnnx(to);
  if (!dtype) return Fail("attribute 'dtype' is the data type " + std::to_string(to) + ", which is not supported");
  const int64_t rows = type.shape[0];
  const int64_t columns = type.shape[1];
  const int64_t k = std::clamp<int64_t>(COLLAGE_TRY(node.Int("k", 0)), -rows, columns);
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor result(TensorType{type.shape, DType::kUInt8});
  for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns; ++row) {
    result.MutableData<uint8_t>()[row * columns + row + k] = 1;
  }
  return std::vector<Expr>{COLLAGE_TRY(node.Call("cast", {MakeConstant(result)}, {{"dtype", std::string(Name(*dtype))}}))};
}

/// The slices for which a condition that is known holds; without an axis, of the flattened data.
Result<std::vector<Expr>> ReadCompress(NodeReader& node) {
  Expr data = COLLAGE_TRY(node.Input(0));
  const std::vector<int64_t> condition = COLLAGE_TRY(node.ConstantInput(1, "condition")).ToInt64();
  TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  int64_t axis = 0;
  if (node.HasAttribute("axis")) {
    axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), type.shape.size()));
  } else {
    type.shape = {type.ElementCount()};
    data = COLLAGE_TRY(node.Reshape(data, type.shape));
  }
  std::vector<int64_t> places;
  const int64_t extent = std::min(type.shape[static_cast<size_t>(axis)], static_cast<int64_t>(condition.size()));
  for (int64_t i = 0; i < extent; ++i) {
    if (condition[static_cast<size_t>(i)] != 0) places.push_back(i);
  }
  const Expr indices = Int64Constant({static_cast<int64_t>(places.size())}, places);
  return std::vector<Expr>{COLLAGE_TRY(node.Call("take", {data, indices}, {{"axis", axis}, {"mode", "clip"}}))};
}

/// The index vectors of the elements that are not 0, of data that are known: the shape of the result hangs on them.
Result<std::vector<Expr>> ReadNonZero(NodeReader& node) {
  const Tensor data = COLLAGE_TRY(node.ConstantInput(0, "data"));
  const std::vector<double> values = data.ToDouble();
  const std::vector<int64_t> strides = RowMajorStrides(data.shape());
  std::vector<int64_t> places;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> result;
  for (size_t d = 0; d < strides.size(); ++d) {
    for (int64_t place : places) result.push_back(place / strides[d] % data.shape()[d]);
  }
  return std::vector<Expr>{Int64Constant({static_cast<int64_t>(strides.size()), static_cast<int64_t>(places.size())}, result)};
}

Status WriteTrilu(NodeWriter& writer) {
  const std::string k = writer.Initializer(Tensor::Scalar(COLLAGE_TRY(writer.attributes().Int("k", 0)), DType::kInt64));
  writer.Emit("Trilu", {writer.Input(0), k}, {{"upper", int64_t{COLLAGE_TRY(writer.attributes().Bool("upper", true))}}});
  return {};
}

Status WriteCumSum(NodeWriter& writer) {
  const std::string axis = writer.Initializer(Tensor::Scalar(COLLAGE_TRY(writer.attributes().Int("axis", 0)), DType::kInt64));
  writer.Emit("CumSum", {writer.Input(0), axis}, {{"exclusive", int64_t{COLLAGE_TRY(writer.attributes().Bool("exclusive", false))}}});
  return {};
}

Status WriteCumProd(NodeWriter&) { return Fail("has no form in opset " + std::to_string(kWrittenOpset)); }

Status WriteTopK(NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  writer.EmitAll("TopK", {writer.Input(0), writer.Ints({COLLAGE_TRY(attributes.Int("k", 1))})},
                 {{"axis", COLLAGE_TRY(attributes.Int("axis", -1))},
                  {"largest", int64_t{!COLLAGE_TRY(attributes.Bool("is_ascend", false))}},
                  {"sorted", int64_t{1}}});
  return {};
}

Status WriteOneHot(NodeWriter& writer) {
  const std::string one = writer.Ints({1});
  const std::string off = writer.EmitIntermediate("Reshape", {writer.Input(2), one});
  const std::string on = writer.EmitIntermediate("Reshape", {writer.Input(1), one});
  const std::string values = writer.EmitIntermediate("Concat", {off, on}, {{"axis", int64_t{0}}});
  const int64_t depth = COLLAGE_TRY(writer.attributes().Int("depth", 0));
  // OneHot counts negative indices from the end; ours are nowhere, as is depth.
  const DType dtype = writer.InputType(0).dtype;
  const std::string is_negative = writer.EmitIntermediate("Less", {writer.Input(0), writer.Scalar(0, dtype)});
  const std::string indices =
      writer.EmitIntermediate("Where", {is_negative, writer.Scalar(static_cast<double>(depth), dtype), writer.Input(0)});
  writer.Emit("OneHot", {indices, writer.Ints({depth}), values}, {{"axis", COLLAGE_TRY(writer.attributes().Int("axis", -1))}});
  return {};
}

Status WriteReverseSequence(NodeWriter& writer) {
  std::string lengths = writer.Input(1);
  if (writer.InputType(1).dtype != DType::kInt64) {
    lengths = writer.EmitIntermediate("Cast", {lengths}, {{"to", OnnxDataType(DType::kInt64)}});
  }
  writer.Emit("ReverseSequence", {writer.Input(0), lengths},
              {{"time_axis", COLLAGE_TRY(writer.attributes().Int("seq_axis", 1))},
               {"batch_axis", COLLAGE_TRY(writer.attributes().Int("batch_axis", 0))}});
  return {};
}

Status WriteEinsum(NodeWriter& writer) {
  writer.Emit("Einsum", writer.Inputs(), {{"equation", COLLAGE_TRY(writer.attributes().String("equation", ""))}});
  return {};
}

}  // namespace

OperatorFamily SelectionFamily() {
  static constexpr ReadRow kRead[] = {{"Trilu", ReadTrilu},
                                      {"CumSum", ReadCumulative<"cumsum">},
                                      {"CumProd", ReadCumulative<"cumprod">},
                                      {"TopK", ReadTopK},
                                      {"OneHot", ReadOneHot},
                                      {"Hardmax", ReadHardmax},
                                      {"ReverseSequence", ReadReverseSequence},
                                      {"Einsum", ReadEinsum},
                                      {"EyeLike", ReadEyeLike},
                                      {"Compress", ReadCompress},
                                      {"NonZero", ReadNonZero}};
  static constexpr WriteRow kWrite[] = {{"trilu", WriteTrilu},  {"cumsum", WriteCumSum},  {"cumprod", WriteCumProd},
                                        {"topk", WriteTopK},    {"one_hot", WriteOneHot}, {"reverse_sequence", WriteReverseSequence},
                                        {"einsum", WriteEinsum}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
