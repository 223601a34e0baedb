#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "collage/op/families.h"
#include "collage/op/rules.h"

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

/// float32 bits cut to bfloat16, ties to even.
uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// IEEE 754 binary16, ties to even.
uint16_t ToFloat16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return sign | 0x7e00u;
  const double magnitude = std::abs(static_cast<double>(value));
  if (magnitude >= 65520.0) return sign | 0x7c00u;
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent with f in [0.5, 1)
  const int scale = std::max(exponent - 11, -24);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // Up to 2048 units of 2^scale: a carry out of the mantissa lands in the exponent, as it should.
  const uint32_t biased = scale == -24 ? units : (static_cast<uint32_t>(scale + 24) << 10) + units;
  return static_cast<uint16_t>(sign | biased);
}

void CastTo16Bit(const Tensor& data, Tensor& result) {
  const std::vector<double> values = data.ToDouble();
  uint16_t* bits = result.MutableData<uint16_t>();
  const auto convert = result.dtype() == DType::kFloat16 ? ToFloat16 : ToBFloat16;
  for (size_t i = 0; i < values.size(); ++i) bits[i] = convert(static_cast<float>(values[i]));
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

}  // namespace

void AddCastOperators(OpTable& table) {
  Register(table, {.name = "cast",
                   .summary = "The elements as another dtype. Floating point goes to integers towards zero, out of range to the nearest "
                              "end and NaN to 0; anything but 0 is True.",
                   .argument_names = {"data"},
                   .attributes = {{"dtype", "string", "name of the dtype, such as \"float32\"", true}},
                   .kind = OpKind::kElementwise,
                   .infer_type = CastType,
                   .work = WorkPerOutput(1),
                   .reference = CastKernel});
}

}  // namespace collage
