#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collage/op/families.h"
#include "collage/op/rules.h"
#include "collage/tensor/float8.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

Result<PowerRounding> RoundingAttribute(const Attributes& attributes) {
  const std::string mode = StringAttribute(attributes, "round_mode", "up");
  if (mode == "up") return PowerRounding::kUp;
  if (mode == "down") return PowerRounding::kDown;
  if (mode == "nearest") return PowerRounding::kNearest;
  return Fail("attribute 'round_mode' is \"" + mode + "\", expected \"up\", \"down\" or \"nearest\"");
}

Result<Type> CastType(TypeArguments arguments, const Attributes& attributes) {
  TensorType type = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  type.dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", type.dtype));
  COLLAGE_TRY(RoundingAttribute(attributes));
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

template <class To, class Values>
void CastValues(const Values& values, Tensor& result) {
  To* target = result.MutableData<To>();
  for (size_t i = 0; i < values.size(); ++i) target[i] = Convert<To>(values[i]);
}

template <class To>
To Parsed(const std::string& text) {
  if constexpr (std::is_same_v<To, bool>) {
    return std::strtod(text.c_str(), nullptr) != 0;
  } else if constexpr (std::is_integral_v<To>) {
    // To the nearest end where it is out of range, as numbers are.
    if constexpr (std::is_signed_v<To>) {
      return static_cast<To>(
          std::clamp<int64_t>(std::strtoll(text.c_str(), nullptr, 10), std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
    } else {
      return static_cast<To>(std::min<uint64_t>(std::strtoull(text.c_str(), nullptr, 10), std::numeric_limits<To>::max()));
    }
  } else {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return static_cast<To>(end == text.c_str() ? std::numeric_limits<double>::quiet_NaN() : value);
  }
}

/// The shortest text that reads as the same number.
template <class From>
std::string TextOf(From value) {
  if constexpr (std::is_same_v<From, bool>) {
    return value ? "1" : "0";
  } else {
    if constexpr (std::is_floating_point_v<From>) {
      if (std::isnan(value)) return "NaN";
      if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
    }
    std::array<char, 64> buffer;
    char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return {buffer.data(), end};
  }
}

void CastFromStrings(const std::vector<std::string>& texts, Tensor& result) {
  VisitElementType(result.dtype(),
                   [&](auto to) { std::transform(texts.begin(), texts.end(), result.MutableData<decltype(to)>(), Parsed<decltype(to)>); });
}

Tensor CastToStrings(const Tensor& data) {
  std::vector<std::string> texts;
  VisitElementType(data.dtype(), [&](auto from) {
    for (const auto value : data.Values<decltype(from)>()) texts.push_back(TextOf(value));
  });
  return StringTensor(data.shape(), texts);
}

/// Neither type is narrow.
void CastWide(const Tensor& data, Tensor& result) {
  if (data.dtype() == DType::kString && result.dtype() == DType::kString) {
    std::memcpy(result.MutableBytes(), data.Bytes(), data.ByteCount());
    return;
  }
  if (data.dtype() == DType::kString) return CastFromStrings(StringsOf(data), result);
  if (result.dtype() == DType::kString) {
    std::memcpy(result.MutableBytes(), CastToStrings(data).Bytes(), result.ByteCount());
    return;
  }
  VisitElementType(result.dtype(), [&](auto to) {
    VisitElementType(data.dtype(), [&](auto from) { CastValues<decltype(to)>(data.Values<decltype(from)>(), result); });
  });
}

/// Any number, towards zero, to an integer of less than 8 bits: its low bits.
void CastToLowBits(const Tensor& data, Tensor& result) {
  Tensor numbers(TensorType{data.shape(), DType::kInt64});
  CastWide(data, numbers);
  Tensor bytes(TensorType{data.shape(), WideType(result.dtype())});
  const int64_t* values = numbers.Data<int64_t>();
  std::transform(values, values + numbers.ElementCount(), bytes.MutableBytes(),
                 [](int64_t value) { return static_cast<std::byte>(value); });
  Narrow(bytes, result);
}

void CastToPowers(const Tensor& data, const Attributes& attributes, Tensor& result) {
  const PowerRounding rounding = RoundingAttribute(attributes).value();
  const bool saturates = BoolAttribute(attributes, "saturate", true);
  const float* values = data.Data<float>();
  std::transform(values, values + data.ElementCount(), result.MutableData<uint8_t>(),
                 [&](float value) { return ToPowerOfTwo(value, rounding, saturates); });
}

void CastKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Tensor data = Widened(inputs[0]);
  Tensor& result = outputs[0];
  if (!IsNarrow(result.dtype())) return CastWide(data, result);
  if (!IsFloatingPoint(result.dtype())) return CastToLowBits(data, result);
  Tensor wide(TensorType{data.shape(), WideType(result.dtype())});
  CastWide(data, wide);
  if (result.dtype() == DType::kFloat8E8M0) return CastToPowers(wide, attributes, result);
  Narrow(wide, result, BoolAttribute(attributes, "saturate", true));
}

Result<Type> ReinterpretType(TypeArguments arguments, const Attributes& attributes) {
  TensorType type = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const DType dtype = COLLAGE_TRY(DTypeAttribute(attributes, "dtype", type.dtype));
  if (BitWidth(dtype) != BitWidth(type.dtype) || (dtype == DType::kString) != (type.dtype == DType::kString)) {
    return Fail("attribute 'dtype' is \"" + std::string(Name(dtype)) + "\", expected a dtype of as many bits as " +
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
  Register(
      table,
      {.name = "cast",
       .summary = "The elements as another dtype. Floating point goes to integers towards zero, out of range to the nearest "
                  "end, or to its low bits where the integers have less than 8, and NaN to 0; anything but 0 is True. Strings are "
                  "read and written in decimal; what is no number reads as NaN, or 0.",
       .argument_names = {"data"},
       .attributes = {{"dtype", "string", "name of the dtype, such as \"float32\"", true},
                      {"saturate", "bool", "of floating point of 8 bits and less: what is too large is the largest number, default True"},
                      {"round_mode", "string", "\"up\", \"down\" or \"nearest\" to a power of two of float8_e8m0fnu, default \"up\""}},
       .kind = OpKind::kElementwise,
       .infer_type = CastType,
       .work = WorkPerOutput(1),
       .reference = CastKernel},
      NarrowTypes::kAsStored);
  Register(table,
           {.name = "reinterpret",
            .summary = "The bits of the elements as another dtype of the same size.",
            .argument_names = {"data"},
            .attributes = {{"dtype", "string", "name of the dtype, such as \"uint32\"", true}},
            .kind = OpKind::kElementwise,
            .infer_type = ReinterpretType,
            .work = WorkPerOutput(0),
            .reference = ReinterpretKernel},
           NarrowTypes::kAsStored);
}

}  // namespace collage
