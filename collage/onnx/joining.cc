#include <algorithm>
#include <numeric>

#include "collage/onnx/direct.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/sequence.h"
#include "collage/op/slice.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> ReadConcat(NodeReader& node) {
  const std::vector<Expr> fields = COLLAGE_TRY(node.Inputs());
  if (!node.HasAttribute("axis")) return Fail("attribute 'axis' is required and absent");
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), COLLAGE_TRY(node.InputType(0)).shape.size()));
  if (fields.size() == 1) return fields;
  return std::vector<Expr>{COLLAGE_TRY(node.Call("concatenate", {MakeTuple(fields)}, {{"axis", axis}}))};
}

/// Extents of the parts: an attribute until opset 12, an input from 13 on; without them equal parts, of which from opset 18
/// on the last one may be smaller.
Result<std::vector<int64_t>> PartExtents(const NodeReader& node, int64_t extent) {
  const int64_t parts = static_cast<int64_t>(node.output_count());
  if (node.opset() < 13 && node.HasAttribute("split")) return node.Ints("split", {});
  if (node.opset() >= 13 && node.HasInput(1)) return node.IntsInput(1, "split");
  if (COLLAGE_TRY(node.Int("num_outputs", parts)) != parts) return Fail("attribute 'num_outputs' is not the number of outputs");
  if (node.opset() < 18 && extent % parts != 0) {
    return Fail("an extent of " + std::to_string(extent) + " cannot be cut into " + std::to_string(parts) + " equal parts");
  }
  const int64_t part = (extent + parts - 1) / parts;
  std::vector<int64_t> extents(static_cast<size_t>(parts), part);
  extents.back() = extent - part * (parts - 1);
  return extents;
}

Status CheckParts(const std::vector<int64_t>& extents, size_t outputs, int64_t extent) {
  int64_t sum = 0;
  for (int64_t part : extents) {
    if (part < 0 || part > extent - sum) return Fail("the parts do not sum up to the extent of " + std::to_string(extent));
    sum += part;
  }
  if (sum != extent) return Fail("the parts do not sum up to the extent of " + std::to_string(extent));
  if (extents.size() == outputs) return {};
  return Fail("has " + std::to_string(outputs) + " outputs for " + std::to_string(extents.size()) + " parts");
}

Result<std::vector<Expr>> ReadSplit(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), shape.size()));
  const int64_t extent = shape[static_cast<size_t>(axis)];
  const std::vector<int64_t> extents = COLLAGE_TRY(PartExtents(node, extent));
  COLLAGE_TRY_STATUS(CheckParts(extents, node.output_count(), extent));
  if (extents.size() == 1) return std::vector<Expr>{data};
  std::vector<int64_t> cuts(extents.size());
  std::partial_sum(extents.begin(), extents.end(), cuts.begin());
  cuts.pop_back();
  const Expr parts = COLLAGE_TRY(node.Call("split", {data}, {{"indices_or_sections", cuts}, {"axis", axis}}));
  std::vector<Expr> outputs;
  for (size_t i = 0; i < extents.size(); ++i) outputs.push_back(COLLAGE_TRY(NodeReader::Project(parts, i)));
  return outputs;
}

Result<std::vector<Expr>> ReadConcatFromSequence(NodeReader& node) {
  const std::vector<Expr> fields = COLLAGE_TRY(SequenceInput(node, 0));
  if (fields.empty()) return Fail("joins an empty sequence");
  const bool new_axis = COLLAGE_TRY(node.Int("new_axis", 0)) != 0;
  const size_t rank = COLLAGE_TRY(TensorTypeOf(fields[0])).shape.size() + (new_axis ? 1 : 0);
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), rank));
  if (fields.size() == 1 && !new_axis) return fields;
  return std::vector<Expr>{COLLAGE_TRY(node.Call(new_axis ? "stack" : "concatenate", {MakeTuple(fields)}, {{"axis", axis}}))};
}

