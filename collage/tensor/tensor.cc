#include "collage/tensor/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "collage/support/hash.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), sign ? -1.0f : 1.0f);
  const uint32_t widened = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

template <class T>
std::vector<T> Widen(const Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.ElementCount()));
  const bool has_element_type = VisitElementType(tensor.dtype(), [&](auto element) {
    const auto* data = tensor.Data<decltype(element)>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(+data[i]);  // promoted: int8 is a number
  });
  if (has_element_type) return values;
  const auto* data = tensor.Data<uint16_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(tensor.dtype() == DType::kFloat16 ? HalfToFloat(data[i])
                                                                 : std::bit_cast<float>(static_cast<uint32_t>(data[i]) << 16));
  }
  return values;
}

}  // namespace

Tensor::Tensor(TensorType type) : type_(std::move(type)), writable_(true) {
  const std::shared_ptr<std::byte> memory = AllocateBuffer(type_.ByteCount());
  data_ = memory.get();
  buffer_ = memory;
}

Tensor Tensor::View(TensorType type, const void* data, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.buffer_ = std::move(owner);
  tensor.data_ = static_cast<const std::byte*>(data);
  return tensor;
}

Tensor Tensor::Reshaped(Shape shape) const {
  COLLAGE_CHECK(collage::ElementCount(shape) == ElementCount());
  Tensor tensor = *this;
  tensor.type_.shape = std::move(shape);
  return tensor;
}

std::vector<int64_t> Tensor::ToInt64() const { return Widen<int64_t>(*this); }
std::vector<double> Tensor::ToDouble() const { return Widen<double>(*this); }

bool BitwiseEqual(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.Bytes(), b.Bytes(), a.ByteCount()) == 0;
}

void FillRandom(Tensor& tensor, uint64_t seed, double low, double high) {
  const bool floating = IsFloatingPoint(tensor.dtype());
  const bool has_element_type = VisitElementType(tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    T* data = tensor.MutableData<T>();
    const int64_t count = tensor.ElementCount();
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = HashCombine(seed, static_cast<uint64_t>(i));
      const double unit = static_cast<double>(bits >> 11) * 0x1.0p-53;
      if (floating) {
        data[i] = static_cast<T>(low + (high - low) * unit);
      } else if constexpr (std::is_same_v<T, bool>) {
        data[i] = (bits & 1) != 0;
      } else {
        data[i] = static_cast<T>(bits & 7);
      }
    }
  });
  COLLAGE_CHECK(has_element_type, "random values of a 16-bit floating point type");
}

double RelativeDifference(const Tensor& a, const Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.shape() != b.shape()) return kInfinity;
  const std::vector<double> left = a.ToDouble();
  const std::vector<double> right = b.ToDouble();
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    if (std::isnan(left[i]) && std::isnan(right[i])) continue;
    if (left[i] == right[i]) {
      if (std::isfinite(right[i])) largest = std::max(largest, std::abs(right[i]));
      continue;
    }
    if (!std::isfinite(left[i]) || !std::isfinite(right[i])) return kInfinity;
    largest = std::max(largest, std::abs(right[i]));
    difference = std::max(difference, std::abs(left[i] - right[i]));
  }
  return difference / (largest > 0 ? largest : 1.0);
}

}  // namespace collage
