#include "collage/op/quantised_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace collage {
namespace {

using ::testing::ElementsAre;

Tensor Floats(const Shape& shape, const std::vector<float>& values) { return Tensor::FromVector<float>({shape, DType::kFloat32}, values); }

TEST(QuantisedWeightsTest, AreFoundAgainByChannel) {
  const float a = 0.0173F;
  const float b = 0.3F;
  const auto found = QuantiseExactly(Floats({2, 3}, {-128 * a, 127 * a, 3 * a, 0, 7 * b, -5 * b}), 0);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->values.ToInt64(), ElementsAre(-128, 127, 3, 0, 7, -5));
  EXPECT_FLOAT_EQ(found->scales[0], a);
  EXPECT_FLOAT_EQ(found->scales[1], b);
}

TEST(QuantisedWeightsTest, ChannelsLieAlongAnyAxisAndMayBeZero) {
  const auto found = QuantiseExactly(Floats({2, 2}, {0.5F, 0, 1.5F, 0}), 1);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->values.ToInt64(), ElementsAre(1, 0, 3, 0));
  EXPECT_THAT(found->scales, ElementsAre(0.5F, 1));
}

TEST(QuantisedWeightsTest, OtherNumbersAreNone) {
  EXPECT_FALSE(QuantiseExactly(Floats({1, 3}, {0.1F, 0.2718F, 0.31415F}), 0));
  EXPECT_FALSE(QuantiseExactly(Floats({1, 3}, {1, 127, 128}), 0)) << "128 is no number of 8 bits, and 127 no multiple of 2";
  EXPECT_FALSE(QuantiseExactly(Floats({1, 1}, {std::numeric_limits<float>::infinity()}), 0));
  // In two channels each is a multiple of its own step, in one of none.
  EXPECT_TRUE(QuantiseExactly(Floats({2, 2}, {100.1F, 1.1F * 91, 1, 2}), 0));
}

TEST(RoundedWeightsTest, EachChannelHasTheScaleOfItsLargest) {
  const auto rows = Round(Floats({2, 3}, {254, -127, 3, -0.5F, 0.25F, 0}), 0);
  ASSERT_TRUE(rows);
  EXPECT_THAT(rows->values.ToInt64(), ElementsAre(127, -64, 2, -127, 64, 0)) << "halves to the even one";
  EXPECT_THAT(rows->scales, ElementsAre(2, 0.5F / 127));
  const auto columns = Round(Floats({2, 3}, {254, -127, 3, -0.5F, 0.25F, 0}), 1);
  ASSERT_TRUE(columns);
  EXPECT_THAT(columns->values.ToInt64(), ElementsAre(127, -127, 127, 0, 0, 0));
  EXPECT_THAT(columns->scales, ElementsAre(2, 1, 3.0F / 127));
}

TEST(RoundedWeightsTest, WhatWasRoundedStaysAsItIs) {
  Tensor weights(TensorType{{40, 100}, DType::kFloat32});
  FillRandom(weights, 3);
  for (const size_t axis : {0U, 1U}) {
    const auto once = Round(weights, axis);
    ASSERT_TRUE(once);
    Tensor numbers(weights.type());
    for (int64_t i = 0; i < 40 * 100; ++i)
      numbers.MutableData<float>()[i] =
          static_cast<float>(once->values.Data<int8_t>()[i]) * once->scales[static_cast<size_t>(axis == 0 ? i / 100 : i % 100)];
    const auto again = Round(numbers, axis);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->values.ToInt64(), once->values.ToInt64());
  }
}

TEST(RoundedWeightsTest, ZeroIsAChannelAndInfinityIsNone) {
  const auto rounded = Round(Floats({3, 2}, {0, 0, 1e-42F, -1e-42F, 1, 1}), 0);
  ASSERT_TRUE(rounded);
  EXPECT_THAT(rounded->values.ToInt64(), ElementsAre(0, 0, 0, 0, 127, 127));
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_FALSE(Round(Floats({1, 2}, {1, value}), 0));
}

}  // namespace
}  // namespace collage
