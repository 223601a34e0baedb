#include <cstring>

#include "collage/op/families.h"
#include "collage/op/rules.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

Result<Type> ShapeAndDType(const Attributes& attributes, DType fallback) {
  const DType dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", fallback));
  return Type(TensorType{IntsAttribute(attributes, "shape", {}), dtype});
}

Result<Type> CreationType(TypeArguments, const Attributes& attributes) { return ShapeAndDType(attributes, DType::kFloat32); }

Result<Type> FullType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType fill = COLLAGE_TRY(TensorArgument(arguments, 0, "fill_value"));
  COLLAGE_TRY_STATUS(ExpectRank(fill, "fill_value", 0));
  const DType dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", fill.dtype));
  if (dtype != fill.dtype) {
    return Fail("attribute 'dtype' is \"" + std::string(Name(dtype)) + "\", expected \"" + std::string(Name(fill.dtype)) +
                "\", the dtype of fill_value");
  }
  return ShapeAndDType(attributes, fill.dtype);
}

Result<Type> LikeType(TypeArguments arguments, const Attributes&) { return Type(COLLAGE_TRY(TensorArgument(arguments, 0, "data"))); }

Result<Type> ShapeOfType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const DType dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", DType::kInt64));
  if (dtype != DType::kInt64 && dtype != DType::kInt32)
    return Fail("attribute 'dtype' is \"" + std::string(Name(dtype)) + "\", expected \"int64\" or \"int32\"");
  return Type(TensorType{{static_cast<int64_t>(data.shape.size())}, dtype});
}

Work FillWork(TypeArguments, const Type& result, const Attributes&) { return {0, ByteCount(result)}; }

void Fill(Tensor& result, const std::byte* element) {
  const size_t size = ByteSize(result.dtype());
  std::byte* target = result.MutableBytes();
  for (int64_t i = 0; i < result.ElementCount(); ++i) std::memcpy(target + static_cast<size_t>(i) * size, element, size);
}

void ZerosKernel(std::span<const Tensor>, const Attributes&, std::span<Tensor> outputs) {
  std::memset(outputs[0].MutableBytes(), 0, outputs[0].ByteCount());
}

void OnesKernel(std::span<const Tensor>, const Attributes&, std::span<Tensor> outputs) {
  Fill(outputs[0], ScalarOf(1, outputs[0].dtype()).Bytes());
}

void FullKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) { Fill(outputs[0], inputs[0].Bytes()); }

void ShapeOfKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (outputs[0].dtype() == DType::kInt64) {
      outputs[0].MutableData<int64_t>()[i] = shape[i];
    } else {
      outputs[0].MutableData<int32_t>()[i] = static_cast<int32_t>(shape[i]);
    }
  }
}

OpDef Creation(std::string name, std::string summary, std::vector<std::string> arguments, OpDef::TypeRule infer_type,
               OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = std::move(arguments),
          .kind = OpKind::kElementwise,
          .infer_type = std::move(infer_type),
          .work = FillWork,
          .reference = std::move(reference)};
}

}  // namespace

void AddCreationOperators(OpTable& table) {
  const AttributeSpec shape{"shape", "ints", "shape of the result", true};
  const AttributeSpec dtype{"dtype", "string", "dtype of the result, default \"float32\""};
  OpDef zeros = Creation("zeros", "A tensor of zeros (False for bool).", {}, CreationType, ZerosKernel);
  zeros.attributes = {shape, dtype};
  OpDef ones = Creation("ones", "A tensor of ones (True for bool).", {}, CreationType, OnesKernel);
  ones.attributes = {shape, dtype};
  OpDef full = Creation("full", "A tensor whose elements all have one value.", {"fill_value"}, FullType, FullKernel);
  full.is_within_arguments = true;
  full.attributes = {shape, {"dtype", "string", "only the dtype of fill_value"}};
  Register(table, std::move(zeros), NarrowTypes::kAsStored);
  Register(table, std::move(ones));
  Register(table, std::move(full), NarrowTypes::kAsStored);
  Register(table, Creation("zeros_like", "Zeros in the shape and dtype of data.", {"data"}, LikeType, ZerosKernel), NarrowTypes::kAsStored);
  Register(table, Creation("ones_like", "Ones in the shape and dtype of data.", {"data"}, LikeType, OnesKernel));
  OpDef shape_of = Creation("shape_of", "The extents of data as a vector.", {"data"}, ShapeOfType, ShapeOfKernel);
  shape_of.attributes = {{"dtype", "string", "\"int64\" or \"int32\", default \"int64\""}};
  shape_of.kind = OpKind::kOpaque;
  // It reads the extents, which the host knows, wherever the elements are.
  shape_of.argument_devices = {DeviceUse::kAny};
  shape_of.result_device = DeviceUse::kHost;
  shape_of.makes_shape_value = true;
  Register(table, std::move(shape_of), NarrowTypes::kAsStored);
}

}  // namespace collage
