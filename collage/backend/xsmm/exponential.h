#pragma once

// The exponential of loops over numbers and over vectors of them, compiled as part of these (vectors.h).

#include <bit>
#include <cstdint>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// Comparisons are such that what is no number stays so.
COLLAGE_INLINE float Bounded(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, ln(2) split in two as by Cody and Waite (1980), and the Taylor polynomial of degree 6, which
// is exact to 1.2e-7. Saturates at exp(-80) and exp(80), so that what is multiplied with it or divided by it is no denormal number: those
// take a hundred cycles each. In place, and by builtins: GCC warns of vectors that pass between functions for other instruction sets.
template <int64_t lanes>
COLLAGE_INLINE void TakeExponential(typename Of<lanes>::Vector& x) {
  using Number = typename Of<lanes>::Vector;
  using Bits = typename Of<lanes>::Bits;
  constexpr float kReciprocalOfLn2 = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to an integer, in the last bits of the mantissa
  const Number lowest = Number{} - 80.0F;
  const Number highest = Number{} + 80.0F;
  const Number above = x < lowest ? lowest : x;
  const Number bounded = above > highest ? highest : above;
  const Number rounded = bounded * kReciprocalOfLn2 + kRounder;
  const Number n = rounded - kRounder;
  const Number r = (bounded - n * kLn2High) - n * kLn2Low;
  Number sum = Number{} + 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  constexpr uint32_t kBias = 127;
  constexpr uint32_t kMantissaBits = 23;
  const Bits power = __builtin_bit_cast(Bits, rounded) - std::bit_cast<uint32_t>(kRounder);
  x = sum * __builtin_bit_cast(Number, (power + kBias) << kMantissaBits);
}

COLLAGE_INLINE float Exponential(float x) {
  TakeExponential<1>(x);
  return x;
}

}  // namespace
}  // namespace collage::xsmm
