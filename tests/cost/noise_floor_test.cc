#include "collage/cost/noise_floor.h"

#include <gtest/gtest.h>

#include <chrono>

namespace collage {
namespace {

TEST(NoiseFloorTest, IsAShareAndQuicklyMeasured) {
  const auto start = std::chrono::steady_clock::now();
  const double floor = MeasureNoiseFloor({DeviceKind::kCpu, 0, 1}, {});
  EXPECT_GT(floor, 0);
  EXPECT_LT(floor, 10);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

}  // namespace
}  // namespace collage
