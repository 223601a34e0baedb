#include <algorithm>
#include <cmath>

#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

/// What an Upsample or Resize does, whichever opset it is written for.
struct Resizing {
  std::string mode;         ///< nearest, linear or cubic
  std::string coordinates;  ///< coordinate_transformation_mode
  std::string nearest;      ///< nearest_mode
  bool antialias = false;
  bool exclude_outside = false;
  double cubic_coefficient = -0.75;
  double extrapolation_value = 0;
  std::vector<double> scales;
  /// Scales that are given are float32, and stand for ratios that are not. Exporters count on what runtimes make of them in float32: 7
  /// times 11/7 is 11 there, and less in double. Those of given sizes are the ratios themselves.
  bool is_in_float32 = true;
  std::vector<double> roi;  ///< of tf_crop_and_resize: all beginnings, then all ends, relative to the extents
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
    const double extent = std::floor(static_cast<float>(shape[i]) * static_cast<float>(resizing.scales[i]));
    if (!(resizing.scales[i] > 0) || !(extent < 1e9)) return Fail("scale " + std::to_string(resizing.scales[i]) + " is wrong");
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

/// The policies not_larger and not_smaller take one scale for all axes that are resized: the smallest or the largest.
Status KeepAspectRatio(const NodeReader& node, const std::string& policy, const Shape& shape, Resizing& resizing) {
  if (policy != "not_larger" && policy != "not_smaller") {
    return Fail("attribute 'keep_aspect_ratio_policy' is '" + policy + "'; stretch, not_larger or not_smaller is right");
  }
  std::vector<int64_t> axes = COLLAGE_TRY(node.Ints("axes", {}));
  for (size_t i = 0; axes.size() < shape.size() && !node.HasAttribute("axes"); ++i) axes.push_back(static_cast<int64_t>(i));
  axes = COLLAGE_TRY(NormalizeAxes(std::move(axes), shape.size()));
  double scale = policy == "not_larger" ? 1e30 : 0;
  for (int64_t axis : axes) {
    const double wanted = resizing.scales[static_cast<size_t>(axis)];
    scale = policy == "not_larger" ? std::min(scale, wanted) : std::max(scale, wanted);
  }
  for (int64_t axis : axes) {
    const auto at = static_cast<size_t>(axis);
    resizing.scales[at] = scale;
    resizing.result[at] = static_cast<int64_t>(std::floor(scale * static_cast<double>(shape[at]) + 0.5));
  }
  return CheckExtents(resizing.result);
}

Status ReadSizes(const NodeReader& node, const Shape& shape, Resizing& resizing) {
  resizing.is_in_float32 = false;
  resizing.result = COLLAGE_TRY(SpreadOverAxes(node, COLLAGE_TRY(node.IntsInput(3, "sizes")), shape));
  if (resizing.result.size() != shape.size()) return Fail("input 3 (sizes) must have one value a dimension");
  COLLAGE_TRY_STATUS(CheckExtents(resizing.result));
  for (size_t i = 0; i < shape.size(); ++i) {
    if ((shape[i] == 0) != (resizing.result[i] == 0)) {
      return Fail("resizes dimension " + std::to_string(i) + " from " + std::to_string(shape[i]) + " to " +
                  std::to_string(resizing.result[i]) + " elements");
    }
    resizing.scales.push_back(shape[i] == 0 ? 1 : static_cast<double>(resizing.result[i]) / static_cast<double>(shape[i]));
  }
  const std::string policy = COLLAGE_TRY(node.String("keep_aspect_ratio_policy", "stretch"));
  return policy == "stretch" ? Status() : KeepAspectRatio(node, policy, shape, resizing);
}

/// The region of tf_crop_and_resize, which is the whole where it is not given.
Status ReadRegion(const NodeReader& node, size_t rank, Resizing& resizing) {
  resizing.roi.assign(2 * rank, 0);
  std::fill(resizing.roi.begin() + static_cast<std::ptrdiff_t>(rank), resizing.roi.end(), 1);
  if (resizing.coordinates != "tf_crop_and_resize" || !node.HasInput(1)) return {};
  const std::vector<double> given = COLLAGE_TRY(node.ConstantInput(1, "roi")).ToDouble();
  if (given.size() % 2 != 0) return Fail("input 1 (roi) must have a beginning and an end for each axis");
  const auto half = static_cast<std::ptrdiff_t>(given.size() / 2);
  for (bool end : {false, true}) {
    const std::vector<double> part(given.begin() + (end ? half : 0), given.begin() + (end ? 2 * half : half));
    const std::vector<double> all = COLLAGE_TRY(SpreadOverAxes(node, part, std::vector<double>(rank, end ? 1 : 0)));
    if (all.size() != rank) return Fail("input 1 (roi) must have a beginning and an end for each axis");
    std::copy(all.begin(), all.end(), resizing.roi.begin() + static_cast<std::ptrdiff_t>(end ? rank : 0));
  }
  return {};
}

/// Upsample takes scales as an attribute (7, 8) or input (9); Resize of opset 10 is the same with another name.
Result<Resizing> ReadResizing(const NodeReader& node, const Shape& shape) {
  Resizing resizing;
  resizing.mode = COLLAGE_TRY(node.String("mode", "nearest"));
  if (resizing.mode == "bilinear") resizing.mode = "linear";
  resizing.antialias = COLLAGE_TRY(node.Int("antialias", 0)) != 0;
  resizing.exclude_outside = COLLAGE_TRY(node.Int("exclude_outside", 0)) != 0;
  resizing.cubic_coefficient = COLLAGE_TRY(node.Float("cubic_coeff_a", -0.75F));
  resizing.extrapolation_value = COLLAGE_TRY(node.Float("extrapolation_value", 0));
  const bool is_old = node.op_type() == "Upsample" || node.opset() < 11;
  resizing.coordinates = is_old ? "asymmetric" : COLLAGE_TRY(node.String("coordinate_transformation_mode", "half_pixel"));
  resizing.nearest = is_old ? "floor" : COLLAGE_TRY(node.String("nearest_mode", "round_prefer_floor"));
  COLLAGE_TRY_STATUS(ReadRegion(node, shape.size(), resizing));
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

/// The place in the data, fractional, of element `index` of the result along one dimension (ONNX, Resize), in arithmetic of type T.
template <class T>
Result<double> CoordinateIn(const Resizing& resizing, size_t axis, int64_t extent, int64_t index) {
  const T x = static_cast<T>(index);
  const T half = 0.5;
  const T scale = static_cast<T>(resizing.scales[axis]);
  const T last = static_cast<T>(extent - 1);
  const T length = scale * static_cast<T>(extent);  // of the result, before it is rounded down
  if (resizing.coordinates == "asymmetric") return x / scale;
  if (resizing.coordinates == "align_corners") return length == 1 ? 0 : x * last / (length - 1);
  if (resizing.coordinates == "tf_crop_and_resize") {
    const T begin = static_cast<T>(resizing.roi[axis]);
    const T end = static_cast<T>(resizing.roi[axis + resizing.scales.size()]);
    if (length <= 1) return (begin + end) * last / 2;
    return begin * last + x * (end - begin) * last / (length - 1);
  }
  if (resizing.coordinates == "pytorch_half_pixel" && length <= 1) return 0;
  if (resizing.coordinates == "tf_half_pixel_for_nn") return (x + half) / scale;
  const T half_pixel = (x + half) / scale - half;
  if (resizing.coordinates == "half_pixel" || resizing.coordinates == "pytorch_half_pixel") return half_pixel;
  if (resizing.coordinates == "half_pixel_symmetric") {
    const T adjustment = static_cast<T>(resizing.result[axis]) / length;
    return half_pixel + static_cast<T>(extent) / 2 * (1 - adjustment);
  }
  return Fail("attribute 'coordinate_transformation_mode' is '" + resizing.coordinates + "', which is not supported");
}

Result<double> CoordinateOf(const Resizing& resizing, size_t axis, int64_t extent, int64_t index) {
  return resizing.is_in_float32 ? CoordinateIn<float>(resizing, axis, extent, index) : CoordinateIn<double>(resizing, axis, extent, index);
}

Result<double> SourceCoordinate(const Resizing& resizing, size_t axis, int64_t extent, int64_t index) {
  const double x = COLLAGE_TRY(CoordinateOf(resizing, axis, extent, index));
  if (std::abs(x) < 1e12) return x;  // also false for NaN
  return Fail("takes element " + std::to_string(index) + " of dimension " + std::to_string(axis) + " from the place " + std::to_string(x));
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
  COLLAGE_TRY_STATUS(CheckExtents(resizing.result));
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(resizing.result[axis]) * sizeof(int64_t)));
  for (int64_t i = 0; i < resizing.result[axis]; ++i) {
    const double x = COLLAGE_TRY(SourceCoordinate(resizing, axis, extent, i));
    indices.push_back(std::clamp<int64_t>(COLLAGE_TRY(NearestElement(resizing.nearest, x)), 0, extent - 1));
  }
  const TensorType type{{static_cast<int64_t>(indices.size())}, DType::kInt64};
  return node.Call("take", {data, MakeConstant(Tensor::FromVector(type, indices))},
                   {{"axis", static_cast<int64_t>(axis)}, {"mode", "clip"}});
}

