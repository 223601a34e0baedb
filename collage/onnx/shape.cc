#include "collage/onnx/shape.h"

#include <algorithm>
#include <numeric>

#include "collage/onnx/data_type.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/rows.h"
#include "collage/op/rules.h"

namespace collage::onnx_io {

Result<Shape> ResolveShape(const Shape& data, Shape shape, bool allows_zero) {
  int64_t known = 1;
  size_t inferred = shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allows_zero) {
      if (i >= data.size()) return Fail("the shape " + ToString(shape) + " keeps a dimension that " + ToString(data) + " does not have");
      shape[i] = data[i];
    }
    if (shape[i] == -1) {
      if (inferred < shape.size()) return Fail("the shape " + ToString(shape) + " has more than one -1");
      inferred = i;
      continue;
    }
    COLLAGE_TRY_STATUS(CheckExtents({known, shape[i]}));
    known *= shape[i];
  }
  if (inferred == shape.size()) return shape;
  if (known == 0 || ElementCount(data) % known != 0) return Fail("cannot view " + ToString(data) + " as " + ToString(shape));
  shape[inferred] = ElementCount(data) / known;
  return shape;
}

namespace {

Result<std::vector<Expr>> ReadReshape(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape requested = COLLAGE_TRY(node.IntsInput(1, "shape"));
  const bool allows_zero = COLLAGE_TRY(node.Int("allowzero", 0)) != 0;
  const Shape shape = COLLAGE_TRY(ResolveShape(COLLAGE_TRY(TensorTypeOf(data)).shape, requested, allows_zero));
  return std::vector<Expr>{COLLAGE_TRY(node.Reshape(data, shape))};
}

Result<std::vector<Expr>> ReadFlatten(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  int64_t axis = COLLAGE_TRY(node.Int("axis", 1));
  if (axis < -rank || axis > rank) return Fail("attribute 'axis' is " + std::to_string(axis) + ", outside " + ToString(shape));
  if (axis < 0) axis += rank;
  if (axis == 1) return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.batch_flatten", {data}))};
  const Shape rows(shape.begin(), shape.begin() + axis);
  const Shape columns(shape.begin() + axis, shape.end());
  return std::vector<Expr>{COLLAGE_TRY(node.Reshape(data, {ElementCount(rows), ElementCount(columns)}))};
}

/// Axes of Squeeze and Unsqueeze: an attribute until opset 12, an input from 13 on.
Result<std::vector<int64_t>> AxesOf(const NodeReader& node) {
  if (node.opset() < 13) return node.Ints("axes", {});
  return node.HasInput(1) ? node.IntsInput(1, "axes") : std::vector<int64_t>{};
}

Result<std::vector<Expr>> ReadSqueeze(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  std::vector<int64_t> axes = COLLAGE_TRY(NormalizeAxes(COLLAGE_TRY(AxesOf(node)), shape.size()));
  if (axes.empty()) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("squeeze", {data}, {{"axis", axes}}))};
}

/// Axes count in the result; each run of neighbouring ones is one insertion.
Result<std::vector<Expr>> ReadUnsqueeze(NodeReader& node) {
  Expr data = COLLAGE_TRY(node.Input(0));
  const size_t rank = COLLAGE_TRY(TensorTypeOf(data)).shape.size();
  std::vector<int64_t> axes = COLLAGE_TRY(AxesOf(node));
  if (axes.size() > 64) return Fail("inserts " + std::to_string(axes.size()) + " dimensions");
  const size_t result_rank = rank + axes.size();
  axes = COLLAGE_TRY(NormalizeAxes(std::move(axes), result_rank));
  for (size_t i = 0; i < axes.size();) {
    size_t end = i + 1;
    while (end < axes.size() && axes[end] == axes[end - 1] + 1) ++end;
    data = COLLAGE_TRY(node.Call("expand_dims", {data}, {{"axis", axes[i]}, {"num_newaxis", static_cast<int64_t>(end - i)}}));
    i = end;
  }
  return std::vector<Expr>{data};
}

