#include <algorithm>
#include <numeric>

#include "collage/onnx/formula.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

/// What training normalizes by: mean and variance of the data itself, over all axes but that of channels. `args` are the node's inputs, in
/// which they take the place of the running ones; gives what those become.
Result<std::vector<Expr>> TakeStatisticsOfData(NodeReader& node, std::vector<Expr>& args) {
  const double momentum = COLLAGE_TRY(node.Float("momentum", 0.9F));
  Formula formula(node, COLLAGE_TRY(node.InputType(3)).dtype);
  const Expr data = formula.Cast(args[0], formula.dtype());
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(Formula::ShapeOf(data).size()); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  const Expr away = formula.Call("subtract", data, formula.Reduce("mean", data, axes, true));
  const std::vector<Expr> now = {formula.Reduce("mean", data, axes, false),
                                 formula.Reduce("mean", formula.Call("multiply", away, away), axes, false)};
  std::vector<Expr> running;
  for (size_t i = 0; i < now.size(); ++i) {
    Expr& given = args[3 + i];
    running.push_back(formula.Call("add", formula.Call("multiply", given, momentum), formula.Call("multiply", now[i], 1 - momentum)));
    given = now[i];
  }
  return formula.DoneAll(running);
}

Result<std::vector<Expr>> ReadBatchNormalization(NodeReader& node) {
  if (node.opset() < 9) COLLAGE_TRY_STATUS(node.RequireInt("spatial", 1, 1));
  std::vector<Expr> args;
  for (size_t i = 0; i < 5; ++i) args.push_back(COLLAGE_TRY(node.Input(i)));
  const Shape shape = COLLAGE_TRY(TensorTypeOf(args[0])).shape;
  // One dimension is that of the batch, of one channel.
  if (shape.size() == 1) args[0] = COLLAGE_TRY(node.Reshape(args[0], {shape[0], 1}));
  std::vector<Expr> outputs;
  if (COLLAGE_TRY(node.Int("training_mode", 0)) != 0) outputs = COLLAGE_TRY(TakeStatisticsOfData(node, args));
  const double epsilon = COLLAGE_TRY(node.Float("epsilon", 1e-5F));
  const Expr call = COLLAGE_TRY(node.Call("nn.batch_norm", args, {{"axis", 1}, {"epsilon", epsilon}}));
  outputs.insert(outputs.begin(), COLLAGE_TRY(node.Reshape(COLLAGE_TRY(NodeReader::Project(call, 0)), shape)));
  return outputs;
}

Result<std::vector<Expr>> ReadInstanceNormalization(NodeReader& node) {
  const double epsilon = COLLAGE_TRY(node.Float("epsilon", 1e-5F));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.instance_norm", COLLAGE_TRY(node.Inputs()), {{"axis", 1}, {"epsilon", epsilon}}))};
}

/// `value` of every element; the shift of a normalization that has none.
Result<Expr> Filled(NodeReader& node, const Shape& shape, DType dtype, double value) {
  const Expr scalar = COLLAGE_TRY(NodeReader::Scalar(value, dtype));
  return node.Call("full", {scalar}, {{"shape", shape}, {"dtype", std::string(Name(dtype))}});
}

/// The statistics of LayerNormalization, its second and third output: mean and 1 / sqrt(variance + epsilon).
Status AppendStatistics(NodeReader& node, const Expr& data, int64_t axis, double epsilon, std::vector<Expr>& outputs) {
  // stash_type: the statistics are float32 whatever the data are.
  Formula formula(node, DType::kFloat32);
  const Expr wide = formula.Cast(data, DType::kFloat32);
  std::vector<int64_t> axes(Formula::ShapeOf(data).size() - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  const Expr mean = formula.Reduce("mean", wide, axes, true);
  const Expr centred = formula.Call("subtract", wide, mean);
  const Expr variance = formula.Reduce("mean", formula.Call("multiply", centred, centred), axes, true);
  outputs.push_back(mean);
  outputs.push_back(formula.Call("rsqrt", formula.Call("add", variance, epsilon)));
  COLLAGE_TRY(formula.Done(mean));
  return {};
}

/// Normalizes over the dimensions from `axis` on; ours is over one dimension, so several are flattened around it. Scale and shift
/// that broadcast (one for all, or for the last dimensions) are spread out.
Result<std::vector<Expr>> ReadLayerNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", -1)), type.shape.size()));
  const double epsilon = COLLAGE_TRY(node.Float("epsilon", 1e-5F));
  Shape flat(type.shape.begin(), type.shape.begin() + axis);
  const Shape normalized(type.shape.begin() + axis, type.shape.end());
  const int64_t extent = ElementCount(normalized);
  flat.push_back(extent);
  Formula formula(node, type.dtype);
  const Expr gamma = formula.Reshape(formula.Broadcast(COLLAGE_TRY(node.Input(1)), normalized), {extent});
  const Expr shift = node.HasInput(2) ? COLLAGE_TRY(node.Input(2)) : COLLAGE_TRY(Filled(node, normalized, type.dtype, 0));
  const Expr beta = formula.Reshape(formula.Broadcast(shift, normalized), {extent});
  const Expr result = formula.Apply("nn.layer_norm", {formula.Reshape(data, flat), gamma, beta}, {{"axis", -1}, {"epsilon", epsilon}});
  std::vector<Expr> outputs = COLLAGE_TRY(formula.Done(formula.Reshape(result, type.shape)));
  if (node.output_count() > 1) COLLAGE_TRY_STATUS(AppendStatistics(node, data, axis, epsilon, outputs));
  return outputs;
}

