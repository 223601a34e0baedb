#include <algorithm>
#include <cmath>

#include "collage/onnx/formula.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/window.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> ReadCol2Im(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const Shape image = COLLAGE_TRY(node.IntsInput(1, "image_shape"));
  const std::vector<int64_t> block = COLLAGE_TRY(node.IntsInput(2, "block_shape"));
  Shape window_data{1, 1};
  window_data.insert(window_data.end(), image.begin(), image.end());
  const Window window = COLLAGE_TRY(ReadWindow(node, window_data, block));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.col2im", {data},
                                                 {{"output_size", std::vector<int64_t>(image)},
                                                  {"kernel_size", block},
                                                  {"strides", window.strides},
                                                  {"dilation", window.dilations},
                                                  {"padding", window.padding}}))};
}

/// ONNX has it from two dimensions on, so one is the second of two.
Status WriteCol2Im(NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  std::vector<int64_t> image = COLLAGE_TRY(attributes.Ints("output_size", {}));
  const bool is_line = image.size() == 1;
  std::vector<int64_t> kernel = COLLAGE_TRY(Many(attributes, "kernel_size", image.size(), 1));
  std::vector<int64_t> strides = COLLAGE_TRY(Many(attributes, "strides", image.size(), 1));
  std::vector<int64_t> dilations = COLLAGE_TRY(Many(attributes, "dilation", image.size(), 1));
  std::vector<int64_t> padding = COLLAGE_TRY(Many(attributes, "padding", 2 * image.size(), 0));
  if (is_line) {
    for (std::vector<int64_t>* values : {&image, &kernel, &strides, &dilations}) values->insert(values->begin(), 1);
    padding = {0, padding[0], 0, padding[1]};
  }
  const std::vector<std::string> inputs{writer.Input(0), writer.Ints(image), writer.Ints(kernel)};
  const OnnxAttributes written{{"strides", strides}, {"dilations", dilations}, {"pads", padding}};
  if (is_line) {
    writer.Emit("Reshape", {writer.EmitIntermediate("Col2Im", inputs, written), writer.Ints(writer.OutputType().shape)});
  } else {
    writer.Emit("Col2Im", inputs, written);
  }
  return {};
}

/// Each axis cut or padded with zeros evenly on both sides.
Result<std::vector<Expr>> ReadCenterCropPad(NodeReader& node) {
  Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const std::vector<int64_t> target = COLLAGE_TRY(node.IntsInput(1, "shape"));
  COLLAGE_TRY_STATUS(CheckExtents(target));
  std::vector<int64_t> axes = COLLAGE_TRY(node.Ints("axes", {}));
  for (size_t i = 0; !node.HasAttribute("axes") && i < type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (axes.size() != target.size())
    return Fail("input 1 (shape) has " + std::to_string(target.size()) + " values for " + std::to_string(axes.size()) + " axes");
  Formula formula(node, type.dtype);
  AttributeValue::List widths(type.shape.size(), AttributeValue(std::vector<int64_t>{0, 0}));
  bool pads = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = COLLAGE_TRY(NormalizeAxis(axes[i], type.shape.size()));
    const int64_t extent = type.shape[static_cast<size_t>(axis)];
    const int64_t surplus = extent - target[i];
    if (surplus > 0) data = formula.Slice(data, axis, surplus / 2, surplus / 2 + target[i]);
    if (surplus >= 0) continue;
    widths[static_cast<size_t>(axis)] = std::vector<int64_t>{-surplus / 2, -surplus - -surplus / 2};
    pads = true;
  }
  if (pads) data = formula.Apply("nn.pad", {data, formula.Number(0)}, {{"pad_width", widths}, {"pad_mode", "constant"}});
  return formula.Done(data);
}

