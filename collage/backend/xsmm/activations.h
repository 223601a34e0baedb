#pragma once

// Activations that are made of exponentials: what each makes of a vector of numbers, in place (exponential.h).

#include <cstdint>

#include "collage/backend/xsmm/exponential.h"
#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

constexpr uint32_t kSignBit = 0x80000000U;

template <int64_t lanes>
COLLAGE_INLINE void TakeAbsolute(typename Of<lanes>::Vector& x) {
  x = __builtin_bit_cast(typename Of<lanes>::Vector, __builtin_bit_cast(typename Of<lanes>::Bits, x) & ~kSignBit);
}

/// The sign of `x` for what is not negative.
template <int64_t lanes>
COLLAGE_INLINE void TakeSignOf(const typename Of<lanes>::Vector& x, typename Of<lanes>::Vector& positive) {
  using Bits = typename Of<lanes>::Bits;
  const Bits sign = __builtin_bit_cast(Bits, x) & kSignBit;
  positive = __builtin_bit_cast(typename Of<lanes>::Vector, __builtin_bit_cast(Bits, positive) | sign);
}

struct Sigmoid {
  template <int64_t lanes>
  COLLAGE_INLINE static void Take(typename Of<lanes>::Vector& x) {
    x = -x;
    TakeExponential<lanes>(x);
    x = 1.0F + x;
    TakeReciprocal<lanes>(x);
  }
};

/// Near zero Lambert's continued fraction, cut after 9 (within 1e-7 up to 1); beyond, by the exponential.
struct Tanh {
  template <int64_t lanes>
  COLLAGE_INLINE static void Take(typename Of<lanes>::Vector& x) {
    using Number = typename Of<lanes>::Vector;
    const Number square = x * x;
    Number size = x;
    TakeAbsolute<lanes>(size);
    Number power = 2.0F * size;
    HoldBelow<lanes>(power, kMostOfExponential);
    TakeExponentialWithin<lanes>(power);
    Number far = power - 1.0F;
    TakeSignOf<lanes>(x, far);
    const Number one = Number{} + 1.0F;
    Number divisor = size < one ? 945.0F + square * (420.0F + square * 15.0F) : power + 1.0F;
    TakeReciprocal<lanes>(divisor);
    x = (size < one ? x * (945.0F + square * (105.0F + square)) : far) * divisor;
  }
};

/// 1 - erf(x) of x >= 0: Abramowitz and Stegun 7.1.26, whose absolute error is 1.5e-7. Held at 8.9, where it is less than
/// 1e-35 and the square of x still within what the exponential takes.
template <int64_t lanes>
COLLAGE_INLINE void TakeComplementOfErf(typename Of<lanes>::Vector& x) {
  using Number = typename Of<lanes>::Vector;
  HoldBelow<lanes>(x, 8.9F);
  Number t = 1.0F + 0.3275911F * x;
  TakeReciprocal<lanes>(t);
  Number sum = Number{} + 1.061405429F;
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  Number power = -x * x;
  TakeExponentialWithin<lanes>(power);
  x = sum * t * power;
}

/// Near zero the Taylor polynomial (within 1.5e-8 up to 0.5); beyond, by the complement.
struct Erf {
  template <int64_t lanes>
  COLLAGE_INLINE static void Take(typename Of<lanes>::Vector& x) {
    using Number = typename Of<lanes>::Vector;
    const Number square = x * x;
    Number series = Number{} - 1.0F / 1320;
    series = series * square + 1.0F / 216;
    series = series * square - 1.0F / 42;
    series = series * square + 1.0F / 10;
    series = series * square - 1.0F / 3;
    series = series * square + 1.0F;
    Number size = x;
    TakeAbsolute<lanes>(size);
    Number complement = size;
    TakeComplementOfErf<lanes>(complement);
    Number far = 1.0F - complement;
    TakeSignOf<lanes>(x, far);
    x = size < Number{} + 0.5F ? 1.12837917F * x * series : far;
  }
};

/// x / 2 (1 + erf(x / sqrt(2))), by the complement of erf where that is small: nothing is lost of what is left of it.
struct GeluByErf {
  template <int64_t lanes>
  COLLAGE_INLINE static void Take(typename Of<lanes>::Vector& x) {
    using Number = typename Of<lanes>::Vector;
    Number complement = 0.70710678F * x;
    TakeAbsolute<lanes>(complement);
    TakeComplementOfErf<lanes>(complement);
    const Number outside = 0.5F * x * complement;
    x = x < Number{} ? outside : x - outside;
  }
};

/// x / 2 (1 + tanh(y)) = x sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluByTanh {
  template <int64_t lanes>
  COLLAGE_INLINE static void Take(typename Of<lanes>::Vector& x) {
    typename Of<lanes>::Vector factor = 1.59576912F * x * (1.0F + 0.044715F * x * x);
    Sigmoid::Take<lanes>(factor);
    x = x * factor;
  }
};

struct Swish {
  template <int64_t lanes>
  COLLAGE_INLINE static void Take(typename Of<lanes>::Vector& x) {
    typename Of<lanes>::Vector factor = x;
    Sigmoid::Take<lanes>(factor);
    x = x * factor;
  }
};

}  // namespace
}  // namespace collage::xsmm
