#pragma once

#include <bit>
#include <cstdint>

namespace collage {

// The 16-bit floating point formats, which C++ has no types for; both ways round to the nearest, ties to even.

// Inline and without branches, because whole tensors are changed so.

/// IEEE 754 binary16.
inline uint16_t ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Exponents are 112 apart. Rounded at bit 13; a carry out of the mantissa lands in the exponent, as it should.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  // Beside one half a unit of float32 is the least number of float16, so that the addition rounds to those.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  const uint32_t infinite = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<uint16_t>(sign | (magnitude >= (143u << 23) ? infinite : finite));
}
inline float FromFloat16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  // As float32 it is 2^112 times too small, subnormal numbers too.
  const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(sign | (magnitude >= (31u << 23) ? magnitude | 0x7f800000u : finite));
}

/// The upper half of a float32.
inline uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>(value != value ? quiet : rounded);
}
inline float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace collage
