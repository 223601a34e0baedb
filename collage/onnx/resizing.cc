#include <algorithm>
#include <cmath>

#include "collage/onnx/direct.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

/// What an Upsample or Resize does, whichever opset it is written for.
struct Resizing {
  std::string mode;         ///< nearest or linear
  std::string coordinates;  ///< coordinate_transformation_mode
  std::string nearest;      ///< nearest_mode
  std::vector<double> scales;
  Shape result;
};

Result<std::vector<double>> ScalesFromInput(const NodeReader& node, size_t index) {
  return COLLAGE_TRY(node.ConstantInput(index, "scales")).ToDouble();
}

Status ResolveExtents(const Shape& shape, Resizing& resizing) {
  if (resizing.scales.size() != shape.size()) {
    return Fail("has " + std::to_string(resizing.scales.size()) + " scales for data of shape " + ToString(shape));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const double extent = std::floor(static_cast<double>(shape[i]) * resizing.scales[i]);
    if (!(resizing.scales[i] > 0) || !(extent >= 1 && extent < 1e9))
      return Fail("scale " + std::to_string(resizing.scales[i]) + " is wrong");
    resizing.result.push_back(static_cast<int64_t>(extent));
  }
  return {};
}

/// Scales or sizes of the axes that the attribute axes (opset 18) names, spread over all dimensions.
template <class T>
Result<std::vector<T>> SpreadOverAxes(const NodeReader& node, const std::vector<T>& values, std::vector<T> all) {
  std::vector<int64_t> axes = COLLAGE_TRY(node.Ints("axes", {}));
  if (axes.empty()) return values;
  if (axes.size() != values.size()) return Fail("attribute 'axes' has another length than scales or sizes");
  for (size_t i = 0; i < axes.size(); ++i) {
    all[static_cast<size_t>(COLLAGE_TRY(NormalizeAxis(axes[i], all.size())))] = values[i];
  }
  return all;
}

Status ReadSizes(const NodeReader& node, const Shape& shape, Resizing& resizing) {
  if (COLLAGE_TRY(node.String("keep_aspect_ratio_policy", "stretch")) != "stretch") {
    return Fail("attribute 'keep_aspect_ratio_policy' must be stretch");
  }
  resizing.result = COLLAGE_TRY(SpreadOverAxes(node, COLLAGE_TRY(node.IntsInput(3, "sizes")), shape));
  if (resizing.result.size() != shape.size()) return Fail("input 3 (sizes) must have one value a dimension");
  COLLAGE_TRY_STATUS(CheckExtents(resizing.result));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 1 || resizing.result[i] < 1) return Fail("resizes an empty tensor");
    resizing.scales.push_back(static_cast<double>(resizing.result[i]) / static_cast<double>(shape[i]));
  }
  return {};
}

/// Upsample takes scales as an attribute (7, 8) or input (9); Resize of opset 10 is the same with another name.
Result<Resizing> ReadResizing(const NodeReader& node, const Shape& shape) {
  Resizing resizing;
  resizing.mode = COLLAGE_TRY(node.String("mode", "nearest"));
  if (resizing.mode == "bilinear") resizing.mode = "linear";
  const bool is_old = node.op_type() == "Upsample" || node.opset() < 11;
  resizing.coordinates = is_old ? "asymmetric" : COLLAGE_TRY(node.String("coordinate_transformation_mode", "half_pixel"));
  resizing.nearest = is_old ? "floor" : COLLAGE_TRY(node.String("nearest_mode", "round_prefer_floor"));
  if (node.HasAttribute("scales")) {
    const std::vector<float> scales = COLLAGE_TRY(node.Floats("scales", {}));
    resizing.scales.assign(scales.begin(), scales.end());
  } else if (!is_old && node.HasInput(3)) {
    COLLAGE_TRY_STATUS(ReadSizes(node, shape, resizing));
    return resizing;
  } else {
    const std::vector<double> scales = COLLAGE_TRY(ScalesFromInput(node, is_old ? 1 : 2));
    resizing.scales = COLLAGE_TRY(SpreadOverAxes(node, scales, std::vector<double>(shape.size(), 1)));
  }
  COLLAGE_TRY_STATUS(ResolveExtents(shape, resizing));
  return resizing;
}

