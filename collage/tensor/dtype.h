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
  kBool
};

/// Bytes of one element.
size_t ByteSize(DType dtype);
bool IsFloatingPoint(DType dtype);
/// The Relay name: "float32", "int64", "bool", ...
std::string_view Name(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

/// Calls `visit(T{})` with the C++ element type; float16 and bfloat16 have none and answer false.
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
    case DType::kFloat16:
    case DType::kBFloat16:
      return false;
  }
  return false;
}

}  // namespace collage