/// (data - mean) / (deviation + 1e-9) over the axes.
Result<std::vector<Expr>> ReadMeanVarianceNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const std::vector<int64_t> axes = COLLAGE_TRY(NormalizeAxes(COLLAGE_TRY(node.Ints("axes", {0, 2, 3})), type.shape.size()));
  if (ElementCount(type.shape) == 0) return std::vector<Expr>{data};
  Formula formula(node, type.dtype);
  const Expr centred = formula.Call("subtract", data, formula.Reduce("mean", data, axes, true));
  const Expr variance = formula.Reduce("mean", formula.Call("multiply", centred, centred), axes, true);
  return formula.Done(formula.Call("divide", centred, formula.Call("add", formula.Call("sqrt", variance), 1e-9)));
}

/// data / norm, where a norm of 0 leaves 0.
Result<std::vector<Expr>> ReadLpNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", -1)), type.shape.size()));
  const int64_t p = COLLAGE_TRY(node.Int("p", 2));
  if (p != 1 && p != 2) return Fail("attribute 'p' is " + std::to_string(p) + "; 1 or 2 is right");
  Formula formula(node, type.dtype);
  const Expr term = p == 1 ? formula.Call("abs", data) : formula.Call("multiply", data, data);
  Expr norm = formula.Reduce("sum", term, {axis}, true);
  if (p == 2) norm = formula.Call("sqrt", norm);
  const Expr divisor = formula.Call("where", formula.Call("equal", norm, 0.0), 1.0, norm);
  return formula.Done(formula.Call("divide", data, divisor));
}

/// One scale a group until opset 20, one a channel from 21 on.
Result<Expr> ScaleOfChannels(NodeReader& node, size_t input, int64_t groups, int64_t channels) {
  const Expr scale = COLLAGE_TRY(node.Input(input));
  if (node.opset() >= 21 || groups == channels) return scale;
  const Expr column = COLLAGE_TRY(node.Reshape(scale, {groups, 1}));
  const Expr repeated = COLLAGE_TRY(node.Call("broadcast_to", {column}, {{"shape", Shape{groups, channels / groups}}}));
  return node.Reshape(repeated, {channels});
}

Result<std::vector<Expr>> ReadGroupNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t groups = COLLAGE_TRY(node.Int("num_groups", 0));
  if (type.shape.size() < 2 || groups < 1 || type.shape[1] % groups != 0) {
    return Fail("attribute 'num_groups' is " + std::to_string(groups) + ", which does not divide the channels of " + ToString(type.shape));
  }
  const double epsilon = COLLAGE_TRY(node.Float("epsilon", 1e-5F));
  const Expr gamma = COLLAGE_TRY(ScaleOfChannels(node, 1, groups, type.shape[1]));
  const Expr beta = COLLAGE_TRY(ScaleOfChannels(node, 2, groups, type.shape[1]));
  return std::vector<Expr>{
      COLLAGE_TRY(node.Call("nn.group_norm", {data, gamma, beta}, {{"num_groups", groups}, {"axis", 1}, {"epsilon", epsilon}}))};
}

