#include <cmath>

#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<int64_t> BlockSize(const Attributes& attributes) {
  const int64_t block = IntAttribute(attributes, "block_size", 1);
  if (block < 1 || block > (int64_t{1} << 20)) return Fail("attribute 'block_size' is " + std::to_string(block) + ", expected at least 1");
  return block;
}

Status ExpectChoice(const Attributes& attributes, const char* name, const char* first, const char* second) {
  const std::string value = StringAttribute(attributes, name, first);
  if (value == first || value == second) return {};
  return Fail("attribute '" + std::string(name) + "' is \"" + value + "\", expected \"" + first + "\" or \"" + second + "\"");
}

Status ExpectNchw(const Attributes& attributes) { return ExpectChoice(attributes, "layout", "NCHW", "NCHW"); }

Result<TensorType> ImageArgument(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 4));
  COLLAGE_TRY_STATUS(ExpectNchw(attributes));
  return data;
}

Result<Type> DepthToSpaceType(TypeArguments arguments, const Attributes& attributes) {
  TensorType data = COLLAGE_TRY(ImageArgument(arguments, attributes));
  const int64_t block = COLLAGE_TRY(BlockSize(attributes));
  COLLAGE_TRY_STATUS(ExpectChoice(attributes, "mode", "DCR", "CRD"));
  if (data.shape[1] % (block * block) != 0) {
    return Fail("data has " + std::to_string(data.shape[1]) + " channels, expected a multiple of block_size squared, " +
                std::to_string(block * block));
  }
  data.shape[1] /= block * block;
  data.shape[2] *= block;
  data.shape[3] *= block;
  return Type(std::move(data));
}

Result<Type> SpaceToDepthType(TypeArguments arguments, const Attributes& attributes) {
  TensorType data = COLLAGE_TRY(ImageArgument(arguments, attributes));
  const int64_t block = COLLAGE_TRY(BlockSize(attributes));
  if (data.shape[2] % block != 0 || data.shape[3] % block != 0) {
    return Fail("data has shape " + ToString(data.shape) +
                ", expected a height and width that are multiples of block_size=" + std::to_string(block));
  }
  data.shape[1] *= block * block;
  data.shape[2] /= block;
  data.shape[3] /= block;
  return Type(std::move(data));
}

Result<Type> UpsamplingType(TypeArguments arguments, const Attributes& attributes) {
  TensorType data = COLLAGE_TRY(ImageArgument(arguments, attributes));
  COLLAGE_TRY_STATUS(ExpectChoice(attributes, "method", "nearest_neighbor", "bilinear"));
  if (StringAttribute(attributes, "method", "nearest_neighbor") == "bilinear") COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  for (size_t d = 0; d < 2; ++d) {
    const char* name = d == 0 ? "scale_h" : "scale_w";
    const double scale = DoubleAttribute(attributes, name, 1);
    if (!(scale > 0) || scale > 0x1p20)
      return Fail("attribute '" + std::string(name) + "' is " + ToString(AttributeValue(scale)) + ", expected a positive factor");
    const double extent = std::floor(static_cast<double>(data.shape[2 + d]) * scale);
    if (extent < 1) return Fail("attribute '" + std::string(name) + "' leaves nothing of data of shape " + ToString(data.shape));
    data.shape[2 + d] = static_cast<int64_t>(extent);
  }
  return Type(std::move(data));
}

OpDef Resize(std::string name, std::string summary, std::vector<AttributeSpec> attributes, OpDef::TypeRule infer_type,
             OpDef::ReferenceKernel reference) {
  attributes.push_back({"layout", "string", "only \"NCHW\""});
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .attributes = std::move(attributes),
          .kind = OpKind::kInjective,
          .is_within_arguments = true,
          .infer_type = std::move(infer_type),
          .work = WorkPerOutput(0),
          .reference = std::move(reference)};
}

}  // namespace

void AddResizeOperators(OpTable& table) {
  Register(table, Resize("nn.depth_to_space", "Moves channels of NCHW data into blocks of the plane.",
                         {{"block_size", "int", "height and width of a block", true},
                          {"mode", "string",
                           "order in which channels are split: \"DCR\" (block row, block column, channel) or \"CRD\" "
                           "(channel, block row, block column), default \"DCR\""}},
                         DepthToSpaceType, ReferenceDepthToSpace));
  Register(table, Resize("nn.space_to_depth", "Moves blocks of the plane of NCHW data into channels (block row, block column, channel).",
                         {{"block_size", "int", "height and width of a block", true}}, SpaceToDepthType, ReferenceSpaceToDepth));
  OpDef upsampling = Resize("nn.upsampling",
                            "Scales the plane of NCHW data, extents rounded down. Output row i lies at row i / scale_h of data, rounded "
                            "down for the nearest neighbour; with align_corners (bilinear only) the corners of both planes coincide.",
                            {{"scale_h", "float", "factor of the height, default 1"},
                             {"scale_w", "float", "factor of the width, default 1"},
                             {"method", "string", "\"nearest_neighbor\" or \"bilinear\", default \"nearest_neighbor\""},
                             {"align_corners", "bool", "the corner elements of both planes coincide, default False"}},
                            UpsamplingType, ReferenceUpsampling);
  upsampling.work = [](TypeArguments arguments, const Type& result, const Attributes& attributes) {
    const bool bilinear = StringAttribute(attributes, "method", "nearest_neighbor") == "bilinear";
    return WorkPerOutput(bilinear ? 7 : 0)(arguments, result, attributes);
  };
  Register(table, std::move(upsampling));
}

}  // namespace collage
