#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<TensorType> FloatData(TypeArguments arguments, size_t rank) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", rank));
  return data;
}

// Per-channel parameters: as many as data has along the axis, of its dtype.
Result<size_t> CheckParameters(TypeArguments arguments, const Attributes& attributes, const TensorType& data,
                               std::initializer_list<const char*> names, int64_t default_axis) {
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", default_axis), data.shape.size()));
  size_t index = 1;
  for (const char* name : names) {
    const TensorType parameter = COLLAGE_TRY(TensorArgument(arguments, index++, name));
    COLLAGE_TRY_STATUS(ExpectSameDType(parameter, name, data, "data"));
    COLLAGE_TRY_STATUS(ExpectShape(parameter, name, {data.shape[axis]}));
  }
  return axis;
}

Result<Type> BatchNormType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(FloatData(arguments, 1));
  COLLAGE_TRY(CheckParameters(arguments, attributes, data, {"gamma", "beta", "moving_mean", "moving_var"}, 1));
  return Type(TupleType{{data, arguments[3], arguments[4]}});
}

Result<Type> LayerNormType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(FloatData(arguments, 1));
  COLLAGE_TRY(CheckParameters(arguments, attributes, data, {"gamma", "beta"}, -1));
  return Type(data);
}

Result<Type> InstanceNormType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(FloatData(arguments, 3));
  const size_t axis = COLLAGE_TRY(CheckParameters(arguments, attributes, data, {"gamma", "beta"}, 1));
  if (axis == 0) return Fail("attribute 'axis' is the batch dimension 0, expected the dimension of the channels");
  return Type(data);
}

Result<Type> GroupNormType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(FloatData(arguments, 3));
  const size_t axis = COLLAGE_TRY(CheckParameters(arguments, attributes, data, {"gamma", "beta"}, 1));
  if (axis == 0) return Fail("attribute 'axis' is the batch dimension 0, expected the dimension of the channels");
  const int64_t groups = IntAttribute(attributes, "num_groups", 1);
  if (groups < 1 || data.shape[axis] % groups != 0) {
    return Fail("attribute 'num_groups' is " + std::to_string(groups) + ", expected a divisor of the " + std::to_string(data.shape[axis]) +
                " channels");
  }
  return Type(data);
}

Result<Type> LrnType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(FloatData(arguments, 1));
  COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 1), data.shape.size()));
  const int64_t size = IntAttribute(attributes, "size", 5);
  if (size < 1) return Fail("attribute 'size' is " + std::to_string(size) + ", expected at least 1");
  return Type(data);
}

Work LrnWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const double size = static_cast<double>(IntAttribute(attributes, "size", 5));
  return {(2 * size + 4) * ElementCount(result), ByteCount(arguments[0]) + ByteCount(result)};
}

const AttributeSpec kEpsilon{"epsilon", "float", "added to the variance, default 1e-5"};
const AttributeSpec kChannelAxis{"axis", "int", "dimension of the channels, default 1"};
const AttributeSpec kCenter{"center", "bool", "beta is added, default True"};
const AttributeSpec kScale{"scale", "bool", "gamma is multiplied, default True"};

OpDef Normalisation(std::string name, std::string summary, std::vector<AttributeSpec> attributes, OpDef::TypeRule infer_type,
                    OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data", "gamma", "beta"},
          .attributes = std::move(attributes),
          .kind = OpKind::kOutElementwiseFusable,
          .infer_type = std::move(infer_type),
          .work = WorkPerOutput(7),
          .reference = std::move(reference)};
}

}  // namespace

void AddNormalisationOperators(OpTable& table) {
  OpDef batch_norm =
      Normalisation("nn.batch_norm",
                    "Inference form of batch normalisation: (data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta "
                    "for each channel. The result is a tuple of that, moving_mean and moving_var.",
                    {kChannelAxis, kEpsilon, kCenter, kScale}, BatchNormType, ReferenceBatchNorm);
  batch_norm.argument_names = {"data", "gamma", "beta", "moving_mean", "moving_var"};
  batch_norm.work = WorkPerOutput(2);
  Register(table, std::move(batch_norm));
  Register(table, Normalisation("nn.layer_norm", "Normalises along one axis by its mean and variance, then times gamma plus beta.",
                                {{"axis", "int", "dimension that is normalised, default -1"}, kEpsilon, kCenter, kScale}, LayerNormType,
                                ReferenceLayerNorm));
  Register(table, Normalisation("nn.instance_norm",
                                "Normalises each channel of each batch element by its mean and variance, then times gamma plus beta.",
                                {kChannelAxis, kEpsilon, kCenter, kScale}, InstanceNormType, ReferenceInstanceNorm));
  Register(table, Normalisation(
                      "nn.group_norm",
                      "Normalises each group of channels of each batch element by its mean and variance, then times gamma "
                      "plus beta for each channel.",
                      {{"num_groups", "int", "the channels are split into so many groups", true}, kChannelAxis, kEpsilon, kCenter, kScale},
                      GroupNormType, ReferenceGroupNorm));
  Register(table, {.name = "nn.lrn",
                   .summary = "Local response normalisation: data / (bias + alpha / size * s)^beta, s being the sum of squares over `size` "
                              "neighbouring channels, (size - 1) / 2 rounded down of them before.",
                   .argument_names = {"data"},
                   .attributes = {{"size", "int", "number of channels summed, default 5"},
                                  kChannelAxis,
                                  {"bias", "float", "added to the scaled sum, default 2"},
                                  {"alpha", "float", "factor of the sum before it is divided by size, default 1e-5"},
                                  {"beta", "float", "exponent, default 0.75"}},
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = LrnType,
                   .work = LrnWork,
                   .reference = ReferenceLrn});
}

}  // namespace collage