/// The extents of what a pooling has shrunk.
Result<Shape> UnpooledShape(const NodeReader& node, const Shape& data) {
  const std::vector<int64_t> kernel = COLLAGE_TRY(node.Extents("kernel_shape", data.size() - 2, 1, 1));
  const std::vector<int64_t> strides = COLLAGE_TRY(node.Extents("strides", kernel.size(), 1, 1));
  const std::vector<int64_t> pads = COLLAGE_TRY(node.Extents("pads", 2 * kernel.size(), 0, 0));
  Shape shape(data.begin(), data.begin() + 2);
  for (size_t d = 0; d < kernel.size(); ++d) {
    shape.push_back((data[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[d + kernel.size()]);
  }
  COLLAGE_TRY_STATUS(CheckExtents(shape));
  return shape;
}

/// Elements go back to the places that MaxPool has told, counted in the tensor that it read; all others are 0. A larger
/// output_shape puts that tensor into its corner.
Result<std::vector<Expr>> ReadMaxUnpool(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  if (type.shape.size() < 3) return Fail("data must have at least 3 dimensions, not " + ToString(type.shape));
  const Shape inferred = COLLAGE_TRY(UnpooledShape(node, type.shape));
  Shape shape = inferred;
  if (node.HasInput(2)) shape = COLLAGE_TRY(node.IntsInput(2, "output_shape"));
  if (shape.size() != inferred.size()) return Fail("input 2 (output_shape) must have one value a dimension");
  COLLAGE_TRY_STATUS(CheckExtents(shape));
  const int64_t count = type.ElementCount();
  const int64_t elements = ElementCount(inferred);
  Formula formula(node, type.dtype);
  const Expr empty = formula.Zeros({elements}, type.dtype);
  const Expr indices = formula.Reshape(COLLAGE_TRY(node.Input(1)), {count});
  Expr result =
      formula.Reshape(formula.Apply("scatter_elements", {empty, indices, formula.Reshape(data, {count})}, {{"axis", 0}}), inferred);
  AttributeValue::List widths;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < inferred[d]) return Fail("input 2 (output_shape) is " + ToString(shape) + ", less than " + ToString(inferred));
    widths.emplace_back(std::vector<int64_t>{0, shape[d] - inferred[d]});
  }
  if (shape != inferred) result = formula.Apply("nn.pad", {result, formula.Number(0)}, {{"pad_width", widths}, {"pad_mode", "constant"}});
  return formula.Done(result);
}

