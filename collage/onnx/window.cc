#include "collage/onnx/window.h"

#include <algorithm>

namespace collage::onnx_io {
namespace {

/// SAME: the output has ceil(input / stride) elements; the odd element of padding goes to the end for SAME_UPPER.
void PadSame(const Shape& data, bool upper, Window& window) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t input = data[i + 2];
    const int64_t output = (input + window.strides[i] - 1) / window.strides[i];
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>((output - 1) * window.strides[i] + reach - input, 0);
    window.padding[i] = upper ? total / 2 : total - total / 2;
    window.padding[i + count] = total - window.padding[i];
  }
}

}  // namespace

Status Window::InsertHeight() {
  if (kernel.size() != 1) return Fail("has " + std::to_string(kernel.size()) + " spatial dimensions; 1, 2 or 3 are supported");
  for (std::vector<int64_t>* values : {&kernel, &strides, &dilations}) values->insert(values->begin(), 1);
  padding = {0, padding[0], 0, padding[1]};
  return {};
}

Status Window::RequireTwoDimensions() const {
  if (kernel.size() == 2) return {};
  return Fail("has " + std::to_string(kernel.size()) + " spatial dimensions; 1, 2 or 3 are supported");
}

Result<Window> ReadWindow(const NodeReader& node, const Shape& data, const std::vector<int64_t>& kernel) {
  const size_t count = kernel.size();
  if (data.size() != count + 2) {
    return Fail("has a window of " + std::to_string(count) + " dimensions over data of shape " + ToString(data));
  }
  Window window;
  window.kernel = kernel;
  window.strides = COLLAGE_TRY(node.Extents("strides", count, 1, 1));
  window.dilations = COLLAGE_TRY(node.Extents("dilations", count, 1, 1));
  window.padding.assign(2 * count, 0);
  const std::string auto_pad = COLLAGE_TRY(node.String("auto_pad", "NOTSET"));
  if (auto_pad == "NOTSET") {
    window.padding = COLLAGE_TRY(node.Extents("pads", 2 * count, 0, 0));
  } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    PadSame(data, auto_pad == "SAME_UPPER", window);
  } else if (auto_pad != "VALID") {
    return Fail("attribute 'auto_pad' is '" + auto_pad + "'; NOTSET, SAME_UPPER, SAME_LOWER or VALID is right");
  }
  return window;
}

Result<std::vector<int64_t>> CompletePadding(const Attributes& attributes) {
  const std::vector<int64_t> padding = COLLAGE_TRY(attributes.Ints("padding", {0, 0, 0, 0}));
  if (padding.size() == 1) return std::vector<int64_t>(4, padding[0]);
  if (padding.size() == 2) return std::vector<int64_t>{padding[0], padding[1], padding[0], padding[1]};
  return padding;
}

Result<std::vector<int64_t>> Many(const Attributes& attributes, const std::string& name, size_t count, int64_t fallback) {
  std::vector<int64_t> values = COLLAGE_TRY(attributes.Ints(name, {fallback}));
  if (values.size() == 1) values.assign(count, values[0]);
  return values;
}

Result<std::vector<int64_t>> Triple(const Attributes& attributes, const std::string& name, int64_t fallback) {
  return Many(attributes, name, 3, fallback);
}

Result<std::vector<int64_t>> Pair(const Attributes& attributes, const std::string& name, int64_t fallback) {
  std::vector<int64_t> values = COLLAGE_TRY(attributes.Ints(name, {fallback, fallback}));
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

Result<OnnxAttributes> WindowAttributes(const Attributes& attributes, const std::vector<int64_t>& kernel) {
  return OnnxAttributes{{"kernel_shape", kernel},
                        {"strides", COLLAGE_TRY(Pair(attributes, "strides", 1))},
                        {"dilations", COLLAGE_TRY(Pair(attributes, "dilation", 1))},
                        {"pads", COLLAGE_TRY(CompletePadding(attributes))}};
}

}  // namespace collage::onnx_io
