#pragma once

#include <string>

#include "collage/support/result.h"
#include "collage/tensor/agreement.h"
#include "collage/tensor/dtype.h"

namespace collage {

/// A user's permit to compute a model of float32 with fewer bits: what may be stored in which type, and how far the model's results may
/// then be from those of the float32 reference (Agreement::difference). Sums stay float32.
struct Precision {
  /// kBFloat16: any number, which is also multiplied so. kInt8: the constant weights of products alone, as whole numbers in [-127, 127]
  /// times one scale for each channel of the result; what they are multiplied with stays float32.
  DType stored = DType::kBFloat16;
  double tolerance = 0;

  /// "bf16", "int8-weights", or one of them with a tolerance, "bf16=0.02". Errors say what was found and what would be right.
  static Result<Precision> Parse(const std::string& text);
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// Where no tolerance is stated. bfloat16 has 8 significant bits, so storing a number adds an error of up to 2^-8 of it. Errors of the
/// layers of a network are independent, and so add up as the root of their number (as in kTolerance): 8 times that is for 64 layers, more
/// than ResNet-50 or a BERT of 12 blocks store one after another.
inline constexpr double kToleranceOfBFloat16 = kTolerance + 8 * 0x1p-8;

/// Where no tolerance is stated. A weight is off by up to half a step of its channel, and a step is a 127th of the channel's largest
/// weight. Errors are spread evenly over the step, so their root mean square is 1/sqrt(12) of it; that of some thousand normally
/// distributed weights is 1/3.5 of the largest. So weights are off by 3.5 / (127 sqrt(12)) = 2^-7 of themselves, and a sum of many products
/// by as much. Errors of layers are independent and add up as above: 8 times that is for 64 layers, such as the 49 of GPT-2.
inline constexpr double kToleranceOfInt8Weights = kTolerance + 8 * 0x1p-7;

/// "bf16=0.02"; Precision::Parse reads it back as it is.
std::string ToString(const Precision& precision);
/// "bf16" or "int8-weights".
std::string NameOf(const Precision& precision);

}  // namespace collage
