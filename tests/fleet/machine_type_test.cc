// Against a real server (tests/postgresql_server.py).
#include "collage/fleet/machine_type.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "collage/fleet/job_queue.h"

namespace collage {
namespace {

Calibration Of(double arithmetic, double memory, double width = 0.01) {
  return {{Interval{arithmetic, arithmetic * (1 + width)}, Interval{memory, memory * (1 + width)}}};
}

TEST(CalibrationTest, MachinesAgreeWithinTheirNoise) {
  EXPECT_TRUE(Agree(Of(1e-3, 2e-3), Of(1e-3, 2e-3)));
  EXPECT_TRUE(Agree(Of(1e-3, 2e-3), Of(1.05e-3, 2e-3)));
  EXPECT_FALSE(Agree(Of(1e-3, 2e-3), Of(1.1e-3, 2e-3)));
  EXPECT_FALSE(Agree(Of(1.1e-3, 2e-3), Of(1e-3, 2e-3)));
  EXPECT_FALSE(Agree(Of(1e-3, 2e-3), Of(1e-3, 3e-3)));
  // One that cannot say what it takes.
  EXPECT_TRUE(Agree(Of(1e-3, 2e-3, /*width=*/0.2), Of(1.1e-3, 2e-3)));
}

TEST(CalibrationTest, IsMeasured) {
  const Calibration here = Calibrate();
  for (const Interval& seconds : here.seconds) {
    EXPECT_GT(seconds.low, 1e-7);
    EXPECT_LE(seconds.low, seconds.high);
    EXPECT_LT(seconds.high, 1);
  }
}

TEST(MachineTypeTest, MachinesThatDisagreeAreNumbered) {
  const char* url = std::getenv("COLLAGE_TEST_POSTGRESQL");
  ASSERT_NE(url, nullptr) << "run by tests/postgresql_server.py";
  MeasurementCache cache = MeasurementCache::Open(url).value();
  ASSERT_TRUE(JobQueue::Open(cache));
  const auto type = [&](const char* fingerprint, const Calibration& calibration) {
    return MachineType(cache.database(), fingerprint, calibration).value();
  };
  EXPECT_EQ(type("cpu", Of(1e-3, 2e-3)), "cpu");
  EXPECT_EQ(type("cpu", Of(1.02e-3, 2e-3)), "cpu");
  EXPECT_EQ(type("cpu", Of(1.5e-3, 2e-3)), "cpu#2");
  EXPECT_EQ(type("cpu", Of(1.5e-3, 3e-3)), "cpu#3");
  EXPECT_EQ(type("cpu", Of(1.5e-3, 2.02e-3)), "cpu#2");
  EXPECT_EQ(type("cpu", Of(1e-3, 2e-3)), "cpu");
  EXPECT_EQ(type("other", Of(1.5e-3, 3e-3)), "other");
}

}  // namespace
}  // namespace collage
