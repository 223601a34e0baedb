#include "collage/onnx/convolution.h"

#include <algorithm>
#include <numeric>

#include "collage/onnx/formula.h"
#include "collage/onnx/integer_products.h"
#include "collage/onnx/node_reader.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/window.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

/// Checks data and weight, and gives the extents of the kernel; the attribute kernel_shape may repeat them.
Result<std::vector<int64_t>> KernelShape(const NodeReader& node, const TensorType& data, const TensorType& weight) {
  if (data.shape.size() != weight.shape.size() || data.shape.size() < 3) {
    return Fail("data " + ToString(data) + " and weight " + ToString(weight) + " do not fit");
  }
  std::vector<int64_t> extents(weight.shape.begin() + 2, weight.shape.end());
  if (COLLAGE_TRY(node.Extents("kernel_shape", extents.size(), 1, 1)) != extents && node.HasAttribute("kernel_shape")) {
    return Fail("attribute 'kernel_shape' differs from the weight " + ToString(weight));
  }
  return extents;
}

Result<int64_t> Groups(const NodeReader& node, const TensorType& weight) {
  const int64_t groups = COLLAGE_TRY(node.Int("group", 1));
  if (groups >= 1 && groups <= weight.shape[0]) return groups;
  return Fail("attribute 'group' is " + std::to_string(groups) + "; 1 to " + std::to_string(weight.shape[0]) + " is right");
}

Result<Expr> AddBias(NodeReader& node, const Expr& result, const Expr& bias) {
  return bias == nullptr ? result : node.Call("nn.bias_add", {result, bias}, {{"axis", 1}});
}

Result<Expr> Bias(NodeReader& node) { return node.HasInput(2) ? node.Input(2) : Expr{}; }

Attributes VolumeAttributes(const Window& window, int64_t groups) {
  return {{"strides", window.strides}, {"padding", window.padding}, {"dilation", window.dilations}, {"groups", groups}};
}

Result<std::vector<Expr>> ReadConv(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Expr weight = COLLAGE_TRY(node.Input(1));
  return std::vector<Expr>{COLLAGE_TRY(Convolve(node, data, weight, COLLAGE_TRY(Bias(node))))};
}

/// Padding of a transposed convolution whose output extents are given or follow from auto_pad: what is left over of the full
/// output, split evenly, the odd one at the end for SAME_UPPER and at the beginning otherwise. Where the full output is smaller,
/// auto_pad leaves it as it is, and an extent that is given is reached by output padding (as in ONNX Runtime).
Status PadToOutputShape(const NodeReader& node, const Shape& data, const std::vector<int64_t>& output_shape, bool same_upper,
                        std::vector<int64_t>& output_padding, Window& window) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t full = window.strides[i] * (data[i + 2] - 1) + output_padding[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>(full - output_shape[i], 0);
    if (output_shape[i] > full && node.HasAttribute("output_shape")) {
      output_padding[i] += output_shape[i] - full;
      if (output_padding[i] >= std::max(window.strides[i], window.dilations[i])) {
        return Fail("attribute 'output_shape' asks for more than the " + std::to_string(full) + " elements there are");
      }
    }
    const int64_t less = total / 2;
    window.padding[i] = same_upper ? less : total - less;
    window.padding[i + count] = total - window.padding[i];
  }
  return {};
}

Result<Window> TransposedWindow(const NodeReader& node, const Shape& data, const std::vector<int64_t>& kernel,
                                std::vector<int64_t>& output_padding) {
  Window window = COLLAGE_TRY(ReadWindow(node, data, kernel));
  const std::string auto_pad = COLLAGE_TRY(node.String("auto_pad", "NOTSET"));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && !node.HasAttribute("output_shape")) return window;
  std::vector<int64_t> output_shape = COLLAGE_TRY(node.Ints("output_shape", {}));
  if (output_shape.size() == kernel.size() + 2) output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  if (output_shape.empty()) {
    for (size_t i = 0; i < kernel.size(); ++i) output_shape.push_back(data[i + 2] * window.strides[i]);
  }
  if (output_shape.size() != kernel.size()) return Fail("attribute 'output_shape' must have one value a spatial dimension");
  COLLAGE_TRY_STATUS(CheckExtents(output_shape));
  COLLAGE_TRY_STATUS(PadToOutputShape(node, data, output_shape, auto_pad == "SAME_UPPER", output_padding, window));
  return window;
}