Result<std::vector<Expr>> ReadTranspose(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  std::vector<int64_t> identity(COLLAGE_TRY(TensorTypeOf(data)).shape.size());
  std::iota(identity.begin(), identity.end(), 0);
  const std::vector<int64_t> permutation = COLLAGE_TRY(node.Ints("perm", {identity.rbegin(), identity.rend()}));
  if (permutation == identity) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("transpose", {data}, {{"axes", permutation}}))};
}

Expr Int64Vector(const std::vector<int64_t>& values) {
  return MakeConstant(Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kInt64}, values));
}

/// Extents are known, so the shape is a constant; start and end (opset 15) cut it as NumPy slices, clamped.
Result<std::vector<Expr>> ReadShape(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(node.InputType(0)).shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  const auto clamp = [rank](int64_t index) { return std::clamp<int64_t>(index < -rank ? 0 : index < 0 ? index + rank : index, 0, rank); };
  const int64_t begin = clamp(COLLAGE_TRY(node.Int("start", 0)));
  const int64_t end = std::max(begin, clamp(COLLAGE_TRY(node.Int("end", rank))));
  return std::vector<Expr>{Int64Vector(Shape(shape.begin() + begin, shape.begin() + end))};
}

Result<std::vector<Expr>> ReadSize(NodeReader& node) {
  return std::vector<Expr>{MakeConstant(Tensor::Scalar(COLLAGE_TRY(node.InputType(0)).ElementCount(), DType::kInt64))};
}

Result<std::vector<Expr>> ReadExpand(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape from = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const Shape shape = COLLAGE_TRY(BroadcastShapes(from, COLLAGE_TRY(node.IntsInput(1, "shape"))));
  if (shape == from) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("broadcast_to", {data}, {{"shape", shape}}))};
}

Result<std::vector<Expr>> ReadTile(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const std::vector<int64_t> repeats = COLLAGE_TRY(node.IntsInput(1, "repeats"));
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t count) { return count == 1; })) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("tile", {data}, {{"reps", repeats}}))};
}

Result<std::vector<Expr>> ReadDepthToSpace(NodeReader& node) {
  const int64_t block = COLLAGE_TRY(node.Int("blocksize", 0));
  const std::string mode = COLLAGE_TRY(node.String("mode", "DCR"));
  const Expr data = COLLAGE_TRY(node.Input(0));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.depth_to_space", {data}, {{"block_size", block}, {"mode", mode}}))};
}

