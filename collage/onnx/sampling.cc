#include "collage/onnx/data_type.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

/// Modes are called linear and cubic from opset 20 on.
Result<std::vector<Expr>> ReadGridSample(NodeReader& node) {
  std::string mode = COLLAGE_TRY(node.String("mode", "bilinear"));
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  const std::string padding = COLLAGE_TRY(node.String("padding_mode", "zeros"));
  const bool corners = COLLAGE_TRY(node.Int("align_corners", 0)) != 0;
  return std::vector<Expr>{COLLAGE_TRY(node.Call("image.grid_sample", COLLAGE_TRY(node.Inputs()),
                                                 {{"method", mode}, {"padding_mode", padding}, {"align_corners", corners}}))};
}

/// half_pixel came with opset 16 and is the default since.
Result<std::vector<Expr>> ReadRoiAlign(NodeReader& node) {
  const std::string transformation =
      COLLAGE_TRY(node.String("coordinate_transformation_mode", node.opset() < 16 ? "output_half_pixel" : "half_pixel"));
  if (transformation != "half_pixel" && transformation != "output_half_pixel") {
    return Fail("attribute 'coordinate_transformation_mode' is '" + transformation + "'; half_pixel or output_half_pixel is right");
  }
  const std::vector<int64_t> size{COLLAGE_TRY(node.Int("output_height", 1)), COLLAGE_TRY(node.Int("output_width", 1))};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("vision.roi_align", COLLAGE_TRY(node.Inputs()),
                                                 {{"pooled_size", size},
                                                  {"spatial_scale", static_cast<double>(COLLAGE_TRY(node.Float("spatial_scale", 1)))},
                                                  {"sample_ratio", COLLAGE_TRY(node.Int("sampling_ratio", 0))},
                                                  {"mode", COLLAGE_TRY(node.String("mode", "avg"))},
                                                  {"aligned", transformation == "half_pixel"}}))};
}

/// Places from -1 to 1 along a dimension: those of the end elements, or of their edges.
std::vector<double> Places(int64_t extent, bool corners) {
  std::vector<double> places;
  for (int64_t i = 0; i < extent; ++i) {
    const auto x = static_cast<double>(i);
    const auto length = static_cast<double>(extent);
    places.push_back(corners ? (extent == 1 ? 0 : 2 * x / (length - 1) - 1) : (2 * x + 1) / length - 1);
  }
  return places;
}

/// theta (N, k, k + 1) times the places of an image of a given size, (N, spatial.., k).
Result<std::vector<Expr>> ReadAffineGrid(NodeReader& node) {
  const Expr theta = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(theta));
  const Shape size = COLLAGE_TRY(node.IntsInput(1, "size"));
  const bool corners = COLLAGE_TRY(node.Int("align_corners", 0)) != 0;
  const auto dimensions = static_cast<int64_t>(size.size()) - 2;
  if (dimensions < 1 || type.shape != Shape{size[0], dimensions, dimensions + 1}) {
    return Fail("theta " + ToString(type.shape) + " does not fit the size " + ToString(size));
  }
  COLLAGE_TRY_STATUS(CheckExtents(size));
  const Shape spatial(size.begin() + 2, size.end());
  const int64_t points = ElementCount(spatial);
  COLLAGE_TRY_STATUS(node.folder().Reserve(8.0 * static_cast<double>(points * (dimensions + 1))));
  std::vector<std::vector<double>> places;
  for (int64_t extent : spatial) places.push_back(Places(extent, corners));
  std::vector<double> homogeneous;
  const std::vector<int64_t> strides = RowMajorStrides(spatial);
  for (int64_t point = 0; point < points; ++point) {
    for (size_t d = spatial.size(); d-- > 0;) homogeneous.push_back(places[d][static_cast<size_t>(point / strides[d] % spatial[d])]);
    homogeneous.push_back(1);
  }
  Formula formula(node, type.dtype);
  const Expr matrix =
      formula.Cast(MakeConstant(Tensor::FromVector(TensorType{{points, dimensions + 1}, DType::kFloat64}, homogeneous)), type.dtype);
  Shape result{size[0]};
  result.insert(result.end(), spatial.begin(), spatial.end());
  result.push_back(dimensions);
  return formula.Done(formula.Reshape(formula.Apply("nn.matmul", {matrix, theta}, {{"transpose_b", true}}), result));
}

