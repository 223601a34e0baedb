#include "collage/tensor/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(PrecisionTest, IsReadWithItsToleranceOrTheUsualOne) {
  EXPECT_EQ(*Precision::Parse("bf16"), (Precision{DType::kBFloat16, kToleranceOfBFloat16}));
  EXPECT_EQ(*Precision::Parse("bf16=0.02"), (Precision{DType::kBFloat16, 0.02}));
  EXPECT_EQ(*Precision::Parse("bf16=1e-3"), (Precision{DType::kBFloat16, 1e-3}));
  EXPECT_EQ(*Precision::Parse("int8-weights"), (Precision{DType::kInt8, kToleranceOfInt8Weights}));
  EXPECT_EQ(*Precision::Parse("int8-weights=0.1"), (Precision{DType::kInt8, 0.1}));
}

TEST(PrecisionTest, IsWrittenAsItIsRead) {
  for (const double tolerance : {0.02, 1.0 / 3, kToleranceOfBFloat16, 1e-7}) {
    const Precision precision{DType::kBFloat16, tolerance};
    EXPECT_EQ(*Precision::Parse(ToString(precision)), precision) << ToString(precision);
  }
  EXPECT_EQ(ToString(*Precision::Parse("bf16=0.020")), "bf16=0.02");
  EXPECT_EQ(ToString(*Precision::Parse("int8-weights=0.020")), "int8-weights=0.02");
}

TEST(PrecisionTest, OtherTextsAreErrorsThatSayWhatWouldBeRight) {
  for (const char* text : {"", "bf", "fp16", "BF16", "bf16x", "=0.1", "int8", "int8-weights2", "bf16,int8-weights", "bf16:0.1"}) {
    const Result<Precision> precision = Precision::Parse(text);
    ASSERT_FALSE(precision) << text;
    EXPECT_THAT(precision.error().message, testing::HasSubstr("expected bf16 or int8-weights")) << text;
  }
  for (const char* text :
       {"bf16=", "bf16=x", "bf16=0", "bf16=1", "bf16=-0.1", "bf16=nan", "bf16=0.1x", "bf16= 0.1", "bf16=1e999", "int8-weights="}) {
    const Result<Precision> precision = Precision::Parse(text);
    ASSERT_FALSE(precision) << text;
    EXPECT_THAT(precision.error().message, testing::HasSubstr("no number above 0 and below 1")) << text;
  }
}

}  // namespace
}  // namespace collage