/// Extents of the parts: all equal to a scalar, of which the last may be smaller; a list; without the input 1.
Result<std::vector<int64_t>> SequenceParts(const NodeReader& node, int64_t extent) {
  int64_t part = 1;
  if (node.HasInput(1)) {
    const std::vector<int64_t> given = COLLAGE_TRY(node.IntsInput(1, "split"));
    if (!COLLAGE_TRY(node.InputType(1)).shape.empty()) return given;
    part = given[0];
  }
  if (part < 1) return Fail("input 1 (split) is " + std::to_string(part) + "; at least 1 is right");
  const int64_t count = extent / part + (extent % part != 0 ? 1 : 0);
  if (count > kMostParts) return Fail("cuts " + std::to_string(count) + " parts; at most " + std::to_string(kMostParts) + " is right");
  std::vector<int64_t> extents;
  for (int64_t rest = extent; rest > 0; rest -= part) extents.push_back(std::min(part, rest));
  return extents;
}

/// Without the input split and with keepdims=0 the axis goes.
Result<std::vector<Expr>> ReadSplitToSequence(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), shape.size()));
  const std::vector<int64_t> extents = COLLAGE_TRY(SequenceParts(node, shape[static_cast<size_t>(axis)]));
  COLLAGE_TRY_STATUS(CheckParts(extents, extents.size(), shape[static_cast<size_t>(axis)]));
  std::vector<int64_t> cuts(extents.size());
  std::partial_sum(extents.begin(), extents.end(), cuts.begin());
  if (!cuts.empty()) cuts.pop_back();
  const Expr parts = COLLAGE_TRY(node.Call("split", {data}, {{"indices_or_sections", cuts}, {"axis", axis}}));
  const bool drops_axis = !node.HasInput(1) && COLLAGE_TRY(node.Int("keepdims", 1)) == 0;
  std::vector<Expr> fields;
  for (size_t i = 0; i < extents.size(); ++i) {
    Expr part = COLLAGE_TRY(NodeReader::Project(parts, i));
    if (drops_axis) part = COLLAGE_TRY(node.Call("squeeze", {part}, {{"axis", std::vector<int64_t>{axis}}}));
    fields.push_back(part);
  }
  return std::vector<Expr>{MakeTuple(fields)};
}

Result<int64_t> AxisOf(const NodeWriter& writer, size_t rank) {
  return NormalizeAxis(COLLAGE_TRY(writer.attributes().Int("axis", 0)), rank);
}

Status WriteConcatenate(NodeWriter& writer) {
  writer.Emit("Concat", writer.Inputs(), {{"axis", COLLAGE_TRY(AxisOf(writer, writer.InputType(0).shape.size()))}});
  return {};
}

Status WriteStack(NodeWriter& writer) {
  const int64_t axis = COLLAGE_TRY(AxisOf(writer, writer.OutputType().shape.size()));
  const std::string axes = writer.Ints({axis});
  std::vector<std::string> fields;
  for (const std::string& input : writer.Inputs()) fields.push_back(writer.EmitIntermediate("Unsqueeze", {input, axes}));
  writer.Emit("Concat", fields, {{"axis", axis}});
  return {};
}

Status WriteSplit(NodeWriter& writer) {
  const size_t axis = static_cast<size_t>(COLLAGE_TRY(AxisOf(writer, writer.InputType(0).shape.size())));
  std::vector<int64_t> extents;
  for (size_t i = 0; i < writer.step().outputs.size(); ++i) extents.push_back(writer.OutputType(i).shape[axis]);
  writer.EmitAll("Split", {writer.Input(0), writer.Ints(extents)}, {{"axis", static_cast<int64_t>(axis)}});
  return {};
}

}  // namespace

OperatorFamily JoiningFamily() {
  static constexpr ReadRow kRead[] = {{"Concat", ReadConcat},
                                      {"Split", ReadSplit},
                                      {"ConcatFromSequence", ReadConcatFromSequence, true},
                                      {"SplitToSequence", ReadSplitToSequence}};
  static constexpr WriteRow kWrite[] = {{"concatenate", WriteConcatenate}, {"stack", WriteStack}, {"split", WriteSplit}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
