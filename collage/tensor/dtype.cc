#include "collage/tensor/dtype.h"

#include <array>
#include <utility>

namespace collage {
namespace {

struct DTypeRecord {
  std::string_view name;
  size_t bits;
  bool is_floating_point = false;
};

// In the order of the enumeration.
constexpr std::array<DTypeRecord, static_cast<size_t>(kLastDType) + 1> kRecords = {{{"float32", 32, true},
                                                                                    {"float64", 64, true},
                                                                                    {"float16", 16, true},
                                                                                    {"bfloat16", 16, true},
                                                                                    {"int8", 8},
                                                                                    {"int16", 16},
                                                                                    {"int32", 32},
                                                                                    {"int64", 64},
                                                                                    {"uint8", 8},
                                                                                    {"uint16", 16},
                                                                                    {"uint32", 32},
                                                                                    {"uint64", 64},
                                                                                    {"bool", 8},
                                                                                    {"float8_e4m3fn", 8, true},
                                                                                    {"float8_e4m3fnuz", 8, true},
                                                                                    {"float8_e5m2", 8, true},
                                                                                    {"float8_e5m2fnuz", 8, true},
                                                                                    {"float8_e8m0fnu", 8, true},
                                                                                    {"float4_e2m1fn", 4, true},
                                                                                    {"int4", 4},
                                                                                    {"uint4", 4},
                                                                                    {"int2", 2},
                                                                                    {"uint2", 2},
                                                                                    {"string", 64}}};

}  // namespace

size_t BitWidth(DType dtype) { return kRecords[static_cast<size_t>(dtype)].bits; }

size_t ByteSize(DType dtype) { return (BitWidth(dtype) + 7) / 8; }

bool IsFloatingPoint(DType dtype) { return kRecords[static_cast<size_t>(dtype)].is_floating_point; }

std::string_view Name(DType dtype) { return kRecords[static_cast<size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < kRecords.size(); ++i) {
    if (kRecords[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace collage