/// data / sqrt(mean(data * data) + epsilon) * scale, over the dimensions from `axis` on.
Result<std::vector<Expr>> ReadRmsNormalization(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", -1)), type.shape.size()));
  std::vector<int64_t> axes(type.shape.size() - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  const Expr epsilon = COLLAGE_TRY(NodeReader::Scalar(COLLAGE_TRY(node.Float("epsilon", 1e-5F)), type.dtype));
  const Expr square = COLLAGE_TRY(node.Call("multiply", {data, data}));
  const Expr mean = COLLAGE_TRY(node.Call("mean", {square}, {{"axis", axes}, {"keepdims", true}}));
  const Expr shifted = COLLAGE_TRY(node.Call("add", {mean, epsilon}));
  const Expr root = COLLAGE_TRY(node.Call("sqrt", {shifted}));
  const Expr normalized = COLLAGE_TRY(node.Call("divide", {data, root}));
  const Expr scale = COLLAGE_TRY(node.Input(1));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("multiply", {normalized, scale}))};
}

Result<std::vector<Expr>> ReadLrn(NodeReader& node) {
  const int64_t size = COLLAGE_TRY(node.Int("size", 0));
  if (size < 1 || size > (1 << 20)) return Fail("attribute 'size' is " + std::to_string(size) + "; at least 1 is right");
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1e-4F));
  const double beta = COLLAGE_TRY(node.Float("beta", 0.75F));
  const double bias = COLLAGE_TRY(node.Float("bias", 1.0F));
  return std::vector<Expr>{COLLAGE_TRY(
      node.Call("nn.lrn", {COLLAGE_TRY(node.Input(0))}, {{"size", size}, {"axis", 1}, {"bias", bias}, {"alpha", alpha}, {"beta", beta}}))};
}

Status RequireAxis(const NodeWriter& writer, int64_t only, int64_t fallback) {
  const int64_t rank = static_cast<int64_t>(writer.InputType(0).shape.size());
  const int64_t axis = COLLAGE_TRY(writer.attributes().Int("axis", fallback));
  if ((axis < 0 ? axis + rank : axis) == (only < 0 ? only + rank : only)) return {};
  return Fail("axis " + std::to_string(axis) + " has no ONNX form");
}

Result<OnnxAttributes> EpsilonAttribute(const NodeWriter& writer) {
  return OnnxAttributes{{"epsilon", static_cast<float>(COLLAGE_TRY(writer.attributes().Double("epsilon", 1e-5)))}};
}

/// `value` for every channel instead of a scale or shift that the attribute `name` (center, scale) turns off.
Result<std::string> ChannelInput(NodeWriter& writer, size_t input, const std::string& name, double value) {
  if (COLLAGE_TRY(writer.attributes().Bool(name, true))) return writer.Input(input);
  Tensor all(writer.InputType(input));
  VisitElementType(all.dtype(), [&](auto element) {
    using Element = decltype(element);
    std::fill_n(all.MutableData<Element>(), all.ElementCount(), static_cast<Element>(value));
  });
  return writer.Initializer(all);
}

Status WriteBatchNorm(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(RequireAxis(writer, 1, 1));
  std::vector<std::string> inputs = writer.Inputs();
  inputs[1] = COLLAGE_TRY(ChannelInput(writer, 1, "scale", 1));
  inputs[2] = COLLAGE_TRY(ChannelInput(writer, 2, "center", 0));
  writer.Emit("BatchNormalization", inputs, COLLAGE_TRY(EpsilonAttribute(writer)));
  for (size_t i : {1, 2}) {
    if (writer.OutputIsUsed(i)) writer.Emit("Identity", {inputs[i + 2]}, {}, i);
  }
  return {};
}

Status WriteInstanceNorm(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(RequireAxis(writer, 1, 1));
  const std::string scale = COLLAGE_TRY(ChannelInput(writer, 1, "scale", 1));
  const std::string shift = COLLAGE_TRY(ChannelInput(writer, 2, "center", 0));
  writer.Emit("InstanceNormalization", {writer.Input(0), scale, shift}, COLLAGE_TRY(EpsilonAttribute(writer)));
  return {};
}

/// LayerNormalization is over all last dimensions, so along another one its formula is written.
Status WriteAlongAxis(NodeWriter& writer, int64_t axis, const std::string& scale, const std::string& shift) {
  const TensorType& type = writer.InputType(0);
  const auto mean = [&](const std::string& of) {
    if (writer.opset() >= kOpsetOfAxesAsInput) return writer.EmitIntermediate("ReduceMean", {of, writer.Ints({axis})});
    return writer.EmitIntermediate("ReduceMean", {of}, {{"axes", std::vector<int64_t>{axis}}});
  };
  const std::string deviation = writer.EmitIntermediate("Sub", {writer.Input(0), mean(writer.Input(0))});
  const std::string variance = mean(writer.EmitIntermediate("Mul", {deviation, deviation}));
  const double epsilon = COLLAGE_TRY(writer.attributes().Double("epsilon", 1e-5));
  const std::string root =
      writer.EmitIntermediate("Sqrt", {writer.EmitIntermediate("Add", {variance, writer.Scalar(epsilon, type.dtype)})});
  Shape along(type.shape.size(), 1);
  along[static_cast<size_t>(axis)] = -1;
  const auto vector = [&](const std::string& of) { return writer.EmitIntermediate("Reshape", {of, writer.Ints(along)}); };
  const std::string scaled = writer.EmitIntermediate("Mul", {writer.EmitIntermediate("Div", {deviation, root}), vector(scale)});
  writer.Emit("Add", {scaled, vector(shift)});
  return {};
}