/// The place in the data, fractional, of element `index` of the result along one dimension (ONNX, Resize).
Result<double> SourceCoordinate(const Resizing& resizing, size_t axis, int64_t extent, int64_t index) {
  const double x = static_cast<double>(index);
  const double scale = resizing.scales[axis];
  const double length = static_cast<double>(resizing.result[axis]);
  if (resizing.coordinates == "asymmetric") return x / scale;
  if (resizing.coordinates == "align_corners") return length == 1 ? 0 : x * static_cast<double>(extent - 1) / (length - 1);
  if (resizing.coordinates == "pytorch_half_pixel" && length <= 1) return 0;
  if (resizing.coordinates == "half_pixel" || resizing.coordinates == "pytorch_half_pixel") return (x + 0.5) / scale - 0.5;
  return Fail("attribute 'coordinate_transformation_mode' is '" + resizing.coordinates + "', which is not supported");
}

Result<int64_t> NearestElement(const std::string& mode, double x) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return Fail("attribute 'nearest_mode' is '" + mode + "', which is not supported");
}

Result<Expr> TakeNearest(NodeReader& node, const Expr& data, const Resizing& resizing, size_t axis) {
  const int64_t extent = COLLAGE_TRY(TensorTypeOf(data)).shape[axis];
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < resizing.result[axis]; ++i) {
    const double x = COLLAGE_TRY(SourceCoordinate(resizing, axis, extent, i));
    indices.push_back(std::clamp<int64_t>(COLLAGE_TRY(NearestElement(resizing.nearest, x)), 0, extent - 1));
  }
  const TensorType type{{static_cast<int64_t>(indices.size())}, DType::kInt64};
  return node.Call("take", {data, MakeConstant(Tensor::FromVector(type, indices))},
                   {{"axis", static_cast<int64_t>(axis)}, {"mode", "clip"}});
}

/// Linear interpolation along one dimension is a product with a constant matrix (result extent, extent) of two weights a row.
Result<Expr> InterpolationMatrix(NodeReader& node, const Resizing& resizing, size_t axis, int64_t extent) {
  const TensorType type{{resizing.result[axis], extent}, DType::kFloat32};
  COLLAGE_TRY_STATUS(CheckExtents(type.shape));
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor matrix(type);
  float* row = matrix.MutableData<float>();
  for (int64_t i = 0; i < resizing.result[axis]; ++i, row += extent) {
    const double x = std::clamp(COLLAGE_TRY(SourceCoordinate(resizing, axis, extent, i)), 0.0, static_cast<double>(extent - 1));
    const int64_t low = static_cast<int64_t>(x);
    const double weight = x - static_cast<double>(low);
    row[low] += static_cast<float>(1 - weight);
    if (weight > 0) row[low + 1] += static_cast<float>(weight);
  }
  return MakeConstant(std::move(matrix));
}

Result<Expr> InterpolatePlane(NodeReader& node, Expr data, const Resizing& resizing) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const size_t rank = type.shape.size();
  if (type.dtype != DType::kFloat32) return Fail("interpolates float32 only, not " + std::string(Name(type.dtype)));
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (resizing.result[i] != type.shape[i]) return Fail("interpolates along the last two dimensions only");
  }
  if (resizing.result[rank - 2] != type.shape[rank - 2]) {
    const Expr matrix = COLLAGE_TRY(InterpolationMatrix(node, resizing, rank - 2, type.shape[rank - 2]));
    data = COLLAGE_TRY(node.Call("nn.matmul", {matrix, data}));
  }
  if (resizing.result[rank - 1] != type.shape[rank - 1]) {
    const Expr matrix = COLLAGE_TRY(InterpolationMatrix(node, resizing, rank - 1, type.shape[rank - 1]));
    data = COLLAGE_TRY(node.Call("nn.matmul", {data, matrix}, {{"transpose_b", true}}));
  }
  return data;
}

