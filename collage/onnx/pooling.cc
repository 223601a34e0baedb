#include <algorithm>
#include <limits>

#include "collage/onnx/formula.h"
#include "collage/onnx/node_reader.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/window.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

/// ceil_mode as padding at the end, so that kernels need not know it: one more output element where the last window would be
/// cut short, unless it would lie in the padding entirely (the rule of ONNX from opset 22 on, and of PyTorch always).
void PadToCeiling(const Shape& data, Window& window) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t padded = data[i + 2] + window.padding[i] + window.padding[i + count];
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t stride = window.strides[i];
    if (padded + stride <= reach) continue;
    const int64_t outputs = padded < reach ? 1 : (padded - reach + stride - 1) / stride + 1;
    if ((outputs - 1) * stride >= data[i + 2] + window.padding[i]) continue;
    window.padding[i + count] += std::max<int64_t>((outputs - 1) * stride + reach - padded, 0);
  }
}

/// Padding that is counted as elements of their own, because what ceil_mode adds beyond it does not count.
Result<Expr> PadBeforeCeiling(NodeReader& node, const Expr& data, Window& window) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const size_t count = window.kernel.size();
  const std::vector<int64_t> counted = window.padding;
  PadToCeiling(type.shape, window);
  AttributeValue::List widths{AttributeValue(std::vector<int64_t>{0, 0}), AttributeValue(std::vector<int64_t>{0, 0})};
  for (size_t i = 0; i < count; ++i) {
    widths.emplace_back(std::vector<int64_t>{counted[i], counted[i + count]});
    window.padding[i] = 0;
    window.padding[i + count] -= counted[i + count];
  }
  const Expr zero = COLLAGE_TRY(NodeReader::Scalar(0, type.dtype));
  return node.Call("nn.pad", {data, zero}, {{"pad_width", widths}, {"pad_mode", "constant"}});
}

/// A pooling of one, two or three spatial dimensions; `op` without "2d" or "3d" at its end.
Result<Expr> Slide(NodeReader& node, Expr data, const std::string& op, bool counts_padding) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  if (!node.HasAttribute("kernel_shape")) return Fail("attribute 'kernel_shape' is required and absent");
  if (type.shape.size() < 3) return Fail("data must have at least 3 dimensions, not " + ToString(type.shape));
  const std::vector<int64_t> kernel = COLLAGE_TRY(node.Extents("kernel_shape", type.shape.size() - 2, 1, 1));
  Window window = COLLAGE_TRY(ReadWindow(node, type.shape, kernel));
  if (COLLAGE_TRY(node.Int("ceil_mode", 0)) != 0) {
    if (counts_padding) {
      data = COLLAGE_TRY(PadBeforeCeiling(node, data, window));
    } else {
      PadToCeiling(type.shape, window);
    }
    counts_padding = false;
  }
  const bool one_dimensional = kernel.size() == 1;
  if (one_dimensional) {
    COLLAGE_TRY_STATUS(window.InsertHeight());
    data = COLLAGE_TRY(node.Call("expand_dims", {data}, {{"axis", 2}}));
  }
  const bool is_volume = kernel.size() == 3;
  if (!is_volume) COLLAGE_TRY_STATUS(window.RequireTwoDimensions());
  Attributes attributes{
      {"pool_size", window.kernel}, {"strides", window.strides}, {"dilation", window.dilations}, {"padding", window.padding}};
  if (!is_volume) attributes.Set("ceil_mode", false);
  if (op == "nn.avg_pool") attributes.Set("count_include_pad", counts_padding);
  Expr result = COLLAGE_TRY(node.Call(op + (is_volume ? "3d" : "2d"), {data}, attributes));
  if (one_dimensional) result = COLLAGE_TRY(node.Call("squeeze", {result}, {{"axis", std::vector<int64_t>{2}}}));
  return result;
}

/// For each output of a pooling the elements under its taps: their places in the plane, and what Indices says of them there.
struct WindowPlaces {
  int64_t outputs = 1;
  int64_t taps = 1;
  Tensor places;   ///< (outputs, taps); the extent of the plane for a tap in the padding
  Tensor indices;  ///< the same counted in the order that storage_order asks for
};

/// To the next one in row-major order, and behind the last to the first.
void Advance(Shape& coordinates, const Shape& extents) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (++coordinates[d] < extents[d]) return;
    coordinates[d] = 0;
  }
}

