#include <algorithm>

#include "collage/onnx/direct.h"
#include "collage/onnx/rows.h"
#include "collage/op/slice.h"

namespace collage::onnx_io {
namespace {

struct SliceArguments {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
};

/// Attributes until opset 9, inputs from 10 on.
Result<SliceArguments> ReadSliceArguments(const NodeReader& node) {
  SliceArguments slice;
  if (node.opset() < 10) {
    slice.starts = COLLAGE_TRY(node.Ints("starts", {}));
    slice.ends = COLLAGE_TRY(node.Ints("ends", {}));
    slice.axes = COLLAGE_TRY(node.Ints("axes", {}));
  } else {
    slice.starts = COLLAGE_TRY(node.IntsInput(1, "starts"));
    slice.ends = COLLAGE_TRY(node.IntsInput(2, "ends"));
    if (node.HasInput(3)) slice.axes = COLLAGE_TRY(node.IntsInput(3, "axes"));
    if (node.HasInput(4)) slice.steps = COLLAGE_TRY(node.IntsInput(4, "steps"));
  }
  const size_t count = slice.starts.size();
  if (slice.axes.empty()) {
    for (size_t i = 0; i < count; ++i) slice.axes.push_back(static_cast<int64_t>(i));
  }
  if (slice.steps.empty()) slice.steps.assign(count, 1);
  if (slice.ends.size() != count || slice.axes.size() != count || slice.steps.size() != count) {
    return Fail("starts, ends, axes and steps must have the same number of elements");
  }
  return slice;
}

/// Ends that lie far outside, as exporters write them, become the extent, and axes that are taken whole are dropped.
Result<std::vector<Expr>> ReadSlice(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const SliceArguments all = COLLAGE_TRY(ReadSliceArguments(node));
  SliceArguments kept;
  for (size_t i = 0; i < all.axes.size(); ++i) {
    const int64_t axis = COLLAGE_TRY(NormalizeAxis(all.axes[i], shape.size()));
    const int64_t extent = shape[static_cast<size_t>(axis)];
    int64_t start = std::clamp(all.starts[i], -extent - 1, extent);
    int64_t end = std::clamp(all.ends[i], -extent - 1, extent);
    if (all.steps[i] > 0) {
      start = std::max<int64_t>(start < 0 ? start + extent : start, 0);
      end = std::max<int64_t>(end < 0 ? end + extent : end, 0);
      if (start == 0 && end == extent && all.steps[i] == 1) continue;
    }
    kept.starts.push_back(start);
    kept.ends.push_back(end);
    kept.axes.push_back(axis);
    kept.steps.push_back(all.steps[i]);
  }
  if (kept.axes.empty()) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(
      node.Call("strided_slice", {data}, {{"begin", kept.starts}, {"end", kept.ends}, {"strides", kept.steps}, {"axes", kept.axes}}))};
}

/// Constant indices with the negative ones counted from the front.
Result<Expr> PositiveIndices(const Tensor& indices, int64_t extent) {
  std::vector<int64_t> values = indices.ToInt64();
  for (int64_t& value : values) {
    if (value < -extent || value >= extent) {
      return Fail("the index " + std::to_string(value) + " is outside an extent of " + std::to_string(extent));
    }
    if (value < 0) value += extent;
  }
  return MakeConstant(Tensor::FromVector(TensorType{indices.shape(), DType::kInt64}, values));
}

/// Negative indices count from the end: constant ones are made positive here, others are taken modulo the extent.
Result<std::vector<Expr>> ReadGather(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  Expr indices = COLLAGE_TRY(node.Input(1));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), shape.size()));
  std::string mode = "wrap";
  if (const Tensor* constant = ConstantValue(indices); constant != nullptr && !IsFloatingPoint(constant->dtype())) {
    indices = COLLAGE_TRY(PositiveIndices(*constant, shape[static_cast<size_t>(axis)]));
    mode = "clip";
  }
  return std::vector<Expr>{COLLAGE_TRY(node.Call("take", {data, indices}, {{"axis", axis}, {"mode", mode}}))};
}