/// The order of the channels of the result is block row, block column, channel, which is ours; in the mode CRD (opset 28) channel,
/// block row, block column.
Result<std::vector<Expr>> ReadSpaceToDepth(NodeReader& node) {
  const int64_t block = COLLAGE_TRY(node.Int("blocksize", 0));
  const std::string mode = COLLAGE_TRY(node.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return Fail("attribute 'mode' is '" + mode + "'; DCR or CRD is right");
  const Expr result = COLLAGE_TRY(node.Call("nn.space_to_depth", {COLLAGE_TRY(node.Input(0))}, {{"block_size", block}}));
  if (mode == "DCR") return std::vector<Expr>{result};
  const Shape channels = COLLAGE_TRY(node.InputType(0)).shape;
  const Shape shape = COLLAGE_TRY(TensorTypeOf(result)).shape;
  const Expr split = COLLAGE_TRY(node.Reshape(result, {shape[0], block * block, channels[1], shape[2], shape[3]}));
  const Expr moved = COLLAGE_TRY(node.Call("transpose", {split}, {{"axes", std::vector<int64_t>{0, 2, 1, 3, 4}}}));
  return std::vector<Expr>{COLLAGE_TRY(node.Reshape(moved, shape))};
}

Status WriteReshape(NodeWriter& writer) {
  const Shape& shape = writer.OutputType().shape;
  const bool has_zero = std::find(shape.begin(), shape.end(), 0) != shape.end();
  OnnxAttributes attributes;
  if (has_zero) attributes.emplace_back("allowzero", int64_t{1});
  writer.Emit("Reshape", {writer.Input(0), writer.Ints(shape)}, attributes);
  return {};
}

Status WriteBatchFlatten(NodeWriter& writer) {
  writer.Emit("Flatten", writer.Inputs(), {{"axis", int64_t{1}}});
  return {};
}

Status WriteTranspose(NodeWriter& writer) {
  std::vector<int64_t> permutation;
  const size_t rank = writer.InputType(0).shape.size();
  for (size_t i = rank; i-- > 0;) permutation.push_back(static_cast<int64_t>(i));
  permutation = COLLAGE_TRY(writer.attributes().Ints("axes", permutation));
  for (int64_t& axis : permutation) axis = COLLAGE_TRY(NormalizeAxis(axis, rank));
  writer.Emit("Transpose", writer.Inputs(), {{"perm", permutation}});
  return {};
}

Status WriteBroadcastTo(NodeWriter& writer) {
  writer.Emit("Expand", {writer.Input(0), writer.Ints(writer.OutputType().shape)});
  return {};
}

/// ONNX wants one count a dimension: leading dimensions of extent 1, or counts of 1, are filled in.
Status WriteTile(NodeWriter& writer) {
  std::vector<int64_t> repeats = COLLAGE_TRY(writer.attributes().Ints("reps", {}));
  Shape shape = writer.InputType(0).shape;
  std::string data = writer.Input(0);
  if (repeats.size() > shape.size()) {
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    data = writer.EmitIntermediate("Reshape", {data, writer.Ints(shape)});
  }
  repeats.insert(repeats.begin(), shape.size() - repeats.size(), 1);
  writer.Emit("Tile", {data, writer.Ints(repeats)});
  return {};
}

Status WriteDepthToSpace(NodeWriter& writer) {
  writer.Emit("DepthToSpace", writer.Inputs(),
              {{"blocksize", COLLAGE_TRY(writer.attributes().Int("block_size", 1))},
               {"mode", COLLAGE_TRY(writer.attributes().String("mode", "DCR"))}});
  return {};
}

Status WriteSpaceToDepth(NodeWriter& writer) {
  writer.Emit("SpaceToDepth", writer.Inputs(), {{"blocksize", COLLAGE_TRY(writer.attributes().Int("block_size", 1))}});
  return {};
}

Status WriteShapeOf(NodeWriter& writer) {
  if (writer.OutputType().dtype == DType::kInt64) return WriteDirect<"Shape">(writer);
  writer.Emit("Cast", {writer.EmitIntermediate("Shape", writer.Inputs())}, {{"to", OnnxDataType(writer.OutputType().dtype)}});
  return {};
}

}  // namespace

OperatorFamily ShapeFamily() {
  static constexpr ReadRow kRead[] = {{"Reshape", ReadReshape},
                                      {"Flatten", ReadFlatten},
                                      {"Squeeze", ReadSqueeze},
                                      {"Unsqueeze", ReadUnsqueeze},
                                      {"Transpose", ReadTranspose},
                                      {"Shape", ReadShape},
                                      {"Size", ReadSize},
                                      {"Expand", ReadExpand},
                                      {"Tile", ReadTile},
                                      {"DepthToSpace", ReadDepthToSpace},
                                      {"SpaceToDepth", ReadSpaceToDepth}};
  static constexpr WriteRow kWrite[] = {{"reshape", WriteReshape},
                                        {"squeeze", WriteReshape},
                                        {"expand_dims", WriteReshape},
                                        {"nn.batch_flatten", WriteBatchFlatten},
                                        {"transpose", WriteTranspose},
                                        {"broadcast_to", WriteBroadcastTo},
                                        {"tile", WriteTile},
                                        {"nn.depth_to_space", WriteDepthToSpace},
                                        {"nn.space_to_depth", WriteSpaceToDepth},
                                        {"shape_of", WriteShapeOf}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
