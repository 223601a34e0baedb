#include <algorithm>

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

Result<std::vector<Expr>> ReadPool(NodeReader& node, const std::string& op) {
  Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  if (!node.HasAttribute("kernel_shape")) return Fail("attribute 'kernel_shape' is required and absent");
  if (type.shape.size() < 3) return Fail("data must have at least 3 dimensions, not " + ToString(type.shape));
  const std::vector<int64_t> kernel = COLLAGE_TRY(node.Extents("kernel_shape", type.shape.size() - 2, 1, 1));
  Window window = COLLAGE_TRY(ReadWindow(node, type.shape, kernel));
  const bool counts_padding = COLLAGE_TRY(node.Int("count_include_pad", 0)) != 0;
  bool ceil_mode = COLLAGE_TRY(node.Int("ceil_mode", 0)) != 0;
  if (ceil_mode && !counts_padding) {
    PadToCeiling(type.shape, window);
    ceil_mode = false;
  }
  const bool one_dimensional = kernel.size() == 1;
  if (one_dimensional) {
    COLLAGE_TRY_STATUS(window.InsertHeight());
    data = COLLAGE_TRY(node.Call("expand_dims", {data}, {{"axis", 2}}));
  }
  COLLAGE_TRY_STATUS(window.RequireTwoDimensions());
  Attributes attributes{{"pool_size", window.kernel},
                        {"strides", window.strides},
                        {"dilation", window.dilations},
                        {"padding", window.padding},
                        {"ceil_mode", ceil_mode}};
  if (op == "nn.avg_pool2d") attributes.Set("count_include_pad", counts_padding);
  Expr result = COLLAGE_TRY(node.Call(op, {data}, attributes));
  if (one_dimensional) result = COLLAGE_TRY(node.Call("squeeze", {result}, {{"axis", std::vector<int64_t>{2}}}));
  return std::vector<Expr>{result};
}

Result<std::vector<Expr>> ReadMaxPool(NodeReader& node) { return ReadPool(node, "nn.max_pool2d"); }
Result<std::vector<Expr>> ReadAveragePool(NodeReader& node) { return ReadPool(node, "nn.avg_pool2d"); }

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

constexpr ReadRow kRead[] = {{"MaxPool", ReadMaxPool},
                             {"AveragePool", ReadAveragePool},
                             {"GlobalAveragePool", ReadGlobalAveragePool},
                             {"GlobalMaxPool", ReadGlobalMaxPool}};
constexpr WriteRow kWrite[] = {{"nn.max_pool2d", WriteMaxPool},
                               {"nn.avg_pool2d", WriteAveragePool},
                               {"nn.global_avg_pool2d", WriteGlobalAveragePool},
                               {"nn.global_max_pool2d", WriteGlobalMaxPool}};

}  // namespace

OperatorFamily PoolingFamily() { return {kRead, kWrite}; }

}  // namespace collage::onnx_io
