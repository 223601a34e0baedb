#include "collage/ir/literal.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace collage {
namespace {

// A literal cut in two: "1.5" and "f64".
struct Parts {
  std::string_view digits;
  std::string_view suffix;
  bool integer;
};

Parts Split(std::string_view text) {
  const size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  const std::string_view word = text.substr(sign, 3);
  const bool special = word == "inf" || word == "nan";
  const size_t suffix = special ? sign + 3 : std::min(text.find_first_of("fiu"), text.size());
  const std::string_view digits = text.substr(0, suffix);
  return {digits, text.substr(suffix), !special && digits.find_first_of(".eE") == std::string_view::npos};
}

template <class T>
std::optional<T> Read(std::string_view digits) {
  T value{};
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

struct Suffix {
  std::string_view text;
  DType dtype;
};
constexpr std::array<Suffix, 10> kSuffixes = {{{"f64", DType::kFloat64},
                                               {"f32", DType::kFloat32},
                                               {"f", DType::kFloat32},
                                               {"i8", DType::kInt8},
                                               {"i16", DType::kInt16},
                                               {"i32", DType::kInt32},
                                               {"i64", DType::kInt64},
                                               {"u8", DType::kUInt8},
                                               {"u16", DType::kUInt16},
                                               {"u32", DType::kUInt32}}};

std::optional<DType> DTypeOf(const Parts& parts) {
  if (parts.suffix.empty()) return parts.integer ? DType::kInt32 : DType::kFloat32;
  if (parts.suffix == "u64") return DType::kUInt64;
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == parts.suffix) return suffix.dtype;
  }
  return std::nullopt;
}

tl::unexpected<Error> Malformed(std::string_view text, const std::string& why) {
  return Fail("the number '" + std::string(text) + "' " + why);
}

std::string_view SuffixOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "f";
    case DType::kInt32:
      return "";
    case DType::kUInt64:
      return "u64";
    default:
      for (const Suffix& suffix : kSuffixes) {
        if (suffix.dtype == dtype) return suffix.text;
      }
      return "";
  }
}

}  // namespace

bool IsNumberWord(std::string_view word) {
  if (!word.starts_with("inf") && !word.starts_with("nan")) return false;
  const std::string_view suffix = word.substr(3);
  return suffix.empty() || suffix == "f" || suffix == "f32" || suffix == "f64";
}

Result<Tensor> ScalarFromLiteral(std::string_view text) {
  const Parts parts = Split(text);
  const std::optional<DType> dtype = DTypeOf(parts);
  if (!dtype) return Malformed(text, "has an unknown suffix; known are f, f64, i8, i16, i32, i64, u8, u16, u32 and u64");
  if (!IsFloatingPoint(*dtype) && !parts.integer) return Malformed(text, "is not an integer");
  Tensor scalar(TensorType{{}, *dtype});
  bool fits = false;
  VisitElementType(*dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!std::is_same_v<T, bool>) {
      const std::optional<T> value = Read<T>(parts.digits);
      fits = value.has_value();
      if (fits) *scalar.MutableData<T>() = *value;
    }
  });
  if (!fits) return Malformed(text, "is malformed or does not fit " + std::string(Name(*dtype)));
  return scalar;
}

Result<AttributeValue> AttributeFromLiteral(std::string_view text) {
  const Parts parts = Split(text);
  const std::optional<DType> dtype = DTypeOf(parts);
  if (!dtype) return Malformed(text, "has an unknown suffix");
  if (IsFloatingPoint(*dtype)) {
    if (const std::optional<double> value = Read<double>(parts.digits)) return AttributeValue(*value);
  } else if (parts.integer) {
    if (const std::optional<int64_t> value = Read<int64_t>(parts.digits)) return AttributeValue(*value);
  }
  return Malformed(text, "is malformed or does not fit");
}

std::optional<std::string> LiteralOf(const Tensor& scalar) {
  if (!scalar.shape().empty()) return std::nullopt;
  std::optional<std::string> literal;
  VisitElementType(scalar.dtype(), [&](auto element) {
    using T = decltype(element);
    const T value = *scalar.Data<T>();
    if constexpr (std::is_same_v<T, bool>) {
      literal = value ? "True" : "False";
    } else {
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) return;
      }
      std::array<char, 64> buffer;
      const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
      literal = std::string(buffer.data(), end) + std::string(SuffixOf(scalar.dtype()));
    }
  });
  return literal;
}

std::string Unescape(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    result += text[i];
  }
  return result;
}

}  // namespace collage
