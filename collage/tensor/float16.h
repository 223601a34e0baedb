#pragma once

#include <bit>
#include <cstdint>

namespace collage {

// The 16-bit floating point formats, which C++ has no types for; both ways round to the nearest, ties to even.

/// IEEE 754 binary16.
uint16_t ToFloat16(float value);
float FromFloat16(uint16_t bits);

/// The upper half of a float32. Inline and without a branch, because whole tensors are changed so.
inline uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>(value != value ? quiet : rounded);
}
inline float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace collage
