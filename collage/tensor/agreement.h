#pragma once

// How far what was computed is from the reference, and whether that will do. Kernels, whole plans and tests ask here, so that there is
// one tolerance and one rule.

#include <cstdint>
#include <span>
#include <string>

#include "collage/tensor/tensor.h"

namespace collage {

/// Largest difference from the reference that rounding explains, relative to the largest value of a tensor. Errors of a sum of n products
/// grow as sqrt(n) units of roundoff (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019): of float32, 6e-8,
/// and the longest sums of common networks, 25 088 products, that is 1e-5; fast convolutions lose another decimal digit. float64 is held
/// to the same, because there are libraries that compute it as float32.
inline constexpr double kTolerance = 1e-4;

/// The above where values are rounded to this type on the way: the two sides may differ by one unit in its last place more, because a
/// value close to the middle between two neighbours may be rounded either way.
double Tolerance(DType rounded_to);

/// What a comparison of tensors with those of the reference found.
struct Agreement {
  /// Largest |found - expected|, less the step, where both are finite, relative to the largest finite |expected| of its tensor (to 1 where
  /// all are 0).
  double difference = 0;
  int64_t elements = 0;  ///< of the reference
  int64_t finite = 0;    ///< elements that are finite in the reference: those that were compared
  /// Elements that no rounding explains: NaN or infinite on one side only, infinities of opposite sign, booleans that differ, integers that
  /// differ by more than the step. Also, of a tensor of another type, or one that is missing, all elements, and at least one.
  int64_t unequal = 0;
  /// Tensors that have elements, but none that is finite in the reference. Nothing is known of them.
  int64_t uncompared = 0;
};

/// Of one tensor. Two NaNs agree in being no number, but are no comparison. `step`: how far apart the neighbours lie to which values were
/// quantised on the way, as this tensor counts. A value close to the middle between two may be rounded either way, so that much explains
/// itself: one of a quantised integer, the scale of what was dequantised. 0 where nothing is quantised.
Agreement Compare(const Tensor& found, const Tensor& expected, double step = 0);
/// Of as many; more of `found` than of `expected` are unequal. No steps: none has any.
Agreement Compare(std::span<const Tensor> found, std::span<const Tensor> expected, std::span<const double> steps = {});

/// False where some tensor has no finite element in the reference: then nothing has been seen to differ, and nothing to agree.
bool IsComparison(const Agreement& agreement);
/// Every tensor was compared and agrees.
bool Passes(const Agreement& agreement, double tolerance = kTolerance);
/// Why it does not pass: "differs from the reference by 3.0e-04 of the largest value". Empty where it does.
std::string Objection(const Agreement& agreement, double tolerance = kTolerance);

}  // namespace collage
