#include "collage/measure/measure_kernel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collage/cost/statistics.h"
#include "tests/runtime/fake_device.h"
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

/// An accelerator that tells times by its own clock, and has caches to empty.
class ClockedDevice : public FakeDevice {
 public:
  Result<bool> EmptyCaches() override {
    ++emptied;
    COLLAGE_TRY_STATUS(Give([this] {
      SimulatedClock::Pass(seconds_to_empty);
      return Status();
    }));
    return true;
  }
  int emptied = 0;
  double seconds_to_empty = 0;
};

TEST(MeasureKernelTest, ADeviceWithAClockOfItsOwnTellsTheTimesOfKernelAndAnchor) {
  const SimulatedClock clock;
  const auto device = std::make_shared<ClockedDevice>();
  FakeDeviceKernel kernel(device, std::make_shared<SteadyKernel>());
  const Measurement measurement = MeasureKernel(kernel, Input(), Device{}, {});
  EXPECT_EQ(measurement.invalid_reason, "");
  EXPECT_GE(measurement.samples.size(), FewestForInterval(0.95));
  // By the host's clock a run takes a millisecond.
  EXPECT_EQ(measurement.samples, std::vector<double>(measurement.samples.size(), FakeDevice::kSecondsOfPart));
  EXPECT_EQ(measurement.anchors, measurement.samples);
  EXPECT_GT(device->emptied, 0);
}

TEST(MeasureKernelTest, WhatPassesBetweenTheRunsIsOfTheBudget) {
  const SimulatedClock clock;
  const auto device = std::make_shared<ClockedDevice>();
  device->seconds_to_empty = 1e-3;
  FakeDeviceKernel kernel(device, std::make_shared<SteadyKernel>(1e-6));
  MeasureOptions options;
  options.relative_width = -1;  // never
  const Measurement measurement = MeasureKernel(kernel, Input(), Device{}, options);
  EXPECT_EQ(measurement.invalid_reason, "");
  EXPECT_NEAR(static_cast<double>(measurement.samples.size()), options.budget_seconds / device->seconds_to_empty, 2);
}

TEST(MeasureKernelTest, OtherDevicesAreTimedByTheHost) {
  const SimulatedClock clock;
  FakeDeviceKernel kernel(std::make_shared<FakeDevice>(), std::make_shared<SteadyKernel>());
  const Measurement measurement = MeasureKernel(kernel, Input(), Device{}, {});
  EXPECT_EQ(measurement.invalid_reason, "");
  EXPECT_EQ(measurement.anchors.size(), measurement.samples.size());
}

/// Takes so long that the team falls asleep meanwhile, as a compiler of whole models does with threads of its own.
class LongKernel : public SteadyKernel {
 public:
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return {};
  }
};

TEST(AnchorTest, IsNoSlowerBehindALongKernel) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor has no team";
  const Device device{DeviceKind::kCpu, 0, 2};
  MeasureOptions options;
  options.budget_seconds = 0.2;
  options.relative_width = 0;
  SteadyKernel steady;
  LongKernel slow;
  const double usual = Median(MeasureKernel(steady, Input(), device, options).anchors);
  const double behind = Median(MeasureKernel(slow, Input(), device, options).anchors);
  // Waking the team took ten times as long as the anchor itself.
  EXPECT_LT(behind, 3 * usual);
}

}  // namespace
}  // namespace collage
