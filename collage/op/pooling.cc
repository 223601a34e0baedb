#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

Result<Type> PoolingType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const Pooling pooling = COLLAGE_TRY(ReadPooling(data, attributes));
  return Type(TensorType{{pooling.batch, pooling.channels, pooling.output[0], pooling.output[1]}, data.dtype});
}

Result<Type> MaxPoolingType(TypeArguments arguments, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectNumber(COLLAGE_TRY(TensorArgument(arguments, 0, "data")), "data"));
  return PoolingType(arguments, attributes);
}

Result<Type> AveragePoolingType(TypeArguments arguments, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectFloat(COLLAGE_TRY(TensorArgument(arguments, 0, "data")), "data"));
  return PoolingType(arguments, attributes);
}

Result<Type> GlobalPoolingType(TypeArguments arguments, const Attributes&) {
  TensorType type = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectRank(type, "data", 4));
  COLLAGE_TRY_STATUS(ExpectFloat(type, "data"));
  if (type.shape[2] < 1 || type.shape[3] < 1)
    return Fail("data has shape " + ToString(type.shape) + ", expected a height and width of at least 1");
  type.shape[2] = type.shape[3] = 1;
  return Type(std::move(type));
}

Work PoolingWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const std::vector<int64_t> window = IntsAttribute(attributes, "pool_size", {1, 1});
  const double taps = static_cast<double>(window.front()) * static_cast<double>(window.back());
  return {taps * ElementCount(result), ByteCount(arguments[0]) + ByteCount(result)};
}

Work GlobalPoolingWork(TypeArguments arguments, const Type& result, const Attributes&) {
  return {ElementCount(arguments[0]), ByteCount(arguments[0]) + ByteCount(result)};
}

const std::vector<AttributeSpec> kPoolingAttributes = {
    {"pool_size", "ints", "height and width of the window", true},
    {"strides", "ints", "steps of the window down and across, default [1, 1]"},
    {"dilation", "ints", "distance of the taps of the window, default [1, 1]"},
    {"padding", "ints", "top, left, bottom, right (2 values: both vertical, both horizontal; 1: all), default 0"},
    {"layout", "string", "only \"NCHW\""},
    {"ceil_mode", "bool", "the last window may reach beyond the padded data (it must start inside), default False"}};

}  // namespace

void AddPoolingOperators(OpTable& table) {
  std::vector<AttributeSpec> average_attributes = kPoolingAttributes;
  average_attributes.push_back({"count_include_pad", "bool", "padding counts in the divisor, default False"});
  Register(table, {.name = "nn.max_pool2d",
                   .summary = "Largest element under a window sliding over NCHW data; padding does not take part.",
                   .argument_names = {"data"},
                   .attributes = kPoolingAttributes,
                   .kind = OpKind::kOutElementwiseFusable,
                   .is_within_arguments = true,
                   .infer_type = MaxPoolingType,
                   .work = PoolingWork,
                   .reference = ReferenceMaxPool2d});
  Register(table, {.name = "nn.avg_pool2d",
                   .summary = "Mean under a window sliding over NCHW data; padding is zero and counts only with count_include_pad.",
                   .argument_names = {"data"},
                   .attributes = std::move(average_attributes),
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = AveragePoolingType,
                   .work = PoolingWork,
                   .reference = ReferenceAveragePool2d});
  Register(table, {.name = "nn.global_max_pool2d",
                   .summary = "Largest element of each plane of NCHW data; height and width become 1.",
                   .argument_names = {"data"},
                   .kind = OpKind::kOutElementwiseFusable,
                   .is_within_arguments = true,
                   .infer_type = GlobalPoolingType,
                   .work = GlobalPoolingWork,
                   .reference = ReferenceGlobalMaxPool2d});
  Register(table, {.name = "nn.global_avg_pool2d",
                   .summary = "Mean of each plane of NCHW data; height and width become 1.",
                   .argument_names = {"data"},
                   .kind = OpKind::kOutElementwiseFusable,
                   .is_within_arguments = true,
                   .infer_type = GlobalPoolingType,
                   .work = GlobalPoolingWork,
                   .reference = ReferenceGlobalAveragePool2d});
}

}  // namespace collage
