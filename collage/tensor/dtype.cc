#include "collage/tensor/dtype.h"

#include <array>
#include <utility>

namespace collage {
namespace {

struct DTypeRecord {
  std::string_view name;
  size_t byte_size;
};

// In the order of the enumeration.
constexpr std::array<DTypeRecord, 13> kRecords = {{{"float32", 4},
                                                   {"float64", 8},
                                                   {"float16", 2},
                                                   {"bfloat16", 2},
                                                   {"int8", 1},
                                                   {"int16", 2},
                                                   {"int32", 4},
                                                   {"int64", 8},
                                                   {"uint8", 1},
                                                   {"uint16", 2},
                                                   {"uint32", 4},
                                                   {"uint64", 8},
                                                   {"bool", 1}}};

}  // namespace

size_t ByteSize(DType dtype) { return kRecords[static_cast<size_t>(dtype)].byte_size; }

bool IsFloatingPoint(DType dtype) { return dtype <= DType::kBFloat16; }

std::string_view Name(DType dtype) { return kRecords[static_cast<size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < kRecords.size(); ++i) {
    if (kRecords[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace collage
