#include "collage/cost/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collage/cost/kernel_timer.h"
#include "tests/support/simulated_clock.h"

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

TEST(PercentileTest, TheIntervalHoldsTheTrueMedianAboutAsOftenAsItClaims) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> distribution(0.0, 0.5);  // median 1
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(60);
    for (double& sample : samples) sample = distribution(random);
    const double median = Percentile(samples, 0.5);
    // The interval is not symmetric; twice the half-width around the median covers it.
    if (std::abs(median - 1) <= 2 * PercentileHalfWidth(samples, 0.5)) ++held;
  }
  EXPECT_GT(held, kTrials * 95 / 100);
}

class SteadyKernel : public Kernel {
 public:
  explicit SteadyKernel(double seconds = 1e-3) : seconds_(seconds) {
    inputs_.push_back({TensorType{{4}, DType::kFloat32}, Layout()});
    outputs_.push_back({TensorType{{4}, DType::kFloat32}, Layout()});
  }
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override {
    ++runs;
    SimulatedClock::Pass(seconds_);
    return {};
  }
  int runs = 0;

 private:
  double seconds_;
};

TEST(MeasurementTest, TheLeastCostIsWhatWasSeenBetweenDisturbances) {
  const Measurement disturbed{{14.445, 1.188, 7.394, 2.390, 1.333, 1.034, 4.743, 100.918}, {}};
  EXPECT_EQ(disturbed.ToLeastCost(0.5), Cost::Seconds(1.188));
  const Measurement steady{std::vector<double>(9, 2.0), {}};
  EXPECT_EQ(steady.ToLeastCost(0.5), steady.ToCost(0.5));
  EXPECT_TRUE((Measurement{{1.0}, "crashed"}).ToLeastCost(0.5).IsInvalid());
}

TEST(MeasureKernelTest, TakesSamplesUntilTheBudgetIsSpent) {
  const SimulatedClock clock;
  SteadyKernel kernel;
  MeasureOptions options;
  options.relative_width = 0;
  const Measurement measurement = MeasureKernel(kernel, Device{}, options);
  EXPECT_NEAR(measurement.ToCost(0.5).ToSeconds(), 1e-3, 5e-6);
  EXPECT_GE(static_cast<int>(measurement.samples.size()), options.least_samples);
  EXPECT_EQ(kernel.runs, static_cast<int>(measurement.samples.size()) + options.warm_up);
}

TEST(MeasureKernelTest, ASlowKernelIsNotRunOften) {
  const SimulatedClock clock;
  SteadyKernel kernel;
  MeasureOptions options;
  options.most_seconds = 0.003;
  EXPECT_GE(MeasureKernel(kernel, Device{}, options).samples.size(), 2u);
  EXPECT_LE(kernel.runs, 5);
}

class FailingKernel : public Kernel {
 public:
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override { return Fail("no such instruction"); }
};

TEST(MeasureKernelTest, AFailingKernelIsInvalidWithItsReason) {
  FailingKernel kernel;
  const Measurement measurement = MeasureKernel(kernel, Device{}, {});
  EXPECT_TRUE(measurement.ToCost(0.5).IsInvalid());
  EXPECT_EQ(measurement.invalid_reason, "no such instruction");
}

TEST(RivalTest, APriceBesideTheRivalIsOneOfTheMomentWhenThatWasPriced) {
  const SimulatedClock clock;
  constexpr double kDrift = 1.2;
  SteadyKernel kernel(0.9e-3 * kDrift);
  SteadyKernel rival(1e-3 * kDrift);
  MeasureOptions options;
  options.rival_seconds = 1e-3;
  const Measurement measurement = MeasureBesideRival(kernel, rival, Device{}, options);
  EXPECT_GE(static_cast<int>(measurement.samples.size()), options.least_samples);
  for (const double sample : measurement.samples) EXPECT_NEAR(sample, 0.9e-3, 5e-6);
  EXPECT_EQ(kernel.runs, rival.runs);
}

TEST(RivalTest, OnlyWhoComesNearIsTimedBesideIt) {
  const SimulatedClock clock;
  int compiled = 0;
  const CompileRival compile = [&]() -> Result<std::unique_ptr<Kernel>> {
    ++compiled;
    return std::make_unique<SteadyKernel>(2e-3);
  };
  MeasureOptions options;
  options.rival_seconds = 1e-3;
  for (const double seconds : {0.5e-3, 1.5e-3}) {
    SteadyKernel kernel(seconds);
    EXPECT_NEAR(MeasureWithRival(kernel, Device{}, options, compile).ToCost(0.5).ToSeconds(), seconds, 5e-6);
  }
  EXPECT_EQ(compiled, 0);
  SteadyKernel near(1.2e-3);
  EXPECT_NEAR(MeasureWithRival(near, Device{}, options, compile).ToCost(0.5).ToSeconds(), 0.6e-3, 5e-6) << "the rival is slower by now";
  EXPECT_EQ(compiled, 1);
}

TEST(RivalTest, ARivalThatFailsHasNoSay) {
  const SimulatedClock clock;
  MeasureOptions options;
  options.rival_seconds = 1e-3;
  SteadyKernel kernel;
  for (const CompileRival& compile : {CompileRival([] { return std::make_unique<FailingKernel>(); }),
                                      CompileRival([]() -> Result<std::unique_ptr<Kernel>> { return Fail("no such tile"); })}) {
    EXPECT_NEAR(MeasureWithRival(kernel, Device{}, options, compile).ToCost(0.5).ToSeconds(), 1e-3, 5e-6);
  }
}

}  // namespace
}  // namespace collage