/// How much an element at a distance counts: a triangle, or the cubic convolution of Keys (1981).
double Influence(const Resizing& resizing, double distance) {
  const double t = std::abs(distance);
  if (resizing.mode == "linear") return std::max(1 - t, 0.0);
  const double a = resizing.cubic_coefficient;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((t - 5) * t + 8) * t * a - 4 * a : 0;
}

/// Adds the weights of the elements around x to a row. Elements beyond the ends are the end itself, or do not count.
void AddWeights(const Resizing& resizing, double scale, double x, std::vector<double>& row) {
  const double shrink = resizing.antialias ? std::min(scale, 1.0) : 1.0;  // antialiasing widens the window
  const double reach = (resizing.mode == "linear" ? 1 : 2) / shrink;
  const auto last = static_cast<int64_t>(row.size()) - 1;
  double sum = 0;
  for (auto i = static_cast<int64_t>(std::ceil(x - reach)); i <= static_cast<int64_t>(std::floor(x + reach)); ++i) {
    if (resizing.exclude_outside && (i < 0 || i > last)) continue;
    const double weight = Influence(resizing, (static_cast<double>(i) - x) * shrink);
    row[static_cast<size_t>(std::clamp<int64_t>(i, 0, last))] += weight;
    sum += weight;
  }
  for (double& weight : row) weight /= sum;
}

