#pragma once

#include <string>

#include "collage/support/result.h"
#include "collage/tensor/agreement.h"
#include "collage/tensor/dtype.h"

namespace collage {

/// A user's permit to compute a model of float32 with fewer bits: in which type numbers may be stored and multiplied (their sums stay
/// float32), and how far the model's results may then be from those of the float32 reference (Agreement::difference).
struct Precision {
  DType stored = DType::kBFloat16;
  double tolerance = 0;

  /// "bf16" or "bf16=0.02". Errors say what was found and what would be right.
  static Result<Precision> Parse(const std::string& text);
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// Where no tolerance is stated. bfloat16 has 8 significant bits, so storing a number adds an error of up to 2^-8 of it. Errors of the
/// layers of a network are independent, and so add up as the root of their number (as in kTolerance): 8 times that is for 64 layers, more
/// than ResNet-50 or a BERT of 12 blocks store one after another.
inline constexpr double kToleranceOfBFloat16 = kTolerance + 8 * 0x1p-8;

/// "bf16=0.02"; Precision::Parse reads it back as it is.
std::string ToString(const Precision& precision);
/// "bf16".
std::string NameOf(const Precision& precision);

}  // namespace collage