Status WriteLayerNorm(NodeWriter& writer) {
  const auto rank = static_cast<int64_t>(writer.InputType(0).shape.size());
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(writer.attributes().Int("axis", -1)), static_cast<size_t>(rank)));
  const std::string scale = COLLAGE_TRY(ChannelInput(writer, 1, "scale", 1));
  const std::string shift = COLLAGE_TRY(ChannelInput(writer, 2, "center", 0));
  if (axis != rank - 1) return WriteAlongAxis(writer, axis, scale, shift);
  OnnxAttributes attributes = COLLAGE_TRY(EpsilonAttribute(writer));
  attributes.emplace_back("axis", int64_t{-1});
  writer.Emit("LayerNormalization", {writer.Input(0), scale, shift}, attributes);
  return {};
}

/// GroupNormalization is younger than the opset that is written: groups become the channels of an instance normalization.
Status WriteGroupNorm(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(RequireAxis(writer, 1, 1));
  const TensorType& type = writer.InputType(0);
  if (type.dtype != DType::kFloat32) return Fail("has an ONNX form for float32 only");
  const int64_t groups = COLLAGE_TRY(writer.attributes().Int("num_groups", 1));
  const std::vector<float> ones(static_cast<size_t>(groups), 1.0F);
  const std::vector<float> zeros(static_cast<size_t>(groups), 0.0F);
  const TensorType per_group{{groups}, DType::kFloat32};
  const std::string grouped = writer.EmitIntermediate("Reshape", {writer.Input(0), writer.Ints({type.shape[0], groups, -1})});
  const std::string normalized = writer.EmitIntermediate(
      "InstanceNormalization",
      {grouped, writer.Initializer(Tensor::FromVector(per_group, ones)), writer.Initializer(Tensor::FromVector(per_group, zeros))},
      COLLAGE_TRY(EpsilonAttribute(writer)));
  const std::string flat = writer.EmitIntermediate("Reshape", {normalized, writer.Ints(type.shape)});
  Shape column(type.shape.size() - 1, 1);
  column[0] = type.shape[1];
  const std::string scale = writer.EmitIntermediate("Reshape", {COLLAGE_TRY(ChannelInput(writer, 1, "scale", 1)), writer.Ints(column)});
  const std::string shift = writer.EmitIntermediate("Reshape", {COLLAGE_TRY(ChannelInput(writer, 2, "center", 0)), writer.Ints(column)});
  writer.Emit("Add", {writer.EmitIntermediate("Mul", {flat, scale}), shift});
  return {};
}

Status WriteLrn(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(RequireAxis(writer, 1, 1));
  const Attributes& attributes = writer.attributes();
  writer.Emit("LRN", writer.Inputs(),
              {{"size", COLLAGE_TRY(attributes.Int("size", 5))},
               {"alpha", static_cast<float>(COLLAGE_TRY(attributes.Double("alpha", 1e-5)))},
               {"beta", static_cast<float>(COLLAGE_TRY(attributes.Double("beta", 0.75)))},
               {"bias", static_cast<float>(COLLAGE_TRY(attributes.Double("bias", 2)))}});
  return {};
}

}  // namespace

OperatorFamily NormalizationFamily() {
  static constexpr ReadRow kRead[] = {
      {"BatchNormalization", ReadBatchNormalization}, {"InstanceNormalization", ReadInstanceNormalization},
      {"LayerNormalization", ReadLayerNormalization}, {"GroupNormalization", ReadGroupNormalization},
      {"RMSNormalization", ReadRmsNormalization},     {"LRN", ReadLrn},
      {"LpNormalization", ReadLpNormalization},       {"MeanVarianceNormalization", ReadMeanVarianceNormalization}};
  static constexpr WriteRow kWrite[] = {{"nn.batch_norm", WriteBatchNorm},
                                        {"nn.instance_norm", WriteInstanceNorm},
                                        {"nn.layer_norm", WriteLayerNorm},
                                        {"nn.group_norm", WriteGroupNorm},
                                        {"nn.lrn", WriteLrn}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
