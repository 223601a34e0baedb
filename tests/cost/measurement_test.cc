#include "collage/cost/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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
  SteadyKernel() {
    inputs_.push_back({TensorType{{4}, DType::kFloat32}, Layout()});
    outputs_.push_back({TensorType{{4}, DType::kFloat32}, Layout()});
  }
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override {
    ++runs;
    SimulatedClock::Pass(1e-3);
    return {};
  }
  int runs = 0;
};

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

}  // namespace
}  // namespace collage