Result<WindowPlaces> PlacesOf(NodeReader& node, const Shape& spatial, const Window& window, bool column_major) {
  WindowPlaces result;
  Shape steps;
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t reach = (window.kernel[d] - 1) * window.dilations[d] + 1;
    steps.push_back((spatial[d] + window.padding[d] + window.padding[d + spatial.size()] - reach) / window.strides[d] + 1);
    result.taps *= window.kernel[d];
  }
  result.outputs = ElementCount(steps);
  COLLAGE_TRY_STATUS(node.folder().Reserve(16.0 * static_cast<double>(result.outputs) * static_cast<double>(result.taps)));
  const TensorType type{{result.outputs, result.taps}, DType::kInt64};
  result.places = Tensor(type);
  result.indices = Tensor(type);
  auto* places = result.places.MutableData<int64_t>();
  auto* indices = result.indices.MutableData<int64_t>();
  const int64_t extent = ElementCount(spatial);
  Shape step(spatial.size(), 0);
  Shape tap(spatial.size(), 0);
  for (int64_t i = 0; i < result.outputs; ++i, Advance(step, steps)) {
    for (int64_t k = 0; k < result.taps; ++k, Advance(tap, window.kernel)) {
      int64_t place = 0;
      int64_t index = 0;
      int64_t column_stride = 1;
      bool inside = true;
      for (size_t d = 0; d < spatial.size(); ++d) {
        const int64_t x = step[d] * window.strides[d] + tap[d] * window.dilations[d] - window.padding[d];
        inside = inside && x >= 0 && x < spatial[d];
        place = place * spatial[d] + x;
        index += x * column_stride;
        column_stride *= spatial[d];
      }
      *places++ = inside ? place : extent;
      *indices++ = !inside ? 0 : column_major ? index : place;
    }
  }
  return result;
}

/// The second output of MaxPool: where in the whole tensor each largest element lies. Few models read it, so it is a composition:
/// the elements under each window side by side, and which of them is the largest.
Result<Expr> MaxPoolIndices(NodeReader& node, const Expr& data, const Shape& result) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Shape spatial(type.shape.begin() + 2, type.shape.end());
  Window window = COLLAGE_TRY(ReadWindow(node, type.shape, COLLAGE_TRY(node.Extents("kernel_shape", spatial.size(), 1, 1))));
  if (COLLAGE_TRY(node.Int("ceil_mode", 0)) != 0) PadToCeiling(type.shape, window);
  const WindowPlaces places = COLLAGE_TRY(PlacesOf(node, spatial, window, COLLAGE_TRY(node.Int("storage_order", 0)) != 0));
  const int64_t planes = type.shape[0] * type.shape[1];
  const int64_t extent = ElementCount(spatial);
  // Of integers padding must be less than any, so they are compared as floating point numbers.
  const DType wide = IsFloatingPoint(type.dtype) ? type.dtype : DType::kFloat64;
  Formula formula(node, wide);
  const AttributeValue::List widths{AttributeValue(std::vector<int64_t>{0, 0}), AttributeValue(std::vector<int64_t>{0, 1})};
  const Expr padded = formula.Apply(
      "nn.pad", {formula.Reshape(formula.Cast(data, wide), {planes, extent}), formula.Number(-std::numeric_limits<double>::infinity())},
      {{"pad_width", widths}, {"pad_mode", "constant"}});
  const Expr side_by_side = formula.Apply("take", {padded, MakeConstant(places.places)}, {{"axis", 1}, {"mode", "clip"}});
  const Expr largest = formula.Apply("argmax", {side_by_side}, {{"axis", 2}, {"keepdims", true}});
  const Expr indices =
      formula.Broadcast(MakeConstant(places.indices.Reshaped({1, places.outputs, places.taps})), {planes, places.outputs, places.taps});
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(sizeof(int64_t)) * static_cast<double>(planes)));
  Tensor firsts(TensorType{{planes, 1, 1}, DType::kInt64});
  for (int64_t plane = 0; plane < planes; ++plane) firsts.MutableData<int64_t>()[plane] = plane * extent;
  const Expr in_plane = formula.Apply("gather", {indices, largest}, {{"axis", 2}});
  const Expr in_all = formula.Call("add", in_plane, MakeConstant(std::move(firsts)));
  return COLLAGE_TRY(formula.Done(formula.Reshape(in_all, result)))[0];
}

Result<std::vector<Expr>> ReadMaxPool(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  std::vector<Expr> outputs{COLLAGE_TRY(Slide(node, data, "nn.max_pool", false))};
  if (node.output_count() < 2) return outputs;
  outputs.push_back(COLLAGE_TRY(MaxPoolIndices(node, data, COLLAGE_TRY(TensorTypeOf(outputs[0])).shape)));
  return outputs;
}

Result<std::vector<Expr>> ReadAveragePool(NodeReader& node) {
  const bool counts_padding = COLLAGE_TRY(node.Int("count_include_pad", 0)) != 0;
  return std::vector<Expr>{COLLAGE_TRY(Slide(node, COLLAGE_TRY(node.Input(0)), "nn.avg_pool", counts_padding))};
}

