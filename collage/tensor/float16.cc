#include "collage/tensor/float16.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace collage {

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

float FromFloat16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), sign ? -1.0f : 1.0f);
  const uint32_t widened = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

}  // namespace collage
