#include "collage/cost/noise_floor.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(NoiseFloorTest, IsAShare) {
  const double floor = MeasureNoiseFloor({DeviceKind::kCpu, 0, 1}, {});
  EXPECT_GT(floor, 0);
  EXPECT_LT(floor, 10);
}

}  // namespace
}  // namespace collage
