#include "collage/tensor/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace collage {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// What the bits mean by the standard's definition.
double ByDefinition(int bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

TEST(Float16Test, EveryNumberIsWhatItsBitsMeanAndGoesBack) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float found = FromFloat16(static_cast<uint16_t>(bits));
    const double expected = ByDefinition(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << bits;
      EXPECT_TRUE(std::isnan(FromFloat16(ToFloat16(found)))) << bits;
      continue;
    }
    ASSERT_EQ(found, expected) << bits;
    ASSERT_EQ(std::signbit(found), std::signbit(expected)) << bits;
    ASSERT_EQ(ToFloat16(found), bits);
  }
}

TEST(Float16Test, NumbersBetweenTwoGoToTheNearerOneAndFromTheMiddleToTheEvenOne) {
  for (int low = 0; low < 0x7c00; ++low) {
    // Behind the greatest number lies what would be the next one, had the format more exponents.
    const double next = low == 0x7bff ? 65536 : ByDefinition(low + 1);
    const auto middle = static_cast<float>((ByDefinition(low) + next) / 2);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(ToFloat16(middle), low + low % 2);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, kInfinity)), low + 1);
    ASSERT_EQ(ToFloat16(-middle), 0x8000 | (low + low % 2));
  }
}

TEST(Float16Test, WhatIsTooLargeIsInfiniteAndWhatIsTooSmallIsZeroOfItsSign) {
  for (const float large : {65520.0f, 65536.0f, 1e30f, std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(ToFloat16(large), 0x7c00);
    EXPECT_EQ(ToFloat16(-large), 0xfc00);
  }
  for (const float small : {0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(), 0x1p-25f}) {
    EXPECT_EQ(ToFloat16(small), 0);
    EXPECT_EQ(ToFloat16(-small), 0x8000);
  }
}

}  // namespace
}  // namespace collage
