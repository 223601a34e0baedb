#include "collage/cost/cost.h"

#include <gtest/gtest.h>

#include "collage/cost/statistics.h"

namespace collage {
namespace {

TEST(CostTest, IsAdditiveAndTotallyOrdered) {
  EXPECT_LT(Cost::Microseconds(5), Cost::Unknown());
  EXPECT_LT(Cost::Unknown(), Cost::Invalid());
  EXPECT_TRUE((Cost::Microseconds(5) + Cost::Unknown()).IsUnknown());
  EXPECT_TRUE((Cost::Invalid() + Cost::Unknown()).IsInvalid());
  EXPECT_EQ(Cost::Microseconds(0.1) + Cost::Microseconds(0.2), Cost::Microseconds(0.3));
}

TEST(PercentileTest, InterpolatesBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(Percentile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Percentile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile({4, 1, 3, 2}, 1), 4);
}

}  // namespace
}  // namespace collage