/// Interpolation along one dimension is a product with a constant matrix (result extent, extent).
Result<Expr> InterpolationMatrix(NodeReader& node, const Resizing& resizing, size_t axis, int64_t extent, DType dtype) {
  const TensorType type{{resizing.result[axis], extent}, DType::kFloat64};
  COLLAGE_TRY_STATUS(CheckExtents(type.shape));
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor matrix(type);
  std::vector<double> row(static_cast<size_t>(extent));
  for (int64_t i = 0; i < resizing.result[axis]; ++i) {
    std::fill(row.begin(), row.end(), 0);
    AddWeights(resizing, resizing.scales[axis], COLLAGE_TRY(SourceCoordinate(resizing, axis, extent, i)), row);
    std::copy(row.begin(), row.end(), matrix.MutableData<double>() + i * extent);
  }
  Formula formula(node, dtype);
  return COLLAGE_TRY(formula.Done(formula.Cast(MakeConstant(std::move(matrix)), dtype)))[0];
}

/// The product with the matrix along one axis, which a transposition brings to the end where it is not one of the last two.
Expr InterpolateAxis(Formula& formula, const Expr& data, const Expr& matrix, size_t axis) {
  const size_t rank = Formula::ShapeOf(data).size();
  if (axis + 1 == rank) return formula.Apply("nn.matmul", {data, matrix}, {{"transpose_b", true}});
  if (axis + 2 == rank) return formula.Apply("nn.matmul", {matrix, data});
  std::vector<int64_t> swap;
  for (size_t i = 0; i < rank; ++i) swap.push_back(static_cast<int64_t>(i));
  std::swap(swap[axis], swap[rank - 1]);
  const Expr product = formula.Apply("nn.matmul", {formula.Transpose(data, swap), matrix}, {{"transpose_b", true}});
  return formula.Transpose(product, swap);
}

/// Where a dimension is resized or cropped.
bool Changes(const Resizing& resizing, const Shape& shape, size_t axis) {
  return resizing.result[axis] != shape[axis] || resizing.coordinates == "tf_crop_and_resize";
}

