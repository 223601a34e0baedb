#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/driver/side_by_side.h"
#include "collage/explain/plan_names.h"
#include "collage/runtime/cpu_context.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The host and cpu:1. What is tested is who runs what, so on a machine of one processor they share that.
class DriverCpusTest : public testing::Test {
 protected:
  std::unique_ptr<Decided> Start(const Expr& function, const UserConstraints& constraints = {}) {
    PlacementTarget beside = TargetOf(library_);
    beside.device = cpu_.ToDevice();
    beside.context = CpuContext::Open(cpu_).value();
    return std::make_unique<Decided>(function, Decided::On{{TargetOf(library_), beside}}, cache_, options_, MeasureOptions(), constraints);
  }

  static std::vector<std::string> Where(const Decided& decided, const Plan& plan) {
    std::vector<std::string> where;
    for (const OperatorPlacement& op : decided.Report(plan).operators) where.push_back(op.op + (op.device.empty() ? "" : "@" + op.device));
    return where;
  }

  SimulatedClock clock_;
  HostLibrary library_{200e-6};
  CpuStatement cpu_{1, {UsableProcessors().back()}};
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

constexpr const char* kFork =
    "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = tanh(%1); %3 = tanh(%0); %4 = sigmoid(%3); add(%2, %4) }";

TEST_F(DriverCpusTest, WithoutStatementsEverythingStaysOnTheHost) {
  const auto decided = Start(Parsed(kFork));
  ASSERT_TRUE(decided->Decide());
  const FinalPlans plans = decided->Plans();
  EXPECT_THAT(Where(*decided, plans.plans.front()), ElementsAre("nn.relu", "sigmoid", "tanh", "tanh", "sigmoid", "add"));
  for (const Plan& plan : plans.plans) EXPECT_NE(plan.name, kSideBySide);
}

TEST_F(DriverCpusTest, APinnedBranchRunsThereWithoutACopyAndAgreesWithTheReference) {
  const auto decided = Start(Parsed(kFork), {{"sigmoid=cpu:1"}, {}});
  ASSERT_TRUE(decided->Decide());
  const Plan plan = decided->Plans().plans.front();
  EXPECT_THAT(Where(*decided, plan), ElementsAre("nn.relu", "sigmoid@cpu:1", "tanh", "tanh", "sigmoid@cpu:1", "add"));
  const Result<RaceOutcome> race = decided->Race({plan});
  ASSERT_TRUE(race) << race.error().message;
  EXPECT_EQ(race->not_compared, "");
  for (const StepProfile& step : race->lowered->executable.profile()) EXPECT_THAT(step.kind, testing::AnyOf("kernel", "wait"));
}

TEST_F(DriverCpusTest, IndependentBranchesAreOfferedSideBySideAtWhatTheLongerTakes) {
  options_.choose_devices = true;
  const auto decided = Start(Parsed(kFork));
  ASSERT_TRUE(decided->Decide());
  const FinalPlans plans = decided->Plans();
  const Plan& searched = plans.plans.front();
  EXPECT_THAT(Where(*decided, searched), ElementsAre("nn.relu", "sigmoid", "tanh", "tanh", "sigmoid", "add"));
  const auto spread = std::find_if(plans.plans.begin(), plans.plans.end(), [](const Plan& plan) { return plan.name == kSideBySide; });
  ASSERT_NE(spread, plans.plans.end());
  EXPECT_THAT(Where(*decided, *spread), ElementsAre("nn.relu", "sigmoid", "tanh", "tanh@cpu:1", "sigmoid@cpu:1", "add@cpu:1"));
  // Four kernels after each other, and the CPU changes once on the way.
  EXPECT_NEAR(spread->result.cost.ToMicroseconds(), searched.result.cost.ToMicroseconds() * 4 / 6 + 5, 1);
  const Result<RaceOutcome> race = decided->Race({searched, *spread});
  ASSERT_TRUE(race) << race.error().message;
  std::vector<std::string> names;
  for (const PlanTiming& timing : race->timings) names.push_back(timing.name);
  EXPECT_THAT(names, ElementsAre("chosen", race->winner == 0 ? kSideBySide : kOneAfterAnother));
}

TEST_F(DriverCpusTest, AChainIsNotSpread) {
  options_.choose_devices = true;
  const auto decided = Start(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }"));
  ASSERT_TRUE(decided->Decide());
  for (const Plan& plan : decided->Plans().plans) EXPECT_NE(plan.name, kSideBySide);
}

TEST(TargetsOfCpusTest, WhatCannotBeMetIsAnError) {
  const CpuStatement cpu{1, {UsableProcessors().back()}};
  const auto error = [&](const std::string& target, const std::vector<CpuStatement>& cpus) {
    const auto resolved = ResolveTargets({target}, Device{DeviceKind::kCpu, 0, 1}, false, cpus);
    return resolved ? std::string("none") : resolved.error().message;
  };
  EXPECT_THAT(error("cpu:1", {}), HasSubstr("cpu:1 has no processors; state them, as in --processors cpu:1=1"));
  EXPECT_EQ(error("cpu:1", {cpu}), "none");
  EXPECT_THAT(error("cpu", {{1, {1023}}}), HasSubstr("cpu:1: processor 1023 is not there"));
  const std::vector<PlacementTarget> both = ResolveTargets({"cpu"}, Device{DeviceKind::kCpu, 0, 1}, false, {cpu}).value();
  ASSERT_EQ(both.size(), 3U);  // native on each, and the fallback
  EXPECT_FALSE(both[0].device);
  EXPECT_EQ(DeviceText(both[1]), cpu.ToString());
}

}  // namespace
}  // namespace collage