/// ONNX has the coordinates of an element in the last dimension of the indices, ours in the first.
Result<std::vector<Expr>> ReadGatherNd(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Expr indices = COLLAGE_TRY(node.Input(1));
  const size_t rank = COLLAGE_TRY(TensorTypeOf(indices)).shape.size();
  if (rank == 0) return Fail("input 1 (indices) must have at least one dimension");
  std::vector<int64_t> axes{static_cast<int64_t>(rank) - 1};
  for (size_t i = 0; i + 1 < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  const Expr moved = rank == 1 ? indices : COLLAGE_TRY(node.Call("transpose", {indices}, {{"axes", axes}}));
  const int64_t batch_dims = COLLAGE_TRY(node.Int("batch_dims", 0));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("gather_nd", {data, moved}, {{"batch_dims", batch_dims}}))};
}

struct PadArguments {
  std::vector<int64_t> before;  ///< one a dimension of the data, as in `after`
  std::vector<int64_t> after;
};

/// Attributes until opset 10, inputs from 11 on, of which the fourth names axes from 18 on.
Result<PadArguments> ReadPadArguments(const NodeReader& node, size_t rank) {
  const bool is_input = node.opset() >= 11;
  const std::vector<int64_t> pads = COLLAGE_TRY(is_input ? node.IntsInput(1, "pads") : node.Ints("pads", {}));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (is_input && node.HasInput(3)) axes = COLLAGE_TRY(node.IntsInput(3, "axes"));
  if (pads.size() != 2 * axes.size()) {
    return Fail("pads has " + std::to_string(pads.size()) + " values where " + std::to_string(2 * axes.size()) + " are right");
  }
  PadArguments result{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0)};
  constexpr int64_t limit = int64_t{1} << 30;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(COLLAGE_TRY(NormalizeAxis(axes[i], rank)));
    result.before[axis] = std::clamp(pads[i], -limit, limit);
    result.after[axis] = std::clamp(pads[i + axes.size()], -limit, limit);
  }
  return result;
}

Result<Expr> PadValue(NodeReader& node, DType dtype) {
  if (node.opset() < 11) return NodeReader::Scalar(COLLAGE_TRY(node.Float("value", 0)), dtype);
  if (!node.HasInput(2)) return NodeReader::Scalar(0, dtype);
  return node.Reshape(COLLAGE_TRY(node.Input(2)), {});
}

/// Negative pads take away: a slice before the padding.
Result<Expr> Crop(NodeReader& node, const Expr& data, const PadArguments& pads) {
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  std::vector<int64_t> begin(shape.size(), 0);
  std::vector<int64_t> end = shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    begin[i] = std::min(std::max<int64_t>(-pads.before[i], 0), shape[i]);
    end[i] = std::max<int64_t>(shape[i] + std::min<int64_t>(pads.after[i], 0), begin[i]);
  }
  if (end == shape && std::all_of(begin.begin(), begin.end(), [](int64_t first) { return first == 0; })) return data;
  return node.Call("strided_slice", {data}, {{"begin", begin}, {"end", end}, {"strides", std::vector<int64_t>(shape.size(), 1)}});
}

/// Periodic continuation (opset 19): elements at known places along each axis.
Result<Expr> PadByWrapping(NodeReader& node, Expr data, const PadArguments& pads) {
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t before = std::max<int64_t>(pads.before[axis], 0);
    const int64_t after = std::max<int64_t>(pads.after[axis], 0);
    if (before == 0 && after == 0) continue;
    if (shape[axis] == 0) return Fail("wraps a tensor without elements");
    const TensorType type{{before + shape[axis] + after}, DType::kInt64};
    COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
    std::vector<int64_t> places;
    for (int64_t i = -before; i < shape[axis] + after; ++i) places.push_back((i % shape[axis] + shape[axis]) % shape[axis]);
    const Expr indices = MakeConstant(Tensor::FromVector(type, places));
    data = COLLAGE_TRY(node.Call("take", {data, indices}, {{"axis", static_cast<int64_t>(axis)}, {"mode", "clip"}}));
  }
  return data;
}