Result<Expr> Interpolate(NodeReader& node, const Expr& data, const Resizing& resizing) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const DType dtype = type.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Formula formula(node, dtype);
  Expr result = formula.Cast(data, dtype);
  if (type.shape.size() == 1) result = formula.Reshape(result, {1, type.shape[0]});
  const size_t added = type.shape.size() == 1 ? 1 : 0;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (!Changes(resizing, type.shape, axis)) continue;
    const Expr matrix = COLLAGE_TRY(InterpolationMatrix(node, resizing, axis, type.shape[axis], dtype));
    result = InterpolateAxis(formula, result, matrix, axis + added);
  }
  return COLLAGE_TRY(formula.Done(formula.Cast(formula.Reshape(result, resizing.result), type.dtype)))[0];
}

/// tf_crop_and_resize: what lies outside of the data becomes a value.
Result<Expr> Extrapolate(NodeReader& node, const Expr& result, const Shape& shape, const Resizing& resizing) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(result));
  Formula formula(node, type.dtype);
  Expr outcome = result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    Shape along(shape.size(), 1);
    along[axis] = resizing.result[axis];
    Tensor inside(TensorType{along, DType::kBool});
    for (int64_t i = 0; i < resizing.result[axis]; ++i) {
      const double x = COLLAGE_TRY(SourceCoordinate(resizing, axis, shape[axis], i));
      inside.MutableData<bool>()[i] = x >= 0 && x <= static_cast<double>(shape[axis] - 1);
    }
    outcome = formula.Call("where", MakeConstant(std::move(inside)), outcome, resizing.extrapolation_value);
  }
  return COLLAGE_TRY(formula.Done(outcome))[0];
}

/// Scaling of NCHW planes that nn.upsampling can do: by whole numbers to the nearest neighbour (where every rule of rounding
/// agrees: repetition), or linear from the corner or corner to corner.
bool IsUpsampling(const Resizing& resizing, const Shape& shape) {
  if (shape.size() != 4 || resizing.scales[0] != 1 || resizing.scales[1] != 1 || resizing.mode == "cubic") return false;
  const bool whole = resizing.scales[2] == std::floor(resizing.scales[2]) && resizing.scales[3] == std::floor(resizing.scales[3]);
  if (!whole) return false;
  if (resizing.mode == "linear") return resizing.coordinates == "asymmetric" || resizing.coordinates == "align_corners";
  if (resizing.coordinates == "asymmetric") return resizing.nearest == "floor";
  return (resizing.coordinates == "half_pixel" || resizing.coordinates == "pytorch_half_pixel") &&
         resizing.nearest.starts_with("round_prefer") && resizing.result[2] > 1 && resizing.result[3] > 1;
}

Result<Expr> TakeNearestOfAll(NodeReader& node, Expr data, const Resizing& resizing) {
  const Shape shape = COLLAGE_TRY(TensorTypeOf(data)).shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (Changes(resizing, shape, axis)) data = COLLAGE_TRY(TakeNearest(node, data, resizing, axis));
  }
  return data;
}

Result<std::vector<Expr>> ReadResize(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Resizing resizing = COLLAGE_TRY(ReadResizing(node, type.shape));
  if (resizing.mode != "nearest" && resizing.mode != "linear" && resizing.mode != "cubic") {
    return Fail("attribute 'mode' is '" + resizing.mode + "'; nearest, linear or cubic is right");
  }
  const bool crops = resizing.coordinates == "tf_crop_and_resize";
  if (resizing.result == type.shape && !crops) return std::vector<Expr>{data};
  if (ElementCount(resizing.result) == 0) return std::vector<Expr>{MakeConstant(Tensor(TensorType{resizing.result, type.dtype}))};
  if (IsUpsampling(resizing, type.shape)) {
    const bool linear = resizing.mode == "linear";
    return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.upsampling", {data},
                                                   {{"scale_h", resizing.scales[2]},
                                                    {"scale_w", resizing.scales[3]},
                                                    {"method", linear ? "bilinear" : "nearest_neighbor"},
                                                    {"align_corners", linear && resizing.coordinates == "align_corners"}}))};
  }
  const Expr result = COLLAGE_TRY(resizing.mode == "nearest" ? TakeNearestOfAll(node, data, resizing) : Interpolate(node, data, resizing));
  return std::vector<Expr>{crops ? COLLAGE_TRY(Extrapolate(node, result, type.shape, resizing)) : result};
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

}  // namespace

OperatorFamily ResizingFamily() {
  static constexpr ReadRow kRead[] = {{"Upsample", ReadResize}, {"Resize", ReadResize}};
  static constexpr WriteRow kWrite[] = {{"nn.upsampling", WriteUpsampling}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