/// Since opset 20 names are of any number of dimensions.
std::string GridSampleMode(const std::string& method, int64_t opset) {
  constexpr int64_t kOpsetOfAnyRank = 20;
  if (opset < kOpsetOfAnyRank || method == "nearest") return method;
  return method == "bilinear" ? "linear" : "cubic";
}

Status WriteGridSample(NodeWriter& writer) {
  if (writer.InputType(0).shape.size() != 4)
    return Fail("of other than two dimensions has no form in opset " + std::to_string(kWrittenOpset));
  const Attributes& attributes = writer.attributes();
  std::vector<std::string> inputs = writer.Inputs();
  const DType dtype = writer.InputType(0).dtype;
  // Runtimes have it for one type of data and grid alone.
  if (writer.InputType(1).dtype != dtype) inputs[1] = writer.EmitIntermediate("Cast", {inputs[1]}, {{"to", OnnxDataType(dtype)}});
  writer.Emit("GridSample", inputs,
              {{"mode", GridSampleMode(COLLAGE_TRY(attributes.String("method", "bilinear")), writer.opset())},
               {"padding_mode", COLLAGE_TRY(attributes.String("padding_mode", "zeros"))},
               {"align_corners", int64_t{COLLAGE_TRY(attributes.Bool("align_corners", false))}}});
  return {};
}

Status WriteRoiAlign(NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  const std::vector<int64_t> size = COLLAGE_TRY(attributes.Ints("pooled_size", {1, 1}));
  writer.Emit("RoiAlign", writer.Inputs(),
              {{"output_height", size[0]},
               {"output_width", size[1]},
               {"spatial_scale", static_cast<float>(COLLAGE_TRY(attributes.Double("spatial_scale", 1)))},
               {"sampling_ratio", COLLAGE_TRY(attributes.Int("sample_ratio", 0))},
               {"mode", COLLAGE_TRY(attributes.String("mode", "avg"))},
               {"coordinate_transformation_mode",
                std::string(COLLAGE_TRY(attributes.Bool("aligned", false)) ? "half_pixel" : "output_half_pixel")}});
  return {};
}

Result<std::vector<Expr>> ReadMaxRoiPool(NodeReader& node) {
  return std::vector<Expr>{COLLAGE_TRY(node.Call("vision.roi_pool", COLLAGE_TRY(node.Inputs()),
                                                 {{"pooled_size", COLLAGE_TRY(node.Ints("pooled_shape", {}))},
                                                  {"spatial_scale", static_cast<double>(COLLAGE_TRY(node.Float("spatial_scale", 1)))}}))};
}

Status WriteMaxRoiPool(NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  writer.Emit("MaxRoiPool", writer.Inputs(),
              {{"pooled_shape", COLLAGE_TRY(attributes.Ints("pooled_size", {1, 1}))},
               {"spatial_scale", static_cast<float>(COLLAGE_TRY(attributes.Double("spatial_scale", 1)))}});
  return {};
}

}  // namespace

OperatorFamily SamplingFamily() {
  static constexpr ReadRow kRead[] = {{"GridSample", ReadGridSample},
                                      {"RoiAlign", ReadRoiAlign},
                                      {"MaxRoiPool", ReadMaxRoiPool},
                                      {"AffineGrid", ReadAffineGrid},
                                      {"Det", ReadDirect<"linalg.det">}};
  static constexpr WriteRow kWrite[] = {{"image.grid_sample", WriteGridSample},
                                        {"vision.roi_align", WriteRoiAlign},
                                        {"vision.roi_pool", WriteMaxRoiPool},
                                        {"linalg.det", WriteDirect<"Det">}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