Result<std::vector<Expr>> ReadConvTranspose(NodeReader& node) {
  Expr data = COLLAGE_TRY(node.Input(0));
  Expr weight = COLLAGE_TRY(node.Input(1));
  const TensorType data_type = COLLAGE_TRY(TensorTypeOf(data));
  const TensorType weight_type = COLLAGE_TRY(TensorTypeOf(weight));
  const std::vector<int64_t> kernel = COLLAGE_TRY(KernelShape(node, data_type, weight_type));
  std::vector<int64_t> output_padding = COLLAGE_TRY(node.Extents("output_padding", kernel.size(), 0, 0));
  Window window = COLLAGE_TRY(TransposedWindow(node, data_type.shape, kernel, output_padding));
  const int64_t groups = COLLAGE_TRY(Groups(node, weight_type));
  const bool one_dimensional = kernel.size() == 1;
  if (one_dimensional) {
    COLLAGE_TRY_STATUS(window.InsertHeight());
    output_padding.insert(output_padding.begin(), 0);
    data = COLLAGE_TRY(node.Call("expand_dims", {data}, {{"axis", 2}}));
    weight = COLLAGE_TRY(node.Call("expand_dims", {weight}, {{"axis", 2}}));
  }
  if (kernel.size() == 3) {
    Attributes attributes = VolumeAttributes(window, groups);
    attributes.Set("output_padding", output_padding);
    const Expr volume = COLLAGE_TRY(node.Call("nn.conv3d_transpose", {data, weight}, attributes));
    return std::vector<Expr>{COLLAGE_TRY(AddBias(node, volume, COLLAGE_TRY(Bias(node))))};
  }
  COLLAGE_TRY_STATUS(window.RequireTwoDimensions());
  Expr result = COLLAGE_TRY(node.Call("nn.conv2d_transpose", {data, weight},
                                      {{"strides", window.strides},
                                       {"padding", window.padding},
                                       {"output_padding", output_padding},
                                       {"dilation", window.dilations},
                                       {"groups", groups},
                                       {"channels", weight_type.shape[1] * groups},
                                       {"kernel_size", window.kernel}}));
  result = COLLAGE_TRY(AddBias(node, result, COLLAGE_TRY(Bias(node))));
  if (one_dimensional) result = COLLAGE_TRY(node.Call("squeeze", {result}, {{"axis", std::vector<int64_t>{2}}}));
  return std::vector<Expr>{result};
}

Result<OnnxAttributes> ConvolutionAttributes(const NodeWriter& writer) {
  const Shape& weight = writer.InputType(1).shape;
  OnnxAttributes attributes = COLLAGE_TRY(WindowAttributes(writer.attributes(), {weight[2], weight[3]}));
  attributes.emplace_back("group", COLLAGE_TRY(writer.attributes().Int("groups", 1)));
  return attributes;
}

/// Sums of integers: ONNX has them of 8-bit operands only, which are cast and moved by their zero points here.
Status ExpectFloatForm(const NodeWriter& writer) {
  const DType dtype = writer.InputType(0).dtype;
  if (IsFloatingPoint(dtype) || writer.is_complete()) return {};
  return Fail("of " + std::string(Name(dtype)) + " has no form in opset " + std::to_string(kWrittenOpset));
}

std::vector<std::string> InputsWithBias(NodeWriter& writer) {
  std::vector<std::string> inputs = writer.Inputs();
  if (std::optional<std::string> bias = writer.AbsorbBias(1)) inputs.push_back(*bias);
  return inputs;
}

Status WriteConv(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(ExpectFloatForm(writer));
  OnnxAttributes attributes = COLLAGE_TRY(ConvolutionAttributes(writer));
  if (!IsFloatingPoint(writer.InputType(0).dtype)) return WriteIntegerConvolution(writer, attributes);
  writer.Emit("Conv", InputsWithBias(writer), attributes);
  return {};
}

Status WriteConvTranspose(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(ExpectFloatForm(writer));
  OnnxAttributes attributes = COLLAGE_TRY(ConvolutionAttributes(writer));
  attributes.emplace_back("output_padding", COLLAGE_TRY(writer.attributes().Ints("output_padding", {0, 0})));
  writer.Emit("ConvTranspose", InputsWithBias(writer), attributes);
  return {};
}

template <bool transposed>
Status WriteVolume(NodeWriter& writer) {
  COLLAGE_TRY_STATUS(ExpectFloatForm(writer));
  const Attributes& attributes = writer.attributes();
  const Shape& weight = writer.InputType(1).shape;
  OnnxAttributes written{{"kernel_shape", std::vector<int64_t>(weight.begin() + 2, weight.end())},
                         {"strides", COLLAGE_TRY(Triple(attributes, "strides", 1))},
                         {"dilations", COLLAGE_TRY(Triple(attributes, "dilation", 1))},
                         {"pads", COLLAGE_TRY(Many(attributes, "padding", 6, 0))},
                         {"group", COLLAGE_TRY(attributes.Int("groups", 1))}};
  if (!transposed && !IsFloatingPoint(writer.InputType(0).dtype)) return WriteIntegerConvolution(writer, written);
  if (transposed) written.emplace_back("output_padding", COLLAGE_TRY(Triple(attributes, "output_padding", 0)));
  writer.Emit(transposed ? "ConvTranspose" : "Conv", InputsWithBias(writer), written);
  return {};
}

/// Without its first dimension.
Window Rest(const Window& window) {
  Window rest = window;
  for (std::vector<int64_t>* values : {&rest.kernel, &rest.strides, &rest.dilations}) values->erase(values->begin());
  rest.padding.erase(rest.padding.begin() + static_cast<std::ptrdiff_t>(window.kernel.size()));
  rest.padding.erase(rest.padding.begin());
  return rest;
}

