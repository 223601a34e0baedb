#pragma once

// The exponential and the reciprocal of loops over vectors of numbers, compiled as part of these (vectors.h). All work in place: GCC warns
// of vectors that pass between functions for other instruction sets.

#include <cstdint>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

/// So far from zero exponentials are taken: what is multiplied with one or divided by it is then no denormal number. Those take a hundred
/// cycles each.
constexpr float kMostOfExponential = 80.0F;

// Comparisons are such that what is no number stays so.
template <int64_t lanes>
COLLAGE_INLINE void HoldAbove(typename Of<lanes>::Vector& x, float low) {
  const typename Of<lanes>::Vector lowest = typename Of<lanes>::Vector{} + low;
  x = x < lowest ? lowest : x;
}
template <int64_t lanes>
COLLAGE_INLINE void HoldBelow(typename Of<lanes>::Vector& x, float high) {
  const typename Of<lanes>::Vector highest = typename Of<lanes>::Vector{} + high;
  x = x > highest ? highest : x;
}

/// exp(x) of |x| <= 80: 2^n exp(r) with |r| <= ln(2) / 2. The nearest number to ln(2) is within 1.9e-9 of it. Where the compiler makes one
/// operation of a product and a difference, as it does but for the builds that are not optimised, n ln(2) is not rounded before it is
/// subtracted; there, the error of x = 18 is 1.1e-6 instead of 1e-7. The polynomial is the one of degree 5 with the smallest relative
/// error, 9.2e-8, among those that are 1 at 0 (Lawson's algorithm, 1961, then a search among the numbers next to its coefficients).
template <int64_t lanes>
COLLAGE_INLINE void TakeExponentialWithin(typename Of<lanes>::Vector& x) {
  using Number = typename Of<lanes>::Vector;
  using Bits = typename Of<lanes>::Bits;
  constexpr float kReciprocalOfLn2 = 1.44269504F;
  constexpr float kLn2 = 0.693147182F;
  // What is added to 1.5 * 2^23 is rounded to an integer, in the last bits of the mantissa. 127 more is the bias of an exponent there.
  constexpr float kRounder = 12582912.0F + 127.0F;
  constexpr uint32_t kMantissaBits = 23;
  const Number rounded = x * kReciprocalOfLn2 + kRounder;
  const Number n = rounded - kRounder;
  const Number r = x - n * kLn2;
  Number sum = Number{} + 0.00829049945F;
  sum = sum * r + 0.0418982469F;
  sum = sum * r + 0.166676417F;
  sum = sum * r + 0.499991477F;
  sum = sum * r + 0.999999702F;
  sum = sum * r + 1.0F;
  x = sum * __builtin_bit_cast(Number, __builtin_bit_cast(Bits, rounded) << kMantissaBits);
}

/// exp(x), which saturates at exp(-80) and exp(80).
template <int64_t lanes>
COLLAGE_INLINE void TakeExponential(typename Of<lanes>::Vector& x) {
  HoldAbove<lanes>(x, -kMostOfExponential);
  HoldBelow<lanes>(x, kMostOfExponential);
  TakeExponentialWithin<lanes>(x);
}

/// 1 / x for x from 1 to 2^125, whose reciprocals are normal numbers; 1 + exp(80) is less. Subtracting the bits of x from a constant
/// negates the exponent and nearly inverts the mantissa: with this constant, found by trying those around it, within 0.051 of 1 / x. A step
/// of third order makes the cube of that error of it, and one of Newton's the square of that. A division of vectors takes as long as twenty
/// such operations.
template <int64_t lanes>
COLLAGE_INLINE void TakeReciprocal(typename Of<lanes>::Vector& x) {
  using Number = typename Of<lanes>::Vector;
  using Bits = typename Of<lanes>::Bits;
  constexpr uint32_t kReflector = 0x7ef311c7;
  Number y = __builtin_bit_cast(Number, kReflector - __builtin_bit_cast(Bits, x));
  Number error = 1.0F - x * y;
  y = y + y * (error + error * error);
  error = 1.0F - x * y;
  x = y + y * error;
}

}  // namespace
}  // namespace collage::xsmm
