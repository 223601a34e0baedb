#include "collage/measure/measure_kernel.h"

#include <gtest/gtest.h>

#include "collage/cost/statistics.h"
#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

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

std::vector<Tensor> Input() { return {Tensor(TensorType{{4}, DType::kFloat32})}; }

TEST(MeasureKernelTest, TakesSamplesUntilTheBudgetIsSpent) {
  const SimulatedClock clock;
  SteadyKernel kernel;
  MeasureOptions options;
  options.relative_width = 0;
  const Measurement measurement = MeasureKernel(kernel, Input(), Device{}, options);
  EXPECT_NEAR(Median(measurement.samples), 1e-3, 5e-6);
  EXPECT_GE(measurement.samples.size(), FewestForInterval(0.95));
  EXPECT_EQ(kernel.runs, static_cast<int>(measurement.samples.size()) + options.warm_up);
}

TEST(MeasureKernelTest, ASlowKernelIsNotRunOften) {
  const SimulatedClock clock;
  SteadyKernel kernel;
  MeasureOptions options;
  options.most_seconds = 0.003;
  EXPECT_GE(MeasureKernel(kernel, Input(), Device{}, options).samples.size(), 2u);
  EXPECT_LE(kernel.runs, 5);
}

class FailingKernel : public Kernel {
 public:
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override { return Fail("no such instruction"); }
};

TEST(MeasureKernelTest, AFailingKernelIsInvalidWithItsReason) {
  FailingKernel kernel;
  const Measurement measurement = MeasureKernel(kernel, {}, Device{}, {});
  EXPECT_EQ(measurement.invalid_reason, "no such instruction");
}

TEST(MeasureKernelTest, TheAnchorIsTimedBesideEachSample) {
  const SimulatedClock clock;
  SteadyKernel kernel;
  const Measurement measurement = MeasureKernel(kernel, Input(), Device{}, {});
  EXPECT_EQ(measurement.anchors.size(), measurement.samples.size());
  for (const double anchor : measurement.anchors) EXPECT_GT(anchor, 0);
}

}  // namespace
}  // namespace collage