/// A convolution of three spatial dimensions; of more it is the sum, over the taps along the first, of convolutions along the others, which
/// take the places of the result along the first as a batch.
Result<Expr> ConvolveVolume(NodeReader& node, const Expr& data, const Expr& weight, const Window& window, int64_t groups) {
  if (window.kernel.size() == 3) return node.Call("nn.conv3d", {data, weight}, VolumeAttributes(window, groups));
  constexpr int64_t kMostTaps = 64;  // each is written out; windows of networks are far smaller
  const int64_t taps = window.kernel[0];
  if (taps > kMostTaps)
    return Fail("has " + std::to_string(taps) + " taps along the first of " + std::to_string(window.kernel.size()) +
                " spatial dimensions; up to " + std::to_string(kMostTaps) + " are supported");
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  Formula formula(node, type.dtype);
  const int64_t begin = window.padding[0];
  const int64_t end = window.padding[window.kernel.size()];
  const int64_t span = (taps - 1) * window.dilations[0] + 1;
  const int64_t extent = type.shape[2] + begin + end;
  if (extent < span) return Fail("has a window of " + std::to_string(span) + " elements over " + std::to_string(extent));
  const int64_t places = (extent - span) / window.strides[0] + 1;
  AttributeValue::List widths(type.shape.size(), AttributeValue(std::vector<int64_t>{0, 0}));
  widths[2] = AttributeValue(std::vector<int64_t>{begin, end});
  Expr padded = data;
  if (begin + end > 0) padded = formula.Apply("nn.pad", {data, formula.Number(0)}, {{"pad_width", widths}, {"pad_mode", "constant"}});
  std::vector<int64_t> swap(type.shape.size());
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[1], swap[2]);
  padded = formula.Transpose(padded, swap);
  Shape image = type.shape;
  image.erase(image.begin() + 2);
  image[0] *= places;
  Shape filter = Formula::ShapeOf(weight);
  filter.erase(filter.begin() + 2);
  Expr sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t first = tap * window.dilations[0];
    const int64_t last = first + (places - 1) * window.strides[0] + 1;
    const Attributes slice{{"begin", first}, {"end", last}, {"strides", window.strides[0]}, {"axes", int64_t{1}}};
    const Expr images = formula.Reshape(formula.Apply("strided_slice", {padded}, slice), image);
    const Expr filters = formula.Reshape(formula.Slice(weight, 2, tap, tap + 1), filter);
    COLLAGE_TRY(formula.Done(filters));
    const Expr term = COLLAGE_TRY(ConvolveVolume(node, images, filters, Rest(window), groups));
    sum = sum == nullptr ? term : formula.Call("add", sum, term);
  }
  Shape result = Formula::ShapeOf(sum);
  result[0] = type.shape[0];
  result.insert(result.begin() + 1, places);
  return COLLAGE_TRY(formula.Done(formula.Transpose(formula.Reshape(sum, result), swap)))[0];
}

}  // namespace

Result<Expr> Convolve(NodeReader& node, Expr data, Expr weight, const Expr& bias) {
  const TensorType data_type = COLLAGE_TRY(TensorTypeOf(data));
  const TensorType weight_type = COLLAGE_TRY(TensorTypeOf(weight));
  std::vector<int64_t> kernel = COLLAGE_TRY(KernelShape(node, data_type, weight_type));
  Window window = COLLAGE_TRY(ReadWindow(node, data_type.shape, kernel));
  const int64_t groups = COLLAGE_TRY(Groups(node, weight_type));
  if (kernel.size() >= 3) return AddBias(node, COLLAGE_TRY(ConvolveVolume(node, data, weight, window, groups)), bias);
  const bool one_dimensional = kernel.size() == 1;
  if (one_dimensional) {
    COLLAGE_TRY_STATUS(window.InsertHeight());
    data = COLLAGE_TRY(node.Call("expand_dims", {data}, {{"axis", 2}}));
    weight = COLLAGE_TRY(node.Call("expand_dims", {weight}, {{"axis", 2}}));
  }
  COLLAGE_TRY_STATUS(window.RequireTwoDimensions());
  const Expr image = COLLAGE_TRY(node.Call("nn.conv2d", {data, weight},
                                           {{"strides", window.strides},
                                            {"padding", window.padding},
                                            {"dilation", window.dilations},
                                            {"groups", groups},
                                            {"channels", weight_type.shape[0]},
                                            {"kernel_size", window.kernel}}));
  const Expr result = COLLAGE_TRY(AddBias(node, image, bias));
  if (!one_dimensional) return result;
  return node.Call("squeeze", {result}, {{"axis", std::vector<int64_t>{2}}});
}

OperatorFamily ConvolutionFamily() {
  static constexpr ReadRow kRead[] = {{"Conv", ReadConv}, {"ConvTranspose", ReadConvTranspose}};
  static constexpr WriteRow kWrite[] = {{"nn.conv2d", WriteConv},
                                        {"nn.conv2d_transpose", WriteConvTranspose},
                                        {"nn.conv3d", WriteVolume<false>},
                                        {"nn.conv3d_transpose", WriteVolume<true>}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
