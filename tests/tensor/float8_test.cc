// Formats of 8 bits and less against what defines them: every number of a format is known, so the nearest one can be searched.

#include "collage/tensor/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "collage/tensor/narrow.h"

namespace collage {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<DType> kFormats = {DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ,
                                     DType::kFloat4E2M1};

int CountOfBits(DType dtype) { return dtype == DType::kFloat4E2M1 ? 16 : 256; }

TEST(Float8Test, EveryNumberSurvivesARoundTrip) {
  std::vector<DType> dtypes = kFormats;
  dtypes.push_back(DType::kFloat8E8M0);
  for (const DType dtype : dtypes) {
    for (int bits = 0; bits < CountOfBits(dtype); ++bits) {
      const float value = FromFloat8(static_cast<uint8_t>(bits), dtype);
      if (std::isnan(value)) continue;
      EXPECT_EQ(ToFloat8(value, dtype, false), bits) << Name(dtype);
    }
  }
}

TEST(Float8Test, HasTheEndsThatItsDefinitionGives) {
  const auto greatest = [](DType dtype) { return GreatestFinite(dtype); };
  EXPECT_EQ(greatest(DType::kFloat8E4M3FN), 448);
  EXPECT_EQ(greatest(DType::kFloat8E4M3FNUZ), 240);
  EXPECT_EQ(greatest(DType::kFloat8E5M2), 57344);
  EXPECT_EQ(greatest(DType::kFloat8E5M2FNUZ), 57344);
  EXPECT_EQ(greatest(DType::kFloat4E2M1), 6);
  EXPECT_EQ(greatest(DType::kFloat8E8M0), 0x1p127);
  EXPECT_EQ(FromFloat8(1, DType::kFloat8E4M3FN), 0x1p-9F);
  EXPECT_EQ(FromFloat8(1, DType::kFloat8E5M2), 0x1p-16F);
  EXPECT_EQ(FromFloat8(1, DType::kFloat4E2M1), 0.5F);
  EXPECT_EQ(FromFloat8(0, DType::kFloat8E8M0), 0x1p-127F);
}

/// No number of the format is nearer, and of two that are as near the one with an even last bit is taken.
TEST(Float8Test, RoundsToTheNearestEven) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> exponent(-18, 17);
  for (const DType dtype : kFormats) {
    for (int round = 0; round < 2000; ++round) {
      float value = std::exp2(exponent(random)) * (round % 2 == 0 ? 1.0F : -1.0F);
      if (round % 3 == 0)
        value = FromFloat8(static_cast<uint8_t>(round % 100), dtype) + FromFloat8(static_cast<uint8_t>(round % 100 + 1), dtype);
      if (round % 3 == 0) value /= 2;  // a tie
      if (std::isnan(value) || std::abs(value) > GreatestFinite(dtype)) continue;
      const uint8_t found = ToFloat8(value, dtype);
      const double distance = std::abs(static_cast<double>(FromFloat8(found, dtype)) - value);
      for (int bits = 0; bits < CountOfBits(dtype); ++bits) {
        const float other = FromFloat8(static_cast<uint8_t>(bits), dtype);
        if (!std::isfinite(other) || other == FromFloat8(found, dtype)) continue;
        const double other_distance = std::abs(static_cast<double>(other) - value);
        ASSERT_LE(distance, other_distance) << Name(dtype) << " of " << value;
        if (other_distance == distance) {
          ASSERT_EQ(found % 2, 0) << Name(dtype) << " of " << value;
        }
      }
    }
  }
}

// The two tables of ONNX's Cast.
TEST(Float8Test, SaturatesOrNot) {
  for (const DType dtype : kFormats) {
    EXPECT_EQ(FromFloat8(ToFloat8(kInfinity, dtype), dtype), GreatestFinite(dtype));
    EXPECT_EQ(FromFloat8(ToFloat8(-1e9F, dtype), dtype), -GreatestFinite(dtype));
    const bool has_negative_zero = dtype != DType::kFloat8E4M3FNUZ && dtype != DType::kFloat8E5M2FNUZ;
    EXPECT_EQ(std::signbit(FromFloat8(ToFloat8(-0.0F, dtype), dtype)), has_negative_zero);
  }
  EXPECT_TRUE(std::isnan(FromFloat8(ToFloat8(465, DType::kFloat8E4M3FN, false), DType::kFloat8E4M3FN)));
  EXPECT_EQ(FromFloat8(ToFloat8(463, DType::kFloat8E4M3FN, false), DType::kFloat8E4M3FN), 448);
  EXPECT_TRUE(std::isnan(FromFloat8(ToFloat8(-kInfinity, DType::kFloat8E4M3FNUZ, false), DType::kFloat8E4M3FNUZ)));
  EXPECT_EQ(FromFloat8(ToFloat8(-kInfinity, DType::kFloat8E5M2, false), DType::kFloat8E5M2), -kInfinity);
  EXPECT_TRUE(std::isnan(FromFloat8(ToFloat8(NAN, DType::kFloat8E5M2FNUZ), DType::kFloat8E5M2FNUZ)));
}

TEST(Float8Test, PowersOfTwoAreRoundedAsAsked) {
  const auto power = [](float value, PowerRounding rounding, bool saturate = true) {
    return FromFloat8(ToPowerOfTwo(value, rounding, saturate), DType::kFloat8E8M0);
  };
  EXPECT_EQ(power(5, PowerRounding::kUp), 8);
  EXPECT_EQ(power(5, PowerRounding::kDown), 4);
  EXPECT_EQ(power(5, PowerRounding::kNearest), 4);
  EXPECT_EQ(power(7, PowerRounding::kNearest), 8);
  EXPECT_EQ(power(4, PowerRounding::kUp), 4);
  EXPECT_EQ(power(kInfinity, PowerRounding::kUp), 0x1p127F);
  EXPECT_EQ(power(0, PowerRounding::kUp), 0x1p-127F);
  EXPECT_TRUE(std::isnan(power(0, PowerRounding::kNearest, false)));
  EXPECT_TRUE(std::isnan(power(-1, PowerRounding::kUp)));
}

TEST(NarrowTest, IntegersKeepTheirLowBits) {
  const Tensor wide = Tensor::FromVector(TensorType{{5}, DType::kInt8}, std::vector<int8_t>{-8, 7, 8, -9, 100});
  Tensor four(TensorType{{5}, DType::kInt4});
  Narrow(wide, four);
  EXPECT_EQ(four.ToInt64(), (std::vector<int64_t>{-8, 7, -8, 7, 4}));
  const Tensor bytes = Tensor::FromVector(TensorType{{3}, DType::kUInt8}, std::vector<uint8_t>{3, 4, 255});
  Tensor two(TensorType{{3}, DType::kUInt2});
  Narrow(bytes, two);
  EXPECT_EQ(two.ToInt64(), (std::vector<int64_t>{3, 0, 3}));
  EXPECT_EQ(LimitsOfInteger(DType::kInt2).low, -2);
  EXPECT_EQ(LimitsOfInteger(DType::kUInt4).high, 15U);
}

}  // namespace
}  // namespace collage
