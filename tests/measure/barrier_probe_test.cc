#include "collage/measure/barrier_probe.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

constexpr double kCalm = 3e-6;
constexpr double kDisturbed = 700e-6;
constexpr double kPause = 0.02;
constexpr double kPatience = 15;

class BarrierProbeTest : public testing::Test {
 protected:
  /// Regions take as long as `seconds_of_region` says; time passes in pauses.
  BarrierProbe Probe() {
    return BarrierProbe(1, {[this] { SimulatedClock::Pass(seconds_of_region_()); },
                            [this] {
                              ++pauses_;
                              SimulatedClock::Pass(kPause);
                            }});
  }
  double DisturbedUntil(int pauses) const { return pauses_ < pauses ? kDisturbed : kCalm; }

  SimulatedClock clock_;
  std::function<double()> seconds_of_region_ = [] { return kCalm; };
  int pauses_ = 0;
};

TEST_F(BarrierProbeTest, WhatTakesMicrosecondsIsCalm) {
  BarrierProbe probe = Probe();
  EXPECT_TRUE(probe.IsCalm());
  probe.AwaitCalm(kPatience);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(BarrierProbeTest, ASlowBarrierIsSeenEvenAtFirst) {
  seconds_of_region_ = [] { return kDisturbed; };
  BarrierProbe probe = Probe();
  EXPECT_FALSE(probe.IsCalm());
}

TEST_F(BarrierProbeTest, OneSlowRegionOfManyIsNothing) {
  int regions = 0;
  seconds_of_region_ = [&] { return ++regions % 3 == 0 ? kDisturbed : kCalm; };
  BarrierProbe probe = Probe();
  EXPECT_TRUE(probe.IsCalm());
}

TEST_F(BarrierProbeTest, ItWaitsUntilItIsCalm) {
  BarrierProbe probe = Probe();
  seconds_of_region_ = [this] { return DisturbedUntil(30); };
  probe.AwaitCalm(kPatience);
  EXPECT_EQ(pauses_, 30);
  EXPECT_TRUE(probe.HasPatience(kPatience));
}

TEST_F(BarrierProbeTest, PatienceEndsOnceForAll) {
  BarrierProbe probe = Probe();
  seconds_of_region_ = [] { return kDisturbed; };
  probe.AwaitCalm(kPatience);
  EXPECT_NEAR(pauses_ * kPause, kPatience, kPatience / 3) << "looking takes time too";
  EXPECT_FALSE(probe.HasPatience(kPatience));
  const int before = pauses_;
  probe.AwaitCalm(kPatience);
  EXPECT_EQ(pauses_, before);
}

TEST_F(BarrierProbeTest, WhoHasLessPatienceWaitsLess) {
  BarrierProbe probe = Probe();
  seconds_of_region_ = [] { return kDisturbed; };
  probe.AwaitCalm(1);
  EXPECT_NEAR(pauses_ * kPause, 1, 0.4);
  EXPECT_FALSE(probe.HasPatience(1));
  EXPECT_TRUE(probe.HasPatience(kPatience));
}

TEST_F(BarrierProbeTest, ItDoesNotWaitAfterARequestToStop) {
  BarrierProbe probe = Probe();
  seconds_of_region_ = [] { return kDisturbed; };
  const std::atomic<bool> stop{true};
  Progress progress;
  progress.stop_requested = &stop;
  probe.AwaitCalm(kPatience, progress);
  EXPECT_EQ(pauses_, 1);
}

TEST_F(BarrierProbeTest, ItDoesNotWaitBeyondADeadline) {
  BarrierProbe probe = Probe();
  seconds_of_region_ = [] { return kDisturbed; };
  Progress progress;
  progress.deadline = Clock::After(2);
  probe.AwaitCalm(kPatience, progress);
  EXPECT_GE(Clock::now(), progress.deadline);
  EXPECT_LE(Clock::now(), progress.deadline + std::chrono::milliseconds(100));
  EXPECT_TRUE(probe.HasPatience(kPatience));
}

TEST_F(BarrierProbeTest, WhatWasDisturbedIsMeasuredAgain) {
  BarrierProbe probe = Probe();
  int measured = 0;
  const int found = probe.Calmly(kPatience, [&] {
    ++measured;
    // The first time something begins meanwhile, and goes on for ten pauses.
    if (measured == 1) seconds_of_region_ = [this] { return DisturbedUntil(10); };
    return measured;
  });
  EXPECT_EQ(found, 2);
  EXPECT_EQ(pauses_, 10);
}

TEST_F(BarrierProbeTest, WithoutPatienceWhatWasMeasuredIsTaken) {
  BarrierProbe probe = Probe();
  seconds_of_region_ = [] { return kDisturbed; };
  int measured = 0;
  EXPECT_EQ(probe.Calmly(kPatience, [&] { return ++measured; }), 1);
}

}  // namespace
}  // namespace collage