/// The p-norm under a window: the root of the mean of powers times the number of taps. Zeros in the padding add nothing.
Result<std::vector<Expr>> ReadLpPool(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const auto p = static_cast<double>(COLLAGE_TRY(node.Int("p", 2)));
  Formula formula(node, type.dtype);
  const Expr powers = formula.Call("power", formula.Call("abs", data), p);
  COLLAGE_TRY(formula.Done(powers));
  const bool ceils = COLLAGE_TRY(node.Int("ceil_mode", 0)) != 0;
  if (ceils) return Fail("attribute 'ceil_mode' must be 0");
  const Expr mean = COLLAGE_TRY(Slide(node, powers, "nn.avg_pool", true));
  const auto taps = static_cast<double>(ElementCount(COLLAGE_TRY(node.Ints("kernel_shape", {}))));
  return formula.Done(formula.Call("power", formula.Call("multiply", mean, taps), 1 / p));
}

/// Over all spatial dimensions; ranks other than 4 have a reduction instead of our two-dimensional operator.
Result<std::vector<Expr>> ReadGlobalPool(NodeReader& node, const std::string& op, const std::string& reduction) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  if (type.shape.size() < 3) return Fail("data must have at least 3 dimensions, not " + ToString(type.shape));
  if (type.shape.size() == 4) return std::vector<Expr>{COLLAGE_TRY(node.Call(op, {data}))};
  std::vector<int64_t> axes;
  for (size_t i = 2; i < type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return std::vector<Expr>{COLLAGE_TRY(node.Call(reduction, {data}, {{"axis", axes}, {"keepdims", true}}))};
}

Result<std::vector<Expr>> ReadGlobalAveragePool(NodeReader& node) { return ReadGlobalPool(node, "nn.global_avg_pool2d", "mean"); }
Result<std::vector<Expr>> ReadGlobalMaxPool(NodeReader& node) { return ReadGlobalPool(node, "nn.global_max_pool2d", "max"); }

Result<OnnxAttributes> PoolAttributes(const NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  OnnxAttributes result = COLLAGE_TRY(WindowAttributes(attributes, COLLAGE_TRY(Pair(attributes, "pool_size", 1))));
  result.emplace_back("ceil_mode", int64_t{COLLAGE_TRY(attributes.Bool("ceil_mode", false))});
  return result;
}

Status WriteMaxPool(NodeWriter& writer) {
  writer.Emit("MaxPool", writer.Inputs(), COLLAGE_TRY(PoolAttributes(writer)));
  return {};
}

Status WriteAveragePool(NodeWriter& writer) {
  OnnxAttributes attributes = COLLAGE_TRY(PoolAttributes(writer));
  const auto dilations = std::find_if(attributes.begin(), attributes.end(), [](const auto& entry) { return entry.first == "dilations"; });
  if (std::get<std::vector<int64_t>>(dilations->second) != std::vector<int64_t>{1, 1}) {
    return Fail("a dilated average pool has no form in opset " + std::to_string(kWrittenOpset));
  }
  attributes.erase(dilations);
  attributes.emplace_back("count_include_pad", int64_t{COLLAGE_TRY(writer.attributes().Bool("count_include_pad", false))});
  writer.Emit("AveragePool", writer.Inputs(), attributes);
  return {};
}

Status WriteGlobalAveragePool(NodeWriter& writer) {
  writer.Emit("GlobalAveragePool", writer.Inputs());
  return {};
}

Status WriteGlobalMaxPool(NodeWriter& writer) {
  writer.Emit("GlobalMaxPool", writer.Inputs());
  return {};
}

template <bool average>
Status WriteVolumePool(NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  OnnxAttributes written{{"kernel_shape", COLLAGE_TRY(Triple(attributes, "pool_size", 1))},
                         {"strides", COLLAGE_TRY(Triple(attributes, "strides", 1))},
                         {"pads", COLLAGE_TRY(Many(attributes, "padding", 6, 0))}};
  const std::vector<int64_t> dilations = COLLAGE_TRY(Triple(attributes, "dilation", 1));
  const bool dilates = dilations != std::vector<int64_t>{1, 1, 1};
  if (average && dilates) return Fail("a dilated average pool has no form in opset " + std::to_string(kWrittenOpset));
  if (dilates) written.emplace_back("dilations", dilations);
  if (average) written.emplace_back("count_include_pad", int64_t{COLLAGE_TRY(attributes.Bool("count_include_pad", false))});
  writer.Emit(average ? "AveragePool" : "MaxPool", writer.Inputs(), written);
  return {};
}

}  // namespace

OperatorFamily PoolingFamily() {
  static constexpr ReadRow kRead[] = {{"MaxPool", ReadMaxPool},
                                      {"LpPool", ReadLpPool},
                                      {"AveragePool", ReadAveragePool},
                                      {"GlobalAveragePool", ReadGlobalAveragePool},
                                      {"GlobalMaxPool", ReadGlobalMaxPool}};
  static constexpr WriteRow kWrite[] = {{"nn.max_pool2d", WriteMaxPool},
                                        {"nn.avg_pool2d", WriteAveragePool},
                                        {"nn.max_pool3d", WriteVolumePool<false>},
                                        {"nn.avg_pool3d", WriteVolumePool<true>},
                                        {"nn.global_avg_pool2d", WriteGlobalAveragePool},
                                        {"nn.global_max_pool2d", WriteGlobalMaxPool}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