Result<std::vector<Expr>> ReadPad(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const PadArguments pads = COLLAGE_TRY(ReadPadArguments(node, type.shape.size()));
  const std::string mode = COLLAGE_TRY(node.String("mode", "constant"));
  const Expr cropped = COLLAGE_TRY(Crop(node, data, pads));
  AttributeValue::List widths;
  bool pads_anything = false;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const int64_t before = std::max<int64_t>(pads.before[i], 0);
    const int64_t after = std::max<int64_t>(pads.after[i], 0);
    widths.emplace_back(std::vector<int64_t>{before, after});
    pads_anything = pads_anything || before > 0 || after > 0;
  }
  if (!pads_anything) return std::vector<Expr>{cropped};
  if (mode == "wrap") return std::vector<Expr>{COLLAGE_TRY(PadByWrapping(node, cropped, pads))};
  const Expr value = COLLAGE_TRY(PadValue(node, type.dtype));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.pad", {cropped, value}, {{"pad_width", widths}, {"pad_mode", mode}}))};
}

Status WriteStridedSlice(NodeWriter& writer) {
  const TensorType& type = writer.InputType(0);
  const Slice slice = COLLAGE_TRY(collage::ReadSlice(type, writer.attributes()));
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const int64_t end = slice.begin[i] + slice.stride[i] * slice.result[i];
    ends.push_back(end < 0 ? -type.shape[i] - 1 : end);
    axes.push_back(static_cast<int64_t>(i));
  }
  writer.Emit("Slice", {writer.Input(0), writer.Ints(slice.begin), writer.Ints(ends), writer.Ints(axes), writer.Ints(slice.stride)});
  return {};
}

/// Clamping and wrapping are the caller's promise: within the extent both are what Gather does.
Status WriteTake(NodeWriter& writer) {
  const AttributeValue* attribute = writer.attributes().Find("axis");
  std::string data = writer.Input(0);
  int64_t axis = 0;
  if (attribute == nullptr || attribute->IsNone()) {
    data = writer.EmitIntermediate("Reshape", {data, writer.Ints({-1})});
  } else {
    axis = COLLAGE_TRY(writer.attributes().Int("axis", 0));
  }
  writer.Emit("Gather", {data, writer.Input(1)}, {{"axis", axis}});
  return {};
}

Status WriteGatherNd(NodeWriter& writer) {
  std::vector<int64_t> permutation;
  const size_t rank = writer.InputType(1).shape.size();
  for (size_t i = 1; i < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  permutation.push_back(0);
  const std::string indices = writer.EmitIntermediate("Transpose", {writer.Input(1)}, {{"perm", permutation}});
  writer.Emit("GatherND", {writer.Input(0), indices}, {{"batch_dims", COLLAGE_TRY(writer.attributes().Int("batch_dims", 0))}});
  return {};
}

Status WritePad(NodeWriter& writer) {
  std::vector<int64_t> pads;
  const auto widths = COLLAGE_TRY(ReadPadWidth(writer.InputType(0), writer.attributes()));
  for (const auto& width : widths) pads.push_back(width[0]);
  for (const auto& width : widths) pads.push_back(width[1]);
  writer.Emit("Pad", {writer.Input(0), writer.Ints(pads), writer.Input(1)},
              {{"mode", COLLAGE_TRY(writer.attributes().String("pad_mode", "constant"))}});
  return {};
}

}  // namespace

OperatorFamily IndexingFamily() {
  static constexpr ReadRow kRead[] = {{"Slice", ReadSlice}, {"Gather", ReadGather}, {"GatherND", ReadGatherNd}, {"Pad", ReadPad}};
  static constexpr WriteRow kWrite[] = {
      {"strided_slice", WriteStridedSlice}, {"take", WriteTake}, {"gather_nd", WriteGatherNd}, {"nn.pad", WritePad}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