/// Scaling of NCHW planes that nn.upsampling can do: by whole numbers to the nearest neighbour (where every rule of rounding
/// agrees: repetition), or linear from the corner or corner to corner.
bool IsUpsampling(const Resizing& resizing, const Shape& shape) {
  if (shape.size() != 4 || resizing.scales[0] != 1 || resizing.scales[1] != 1) return false;
  const bool whole = resizing.scales[2] == std::floor(resizing.scales[2]) && resizing.scales[3] == std::floor(resizing.scales[3]);
  if (!whole) return false;
  if (resizing.mode == "linear") return resizing.coordinates == "asymmetric" || resizing.coordinates == "align_corners";
  if (resizing.coordinates == "asymmetric") return resizing.nearest == "floor";
  return (resizing.coordinates == "half_pixel" || resizing.coordinates == "pytorch_half_pixel") &&
         resizing.nearest.starts_with("round_prefer") && resizing.result[2] > 1 && resizing.result[3] > 1;
}

Result<std::vector<Expr>> ReadResize(NodeReader& node) {
  Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Resizing resizing = COLLAGE_TRY(ReadResizing(node, type.shape));
  if (resizing.mode != "nearest" && resizing.mode != "linear") {
    return Fail("attribute 'mode' is '" + resizing.mode + "'; nearest and linear are supported");
  }
  if (COLLAGE_TRY(node.Int("antialias", 0)) != 0) return Fail("attribute 'antialias' must be 0");
  if (resizing.result == type.shape) return std::vector<Expr>{data};
  if (IsUpsampling(resizing, type.shape)) {
    const bool linear = resizing.mode == "linear";
    return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.upsampling", {data},
                                                   {{"scale_h", resizing.scales[2]},
                                                    {"scale_w", resizing.scales[3]},
                                                    {"method", linear ? "bilinear" : "nearest_neighbor"},
                                                    {"align_corners", linear && resizing.coordinates == "align_corners"}}))};
  }
  if (resizing.mode == "linear" && type.shape.size() >= 2) return std::vector<Expr>{COLLAGE_TRY(InterpolatePlane(node, data, resizing))};
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (resizing.result[axis] != type.shape[axis]) data = COLLAGE_TRY(TakeNearest(node, data, resizing, axis));
  }
  return std::vector<Expr>{data};
}

Status WriteUpsampling(NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  const float height = static_cast<float>(COLLAGE_TRY(attributes.Double("scale_h", 1)));
  const float width = static_cast<float>(COLLAGE_TRY(attributes.Double("scale_w", 1)));
  const bool linear = COLLAGE_TRY(attributes.String("method", "nearest_neighbor")) == "bilinear";
  const bool corners = linear && COLLAGE_TRY(attributes.Bool("align_corners", false));
  const std::string scales =
      writer.Initializer(Tensor::FromVector(TensorType{{4}, DType::kFloat32}, std::vector<float>{1, 1, height, width}));
  writer.Emit("Resize", {writer.Input(0), "", scales},
              {{"mode", linear ? "linear" : "nearest"},
               {"coordinate_transformation_mode", corners ? "align_corners" : "asymmetric"},
               {"nearest_mode", "floor"}});
  return {};
}

constexpr ReadRow kRead[] = {{"Upsample", ReadResize}, {"Resize", ReadResize}};
constexpr WriteRow kWrite[] = {{"nn.upsampling", WriteUpsampling}};

}  // namespace

OperatorFamily ResizingFamily() { return {kRead, kWrite}; }

}  // namespace collage::onnx_io
