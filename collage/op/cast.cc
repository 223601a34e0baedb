#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collage/op/families.h"
#include "collage/op/rules.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

Result<Type> CastType(TypeArguments arguments, const Attributes& attributes) {
  TensorType type = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  type.dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", type.dtype));
  return Type(std::move(type));
}

/// Number to number: towards zero from floating point to integer, and to the nearest end where the value is out of range.
/// (C++ leaves that undefined; models do cast infinities.) NaN becomes 0.
template <class To, class From>
To Convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return To{};
    const double wide = value;
    if (wide <= static_cast<double>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
    if (wide >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(value);
  }
}

void CastTo16Bit(const Tensor& data, Tensor& result) {
  const std::vector<double> values = data.ToDouble();
  Tensor wide(TensorType{data.shape(), DType::kFloat32});
  std::transform(values.begin(), values.end(), wide.MutableData<float>(), [](double value) { return static_cast<float>(value); });
  Narrow(wide, result);
}

template <class To, class Values>
void CastValues(const Values& values, Tensor& result) {
  To* target = result.MutableData<To>();
  for (size_t i = 0; i < values.size(); ++i) target[i] = Convert<To>(values[i]);
}

void CastKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  const Tensor& data = inputs[0];
  const bool has_element_type = VisitElementType(outputs[0].dtype(), [&](auto to) {
    using To = decltype(to);
    const bool from_element_type =
        VisitElementType(data.dtype(), [&](auto from) { CastValues<To>(data.Values<decltype(from)>(), outputs[0]); });
    if (!from_element_type) CastValues<To>(data.ToDouble(), outputs[0]);
  });
  if (!has_element_type) CastTo16Bit(data, outputs[0]);
}

Result<Type> ReinterpretType(TypeArguments arguments, const Attributes& attributes) {
  TensorType type = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const DType dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", type.dtype));
  if (ByteSize(dtype) != ByteSize(type.dtype)) {
    return Fail("attribute 'dtype' is \"" + std::string(Name(dtype)) + "\", expected a dtype of as many bytes as " +
                std::string(Name(type.dtype)));
  }
  type.dtype = dtype;
  return Type(std::move(type));
}

void ReinterpretKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  std::memcpy(outputs[0].MutableBytes(), inputs[0].Bytes(), inputs[0].ByteCount());
  if (outputs[0].dtype() != DType::kBool) return;
  std::byte* bytes = outputs[0].MutableBytes();  // C++ gives bytes other than 0 and 1 no meaning as bool
  for (size_t i = 0; i < outputs[0].ByteCount(); ++i) bytes[i] = std::byte{bytes[i] != std::byte{0}};
}

}  // namespace

void AddCastOperators(OpTable& table) {
  Register(table,
           {.name = "cast",
            .summary = "The elements as another dtype. Floating point goes to integers towards zero, out of range to the nearest "
                       "end and NaN to 0; anything but 0 is True.",
            .argument_names = {"data"},
            .attributes = {{"dtype", "string", "name of the dtype, such as \"float32\"", true}},
            .kind = OpKind::kElementwise,
            .infer_type = CastType,
            .work = WorkPerOutput(1),
            .reference = CastKernel},
           SixteenBitFloats::kAsStored);
  Register(table,
           {.name = "reinterpret",
            .summary = "The bits of the elements as another dtype of the same size.",
            .argument_names = {"data"},
            .attributes = {{"dtype", "string", "name of the dtype, such as \"uint32\"", true}},
            .kind = OpKind::kElementwise,
            .infer_type = ReinterpretType,
            .work = WorkPerOutput(0),
            .reference = ReinterpretKernel},
           SixteenBitFloats::kAsStored);
}

}  // namespace collage
