#pragma once

#include <cstdint>

#include "collage/tensor/dtype.h"

namespace collage {

// Floating point of 8 bits and less, which C++ has no types for: E4M3FN and E5M2 (Micikevicius and others, FP8 Formats for Deep
// Learning, 2022), their forms without negative zero and with one NaN (UZ: Noune and others, 8-bit Numerical Formats for Deep
// Neural Networks, 2022), E2M1 and E8M0 (OCP Microscaling Formats 1.0, 2023). Rounding is that of ONNX's Cast.

/// One of the formats above.
bool IsFloat8(DType dtype);

/// To the nearest number, ties to even. `saturate`: what is too large, and an infinity, becomes the largest number; otherwise an
/// infinity or NaN, where the format has them. NaN of a format without any is negative zero, as in ONNX's tests.
uint8_t ToFloat8(float value, DType dtype, bool saturate = true);
float FromFloat8(uint8_t bits, DType dtype);

/// How a number between two powers of two goes to E8M0, which has only those.
enum class PowerRounding : uint8_t { kUp, kDown, kNearest };
/// The power of two of a number that is not negative; 0 and NaN are NaN, but saturation makes 0 the smallest power.
uint8_t ToPowerOfTwo(float value, PowerRounding rounding, bool saturate = true);

}  // namespace collage
