#include <numeric>

#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> ReadGatherElements(NodeReader& node) {
  const int64_t axis = COLLAGE_TRY(node.Int("axis", 0));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("gather", COLLAGE_TRY(node.Inputs()), {{"axis", axis}}))};
}

Result<std::string> Reduction(const NodeReader& node) {
  const std::string reduction = COLLAGE_TRY(node.String("reduction", "none"));
  return reduction == "none" ? "update" : reduction;
}

Result<std::vector<Expr>> ReadScatterElements(NodeReader& node) {
  const int64_t axis = COLLAGE_TRY(node.Int("axis", 0));
  const std::string reduction = COLLAGE_TRY(Reduction(node));
  return std::vector<Expr>{
      COLLAGE_TRY(node.Call("scatter_elements", COLLAGE_TRY(node.Inputs()), {{"axis", axis}, {"reduction", reduction}}))};
}

/// The last dimension first.
std::vector<int64_t> LastToFront(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), -1);
  axes[0] = static_cast<int64_t>(rank) - 1;
  return axes;
}

std::vector<int64_t> FrontToLast(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 1);
  axes.back() = 0;
  return axes;
}

/// ONNX has the coordinates of an element in the last dimension of the indices, ours in the first.
Result<std::vector<Expr>> ReadScatterNd(NodeReader& node) {
  const Expr indices = COLLAGE_TRY(node.Input(1));
  const size_t rank = COLLAGE_TRY(TensorTypeOf(indices)).shape.size();
  if (rank == 0) return Fail("input 1 (indices) must have at least one dimension");
  const Expr moved = rank == 1 ? indices : COLLAGE_TRY(node.Call("transpose", {indices}, {{"axes", LastToFront(rank)}}));
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Expr updates = COLLAGE_TRY(node.Input(2));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("scatter_nd", {data, moved, updates}, {{"mode", COLLAGE_TRY(Reduction(node))}}))};
}

/// Writes `update` into a cache along an axis, for each element of the batch from a place of its own on.
Result<std::vector<Expr>> ReadTensorScatter(NodeReader& node) {
  const Expr cache = COLLAGE_TRY(node.Input(0));
  const Expr update = COLLAGE_TRY(node.Input(1));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(cache)).shape;
  const Shape part = COLLAGE_TRY(TensorTypeOf(update)).shape;
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", -2)), shape.size()));
  if (axis == 0 || part.size() != shape.size()) return Fail("update of shape " + ToString(part) + " does not fit " + ToString(shape));
  const std::string mode = COLLAGE_TRY(node.String("mode", "linear"));
  if (mode != "linear" && mode != "circular") return Fail("attribute 'mode' is '" + mode + "'; linear or circular is right");
  std::vector<int64_t> places(static_cast<size_t>(part[static_cast<size_t>(axis)]));
  std::iota(places.begin(), places.end(), 0);
  Shape along(shape.size(), 1);
  along[static_cast<size_t>(axis)] = part[static_cast<size_t>(axis)];
  Formula formula(node, DType::kInt64);
  Expr indices = MakeConstant(Tensor::FromVector(TensorType{along, DType::kInt64}, places));
  if (node.HasInput(2)) {
    Shape batch(shape.size(), 1);
    batch[0] = shape[0];
    const Expr starts = formula.Reshape(formula.Cast(COLLAGE_TRY(node.Input(2)), DType::kInt64), batch);
    indices = formula.Call("add", indices, starts);
  }
  if (mode == "circular") indices = formula.Call("floor_mod", indices, static_cast<double>(shape[static_cast<size_t>(axis)]));
  indices = formula.Broadcast(indices, part);
  return formula.Done(formula.Apply("scatter_elements", {cache, indices, update}, {{"axis", axis}}));
}

Status WriteGather(NodeWriter& writer) {
  writer.Emit("GatherElements", writer.Inputs(), {{"axis", COLLAGE_TRY(writer.attributes().Int("axis", 0))}});
  return {};
}

Result<std::string> WrittenReduction(const NodeWriter& writer, const std::string& name) {
  const std::string reduction = COLLAGE_TRY(writer.attributes().String(name, "update"));
  if (reduction == "min" || reduction == "max") {
    return Fail("with the reduction \"" + reduction + "\" has no form in opset " + std::to_string(kWrittenOpset));
  }
  return reduction == "update" ? "none" : reduction;
}

Status WriteScatterElements(NodeWriter& writer) {
  const std::string reduction = COLLAGE_TRY(WrittenReduction(writer, "reduction"));
  writer.Emit("ScatterElements", writer.Inputs(), {{"axis", COLLAGE_TRY(writer.attributes().Int("axis", 0))}, {"reduction", reduction}});
  return {};
}

Status WriteScatterNd(NodeWriter& writer) {
  const std::string reduction = COLLAGE_TRY(WrittenReduction(writer, "mode"));
  const size_t rank = writer.InputType(1).shape.size();
  const std::string indices = writer.EmitIntermediate("Transpose", {writer.Input(1)}, {{"perm", FrontToLast(rank)}});
  writer.Emit("ScatterND", {writer.Input(0), indices, writer.Input(2)}, {{"reduction", reduction}});
  return {};
}

}  // namespace

OperatorFamily ScatteringFamily() {
  static constexpr ReadRow kRead[] = {{"GatherElements", ReadGatherElements},
                                      {"Scatter", ReadScatterElements},
                                      {"ScatterElements", ReadScatterElements},
                                      {"ScatterND", ReadScatterNd},
                                      {"TensorScatter", ReadTensorScatter}};
  static constexpr WriteRow kWrite[] = {
      {"gather", WriteGather}, {"scatter_elements", WriteScatterElements}, {"scatter_nd", WriteScatterNd}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