/// The p-norm of all spatial dimensions.
Result<std::vector<Expr>> ReadGlobalLpPool(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const auto p = static_cast<double>(COLLAGE_TRY(node.Int("p", 2)));
  std::vector<int64_t> axes;
  for (size_t i = 2; i < type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  Formula formula(node, type.dtype);
  const Expr sum = formula.Reduce("sum", formula.Call("power", formula.Call("abs", data), p), axes, true);
  return formula.Done(formula.Call("power", sum, 1 / p));
}

/// Where the taps of a window would lie without offsets, (taps, steps, dimensions).
Tensor TapPlaces(const Window& window, const Shape& steps) {
  const int64_t taps = ElementCount(window.kernel);
  const int64_t count = ElementCount(steps);
  const std::vector<int64_t> tap_strides = RowMajorStrides(window.kernel);
  const std::vector<int64_t> step_strides = RowMajorStrides(steps);
  std::vector<double> places;
  for (int64_t i = 0; i < taps * count; ++i) {
    for (size_t d = 0; d < steps.size(); ++d) {
      const int64_t tap = i / count / tap_strides[d] % window.kernel[d];
      const int64_t step = i % count / step_strides[d] % steps[d];
      places.push_back(static_cast<double>(step * window.strides[d] + tap * window.dilations[d] - window.padding[d]));
    }
  }
  return Tensor::FromVector(TensorType{{taps, count, static_cast<int64_t>(steps.size())}, DType::kFloat64}, places);
}

/// A convolution whose taps are read beside their places, at offsets that are data: a sampling, then a product with the weights.
class DeformableConvolution {
 public:
  DeformableConvolution(NodeReader& node, DType dtype) : node_(node), formula_(node, dtype) {}

  Result<std::vector<Expr>> Read() {
    COLLAGE_TRY_STATUS(ReadShapes());
    Expr samples = COLLAGE_TRY(Sampled());
    if (node_.HasInput(4)) {
      const Expr mask = formula_.Reshape(COLLAGE_TRY(node_.Input(4)), {data_[0], offset_groups_, 1, taps_, count_});
      samples = formula_.Call("multiply", samples, mask);
    }
    const int64_t rows = data_[1] / groups_ * taps_;
    const Expr columns = formula_.Reshape(samples, {data_[0], groups_, rows, count_});
    const Expr weight = formula_.Reshape(COLLAGE_TRY(node_.Input(1)), {1, groups_, weight_[0] / groups_, rows});
    Shape shape{data_[0], weight_[0]};
    shape.insert(shape.end(), steps_.begin(), steps_.end());
    Expr result = formula_.Reshape(formula_.Apply("nn.matmul", {weight, columns}), shape);
    if (node_.HasInput(3)) result = formula_.Apply("nn.bias_add", {result, COLLAGE_TRY(node_.Input(3))}, {{"axis", 1}});
    return formula_.Done(result);
  }

 private:
  Status ReadShapes() {
    data_ = COLLAGE_TRY(node_.InputType(0)).shape;
    weight_ = COLLAGE_TRY(node_.InputType(1)).shape;
    const Shape offset = COLLAGE_TRY(node_.InputType(2)).shape;
    groups_ = COLLAGE_TRY(node_.Int("group", 1));
    offset_groups_ = COLLAGE_TRY(node_.Int("offset_group", 1));
    const size_t rank = data_.size();
    const auto misfit = [&] {
      return Fail("data " + ToString(data_) + ", weight " + ToString(weight_) + " and offset " + ToString(offset) + " do not fit " +
                  std::to_string(groups_) + " groups and " + std::to_string(offset_groups_) + " groups of offsets");
    };
    if (rank < 3 || weight_.size() != rank || offset.size() != rank || groups_ < 1 || offset_groups_ < 1) return misfit();
    if (groups_ > data_[1] || offset_groups_ > data_[1]) return misfit();
    if (weight_[1] * groups_ != data_[1] || weight_[0] % groups_ != 0 || data_[1] % offset_groups_ != 0) return misfit();
    window_ = COLLAGE_TRY(ReadWindow(node_, data_, Shape(weight_.begin() + 2, weight_.end())));
    steps_.assign(offset.begin() + 2, offset.end());
    taps_ = ElementCount(window_.kernel);
    count_ = ElementCount(steps_);
    dimensions_ = static_cast<int64_t>(rank) - 2;
    if (offset[0] != data_[0] || offset[1] != offset_groups_ * taps_ * dimensions_) return misfit();
    COLLAGE_TRY_STATUS(node_.folder().Reserve(8.0 * static_cast<double>(taps_ * count_ * dimensions_)));
    return {};
  }

  /// (batch, groups of offsets, channels of one, taps, steps).
  Result<Expr> Sampled() {
    // A grid goes from -1 to 1 over the edges of the data, and names the last dimension first. In float32 the way there and back would
    // move what lies on an element off it.
    Formula wide(node_, DType::kFloat64);
    const Expr given = wide.Cast(COLLAGE_TRY(node_.Input(2)), DType::kFloat64);
    const Expr offsets = wide.Reshape(given, {data_[0] * offset_groups_, taps_, dimensions_, count_});
    const Expr places = wide.Call("add", wide.Transpose(offsets, {0, 1, 3, 2}), MakeConstant(TapPlaces(window_, steps_)));
    const std::vector<double> extents(data_.begin() + 2, data_.end());
    const Expr extent = MakeConstant(Tensor::FromVector(TensorType{{dimensions_}, DType::kFloat64}, extents));
    const Expr twice = wide.Call("add", wide.Call("multiply", places, 2.0), 1.0);
    const Expr scaled = wide.Reverse(wide.Call("subtract", wide.Call("divide", twice, extent), 1.0), 3);
    Shape grid_shape(data_.size(), 1);
    grid_shape[0] = data_[0] * offset_groups_;
    grid_shape[data_.size() - 2] = taps_ * count_;
    grid_shape[data_.size() - 1] = dimensions_;
    const Expr grid = wide.Reshape(scaled, grid_shape);
    COLLAGE_TRY(wide.Done(grid));
    Shape plane = data_;
    plane[0] *= offset_groups_;
    plane[1] /= offset_groups_;
    const Expr samples = formula_.Apply("image.grid_sample", {formula_.Reshape(COLLAGE_TRY(node_.Input(0)), plane), grid});
    return formula_.Reshape(samples, {data_[0], offset_groups_, plane[1], taps_, count_});
  }

  NodeReader& node_;
  Formula formula_;
  Shape data_;
  Shape weight_;
  Shape steps_;
  Window window_;
  int64_t groups_ = 1;
  int64_t offset_groups_ = 1;
  int64_t taps_ = 1;
  int64_t count_ = 1;
  int64_t dimensions_ = 0;
};

Result<std::vector<Expr>> ReadDeformConv(NodeReader& node) {
  return DeformableConvolution(node, COLLAGE_TRY(node.InputType(0)).dtype).Read();
}

}  // namespace

OperatorFamily PatchFamily() {
  static constexpr ReadRow kRead[] = {{"DeformConv", ReadDeformConv},
                                      {"Col2Im", ReadCol2Im},
                                      {"CenterCropPad", ReadCenterCropPad},
                                      {"MaxUnpool", ReadMaxUnpool},
                                      {"GlobalLpPool", ReadGlobalLpPool}};
  static constexpr WriteRow kWrite[] = {{"nn.col2im", WriteCol2Im, 18}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
