#pragma once

#include <cstdint>

namespace collage {

// The 16-bit floating point formats, which C++ has no types for; both ways round to the nearest, ties to even.

/// IEEE 754 binary16.
uint16_t ToFloat16(float value);
float FromFloat16(uint16_t bits);

/// The upper half of a float32.
uint16_t ToBFloat16(float value);
float FromBFloat16(uint16_t bits);

}  // namespace collage
