#include <algorithm>
#include <cmath>

#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/window.h"

namespace collage::onnx_io {
namespace {

/// Blocks laid over each other and added up where they overlap. For each tap of the window one place in the image for each block;
/// which is known, so it is an addition at constant indices. What lies in the padding goes to an element that is dropped.
Result<std::vector<Expr>> ReadCol2Im(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Shape image = COLLAGE_TRY(node.IntsInput(1, "image_shape"));
  const std::vector<int64_t> block = COLLAGE_TRY(node.IntsInput(2, "block_shape"));
  COLLAGE_TRY_STATUS(CheckExtents(image));
  COLLAGE_TRY_STATUS(CheckExtents(block));
  Shape window_data{1, 1};
  window_data.insert(window_data.end(), image.begin(), image.end());
  const Window window = COLLAGE_TRY(ReadWindow(node, window_data, block));
  const int64_t taps = ElementCount(block);
  Shape steps;
  for (size_t d = 0; d < image.size(); ++d) {
    const int64_t room = image[d] + window.padding[d] + window.padding[d + image.size()] - (block[d] - 1) * window.dilations[d] - 1;
    if (room < 0) return Fail("blocks of " + ToString(block) + " do not fit an image of " + ToString(image));
    steps.push_back(room / window.strides[d] + 1);
  }
  const int64_t blocks = ElementCount(steps);
  if (taps < 1 || type.shape.size() != 3 || type.shape[1] % taps != 0 || type.shape[2] != blocks) {
    return Fail("data " + ToString(type.shape) + " is not (batch, channels * " + std::to_string(taps) + ", " + std::to_string(blocks) +
                ")");
  }
  const int64_t elements = ElementCount(image);
  COLLAGE_TRY_STATUS(node.folder().Reserve(8.0 * static_cast<double>(taps * blocks)));
  std::vector<int64_t> places;
  const std::vector<int64_t> block_strides = RowMajorStrides(block);
  const std::vector<int64_t> step_strides = RowMajorStrides(steps);
  for (int64_t i = 0; i < taps * blocks; ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < image.size(); ++d) {
      const int64_t tap = i / blocks / block_strides[d] % block[d];
      const int64_t step = i % blocks / step_strides[d] % steps[d];
      const int64_t x = step * window.strides[d] + tap * window.dilations[d] - window.padding[d];
      if (x < 0 || x >= image[d] || place < 0) {
        place = -1;
      } else {
        place = place * image[d] + x;
      }
    }
    places.push_back(place < 0 ? elements : place);
  }
  const int64_t channels = type.shape[1] / taps;
  const int64_t planes = type.shape[0] * channels;
  Formula formula(node, type.dtype);
  const Expr updates = formula.Transpose(formula.Reshape(data, {planes, taps * blocks}), {1, 0});
  const Expr indices = MakeConstant(Tensor::FromVector(TensorType{{1, taps * blocks}, DType::kInt64}, places));
  const Expr empty = formula.Zeros({elements + 1, planes}, type.dtype);
  const Expr sums = formula.Slice(formula.Apply("scatter_nd", {empty, indices, updates}, {{"mode", "add"}}), 0, 0, elements);
  Shape result{type.shape[0], channels};
  result.insert(result.end(), image.begin(), image.end());
  return formula.Done(formula.Reshape(formula.Transpose(sums, {1, 0}), result));
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

constexpr ReadRow kRead[] = {
    {"Col2Im", ReadCol2Im}, {"CenterCropPad", ReadCenterCropPad}, {"MaxUnpool", ReadMaxUnpool}, {"GlobalLpPool", ReadGlobalLpPool}};

}  // namespace

OperatorFamily PatchFamily() { return {kRead, {}}; }

}  // namespace collage::onnx_io
