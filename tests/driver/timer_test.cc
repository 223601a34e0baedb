#include "collage/driver/timer.h"

#include <gtest/gtest.h>

#include "collage/driver/compile.h"

namespace collage {
namespace {

TEST(TimerTest, WaitingForOthersTakesNoMoreOfASmallBudget) {
  const double usual = MeasureOptions().patience_seconds;
  EXPECT_DOUBLE_EQ(WithinBudget({}, CompileOptions::kUsualBudget).patience_seconds, usual);
  EXPECT_DOUBLE_EQ(WithinBudget({}, CompileOptions::kUsualBudget / 5).patience_seconds, usual / 5);
  EXPECT_DOUBLE_EQ(WithinBudget({}, 2 * CompileOptions::kUsualBudget).patience_seconds, usual);
  EXPECT_EQ(WithinBudget({}, 0).patience_seconds, 0);
}

}  // namespace
}  // namespace collage
