#include "collage/backend/element_code/types.h"

#include <algorithm>
#include <array>

#include "collage/support/check.h"
#include "collage/tensor/narrow.h"

namespace collage::element_code {
namespace {

struct ElementType {
  DType dtype;
  const char* stored;
  const char* computed;
};

/// The languages agree in these names, and `long` has 64 bits: OpenCL says so, the others' compilers do on Linux.
constexpr std::array<ElementType, 6> kTypes = {{{DType::kFloat32, "float", "float"},
                                                {DType::kFloat16, "unsigned short", "float"},
                                                {DType::kBFloat16, "unsigned short", "float"},
                                                {DType::kInt32, "int", "int"},
                                                {DType::kInt64, "long", "long"},
                                                {DType::kBool, "unsigned char", "int"}}};

const ElementType* Find(DType dtype) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [dtype](const ElementType& type) { return type.dtype == dtype; });
  return found == kTypes.end() ? nullptr : found;
}

const ElementType& Get(DType dtype) {
  const ElementType* type = Find(dtype);
  COLLAGE_CHECK(type != nullptr, "no code is generated for what has elements of another type");
  return *type;
}

// Floating point goes to integers as the operator `cast` says: towards zero, out of range to the nearest end, NaN to 0.
constexpr const char* kFunctions[] = {
    R"(float from_bfloat16(unsigned short bits) { return as_float((unsigned int)bits << 16); }
)",
    R"(unsigned short to_bfloat16(float x) {
  const unsigned int bits = as_uint(x);
  return x != x ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
)",
    R"(int to_int32(float x) {
  return x != x ? 0 : x <= -2147483648.0f ? -2147483647 - 1 : x >= 2147483648.0f ? 2147483647 : (int)x;
}
)",
    R"(long to_int64(float x) {
  const long most = 9223372036854775807L;
  return x != x ? 0 : x <= -9223372036854775808.0f ? -most - 1 : x >= 9223372036854775808.0f ? most : (long)x;
}
)"};

}  // namespace

bool HasType(DType dtype) { return Find(dtype) != nullptr; }
std::string StoredType(DType dtype) { return Get(dtype).stored; }
std::string ComputedType(DType dtype) { return Get(dtype).computed; }

std::string FromStored(DType dtype, const std::string& text) {
  return IsSixteenBitFloat(dtype) ? "from_" + std::string(Name(dtype)) + "(" + text + ")" : text;
}

std::string ToStored(DType dtype, const std::string& text) {
  return IsSixteenBitFloat(dtype) ? "to_" + std::string(Name(dtype)) + "(" + text + ")" : text;
}

std::string Rounded(DType dtype, const std::string& text) { return FromStored(dtype, ToStored(dtype, text)); }

std::string ConversionFunctions(const std::string& qualifiers) {
  std::string text;
  for (const char* function : kFunctions) text += qualifiers + " " + function;
  return text;
}

}  // namespace collage::element_code
