#include "collage/tensor/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/support/check.h"

namespace collage {
namespace {

constexpr uint8_t kPowerNan = 0xff;
constexpr int kPowerBias = 127;

/// Sign, exponent and mantissa bits, in this order; no exponent stands for NaN and infinity alone unless `has_infinity`.
struct Format {
  DType dtype;
  int mantissa_bits;
  int bias;
  uint8_t sign;      ///< the sign's bit
  uint8_t greatest;  ///< bits of the largest number
  bool has_infinity;
  bool has_nan;
  bool has_negative_zero;  ///< without one its bits are NaN
};

constexpr Format kFormats[] = {{DType::kFloat8E4M3FN, 3, 7, 0x80, 0x7e, false, true, true},
                               {DType::kFloat8E4M3FNUZ, 3, 8, 0x80, 0x7f, false, true, false},
                               {DType::kFloat8E5M2, 2, 15, 0x80, 0x7b, true, true, true},
                               {DType::kFloat8E5M2FNUZ, 2, 16, 0x80, 0x7f, false, true, false},
                               {DType::kFloat4E2M1, 1, 1, 0x08, 0x07, false, false, true}};

const Format* FindFormat(DType dtype) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& format) { return format.dtype == dtype; });
  return found == std::end(kFormats) ? nullptr : found;
}

const Format& FormatOf(DType dtype) {
  const Format* format = FindFormat(dtype);
  COLLAGE_CHECK(format != nullptr);
  return *format;
}

float MagnitudeOf(uint8_t bits, const Format& format) {
  const int exponent = bits >> format.mantissa_bits;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int leading = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return std::ldexp(static_cast<float>(leading + mantissa), std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

/// Negative zero where there is no NaN.
uint8_t NanOf(const Format& format, uint8_t sign) {
  const bool is_signed = format.has_nan && format.has_negative_zero;
  return is_signed ? sign | 0x7f : format.sign;
}

/// Rounded as if the exponent had no end; what exceeds `greatest` is for the caller.
unsigned RoundedBits(double magnitude, const Format& format) {
  if (magnitude == 0) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent with f in [0.5, 1)
  const int least = 1 - format.bias - format.mantissa_bits;
  const int scale = std::max(exponent - 1 - format.mantissa_bits, least);
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // A carry out of the mantissa lands in the exponent, as it should.
  return units + (static_cast<unsigned>(scale - least) << format.mantissa_bits);
}

}  // namespace

bool IsFloat8(DType dtype) { return dtype == DType::kFloat8E8M0 || FindFormat(dtype) != nullptr; }

uint8_t ToFloat8(float value, DType dtype, bool saturate) {
  if (dtype == DType::kFloat8E8M0) return ToPowerOfTwo(value, PowerRounding::kNearest, saturate);
  const Format& format = FormatOf(dtype);
  const uint8_t sign = std::signbit(value) ? format.sign : 0;
  if (std::isnan(value)) return NanOf(format, sign);
  const double magnitude = std::abs(static_cast<double>(value));
  const unsigned bits = std::isinf(value) ? std::numeric_limits<unsigned>::max() : RoundedBits(magnitude, format);
  if (bits <= format.greatest) return bits == 0 && !format.has_negative_zero ? 0 : static_cast<uint8_t>(sign | bits);
  if (saturate || !format.has_nan) return sign | format.greatest;
  return format.has_infinity ? static_cast<uint8_t>(sign | (format.greatest + 1)) : NanOf(format, sign);
}

float FromFloat8(uint8_t bits, DType dtype) {
  if (dtype == DType::kFloat8E8M0) {
    return bits == kPowerNan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, bits - kPowerBias);
  }
  const Format& format = FormatOf(dtype);
  const uint8_t magnitude = bits & (format.sign - 1);
  const float sign = (bits & format.sign) != 0 ? -1.0F : 1.0F;
  const bool is_single_nan = !format.has_negative_zero && bits == format.sign;
  if (is_single_nan) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude <= format.greatest) return sign * MagnitudeOf(magnitude, format);
  const bool is_infinite = format.has_infinity && magnitude == format.greatest + 1;
  return is_infinite ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
}

uint8_t ToPowerOfTwo(float value, PowerRounding rounding, bool saturate) {
  if (std::isnan(value) || value < 0) return kPowerNan;
  if (value == 0) return saturate ? 0 : kPowerNan;
  if (std::isinf(value)) return saturate ? kPowerNan - 1 : kPowerNan;
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);  // in [0.5, 1): the power below is 2^(exponent - 1)
  const bool is_power = fraction == 0.5F;
  const bool goes_up = !is_power && (rounding == PowerRounding::kUp || (rounding == PowerRounding::kNearest && fraction >= 0.75F));
  const int bits = exponent - 1 + (goes_up ? 1 : 0) + kPowerBias;
  if (bits >= 0 && bits < kPowerNan) return static_cast<uint8_t>(bits);
  if (!saturate) return kPowerNan;
  return bits < 0 ? 0 : kPowerNan - 1;
}

}  // namespace collage
