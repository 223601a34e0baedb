#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace collage {

enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  // Types of 8 bits and less that C++ has none for, one element a byte (tensor/narrow.h).
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0,
  kFloat4E2M1,
  kInt4,
  kUInt4,
  kInt2,
  kUInt2,
  kString  ///< tensor/strings.h; no number
};
inline constexpr DType kLastDType = DType::kString;

/// Bytes of one element in memory; types of less than 8 bits take one, too.
size_t ByteSize(DType dtype);
/// Bits of one element where it is packed, as in ONNX; bool takes 8.
size_t BitWidth(DType dtype);
bool IsFloatingPoint(DType dtype);
/// The Relay name: "float32", "int64", "bool", ...; NumPy's, with those that ml_dtypes registers there; "string".
std::string_view Name(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

/// Calls `visit(T{})` with the C++ element type; narrow types (tensor/narrow.h) and strings have none and answer
/// false.
template <class Visitor>
bool VisitElementType(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::kFloat32:
      visit(float{});
      return true;
    case DType::kFloat64:
      visit(double{});
      return true;
    case DType::kInt8:
      visit(int8_t{});
      return true;
    case DType::kInt16:
      visit(int16_t{});
      return true;
    case DType::kInt32:
      visit(int32_t{});
      return true;
    case DType::kInt64:
      visit(int64_t{});
      return true;
    case DType::kUInt8:
      visit(uint8_t{});
      return true;
    case DType::kUInt16:
      visit(uint16_t{});
      return true;
    case DType::kUInt32:
      visit(uint32_t{});
      return true;
    case DType::kUInt64:
      visit(uint64_t{});
      return true;
    case DType::kBool:
      visit(bool{});
      return true;
    default:
      return false;
  }
}

}  // namespace collage
