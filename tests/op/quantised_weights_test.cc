#include "collage/op/quantised_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace collage
