#include "collage/tensor/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/tensor/float16.h"
#include "collage/tensor/float8.h"

namespace collage {
namespace {

/// Bits of an integer type below 8 bits; 0 for others.
size_t NarrowIntegerBits(DType dtype) { return IsFloatingPoint(dtype) || BitWidth(dtype) >= 8 ? 0 : BitWidth(dtype); }

bool IsSignedNarrowInteger(DType dtype) { return dtype == DType::kInt4 || dtype == DType::kInt2; }

/// The value of the low bits; a sign is extended over the byte, so that the byte is the number.
uint8_t LowBits(uint8_t byte, DType dtype) {
  const size_t unused = 8 - NarrowIntegerBits(dtype);
  const auto shifted = static_cast<uint8_t>(byte << unused);
  return IsSignedNarrowInteger(dtype) ? static_cast<uint8_t>(static_cast<int8_t>(shifted) >> unused)
                                      : static_cast<uint8_t>(shifted >> unused);
}

void WidenFloats(const Tensor& tensor, float* values) {
  const int64_t count = tensor.ElementCount();
  if (IsSixteenBitFloat(tensor.dtype())) {
    const auto* bits = tensor.Data<uint16_t>();
    // Not by pointers to functions, so that loops are vectorised.
    if (tensor.dtype() == DType::kFloat16) {
      std::transform(bits, bits + count, values, [](uint16_t half) { return FromFloat16(half); });
    } else {
      std::transform(bits, bits + count, values, [](uint16_t half) { return FromBFloat16(half); });
    }
    return;
  }
  const auto* bits = tensor.Data<uint8_t>();
  std::transform(bits, bits + count, values, [dtype = tensor.dtype()](uint8_t byte) { return FromFloat8(byte, dtype); });
}

}  // namespace

bool IsSixteenBitFloat(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

bool IsNarrow(DType dtype) { return IsSixteenBitFloat(dtype) || IsFloat8(dtype) || NarrowIntegerBits(dtype) != 0; }

DType WideType(DType dtype) {
  if (!IsNarrow(dtype)) return dtype;
  if (IsFloatingPoint(dtype)) return DType::kFloat32;
  return IsSignedNarrowInteger(dtype) ? DType::kInt8 : DType::kUInt8;
}

Tensor Widened(const Tensor& tensor) {
  if (!IsNarrow(tensor.dtype())) return tensor;
  Tensor wide(TensorType{tensor.shape(), WideType(tensor.dtype())});
  if (IsFloatingPoint(tensor.dtype())) {
    WidenFloats(tensor, wide.MutableData<float>());
  } else {
    std::copy_n(tensor.Bytes(), tensor.ByteCount(), wide.MutableBytes());
  }
  return wide;
}

void Narrow(const Tensor& wide, Tensor& result, bool saturate) {
  const DType dtype = result.dtype();
  COLLAGE_CHECK(IsNarrow(dtype) && wide.type() == (TensorType{result.shape(), WideType(dtype)}));
  const int64_t count = wide.ElementCount();
  if (!IsFloatingPoint(dtype)) {
    const auto* values = wide.Data<uint8_t>();
    std::transform(values, values + count, result.MutableData<uint8_t>(), [&](uint8_t byte) { return LowBits(byte, dtype); });
    return;
  }
  const float* values = wide.Data<float>();
  if (IsSixteenBitFloat(dtype)) {
    auto* bits = result.MutableData<uint16_t>();
    if (dtype == DType::kFloat16) {
      std::transform(values, values + count, bits, [](float value) { return ToFloat16(value); });
    } else {
      std::transform(values, values + count, bits, [](float value) { return ToBFloat16(value); });
    }
  } else {
    std::transform(values, values + count, result.MutableData<uint8_t>(), [&](float value) { return ToFloat8(value, dtype, saturate); });
  }
}

IntegerLimits LimitsOfInteger(DType dtype) {
  if (const size_t bits = NarrowIntegerBits(dtype); bits != 0) {
    if (!IsSignedNarrowInteger(dtype)) return {0, (uint64_t{1} << bits) - 1};
    return {-(int64_t{1} << (bits - 1)), (uint64_t{1} << (bits - 1)) - 1};
  }
  IntegerLimits limits{};
  const bool is_integer = !IsFloatingPoint(dtype) && VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    limits = {static_cast<int64_t>(std::numeric_limits<T>::lowest()), static_cast<uint64_t>(std::numeric_limits<T>::max())};
  });
  COLLAGE_CHECK(is_integer);
  return limits;
}

double GreatestFinite(DType dtype) {
  COLLAGE_CHECK(IsFloatingPoint(dtype));
  if (dtype == DType::kFloat64) return std::numeric_limits<double>::max();
  if (dtype == DType::kFloat32) return std::numeric_limits<float>::max();
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return FromBFloat16(0x7f7f);
  return FromFloat8(ToFloat8(std::numeric_limits<float>::infinity(), dtype), dtype);
}

Tensor ScalarOf(double value, DType dtype) {
  if (!IsNarrow(dtype)) return Tensor::Scalar(value, dtype);
  Tensor result(TensorType{{}, dtype});
  Narrow(Tensor::Scalar(value, WideType(dtype)), result);
  return result;
}

}  // namespace collage
