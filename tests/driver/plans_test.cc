#include "collage/driver/plans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "collage/decide/priced_problem.h"
#include "collage/driver/placement_report.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"
#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

/// Takes two of its operators as one kernel, too.
class Fusing : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules = HostLibrary::Rules();
    rules.patterns.push_back({"library.pair", pattern::CallOf("sigmoid", {pattern::CallOf("nn.relu", {pattern::Wildcard()})}), {}});
    return rules;
  }
};

// Time is kept for building the plans that race: of a library alone those kernels that its plan has, not all that have a price.
TEST(PlansTest, OfASingleBackendTheKernelsOfOneCoverCount) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const Fusing library(200e-6);
  const Expr chain = Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }");
  Decided decided(chain, {&library}, cache);
  ASSERT_TRUE(decided.Decide());
  size_t priced = 0;
  for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) {
    ASSERT_TRUE(decided.MeasureAlone(kernel));
    priced += decided.placement().kernels[kernel].candidate != PlacedKernel::kNone ? 1 : 0;
  }
  ASSERT_EQ(priced, 4u);
  const PlanCounts counts = MostPlansToRace(decided.placement(), decided.Prices(), {});
  ASSERT_EQ(counts.single_backends.size(), 1u);
  EXPECT_EQ(counts.single_backends[0].size(), 2u);
}

TEST(PlansTest, AKernelIsCompiledAtEachOfItsPlaces) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const HostLibrary library(200e-6);
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = nn.relu(%0); nn.relu(%1) }"), {&library}, cache);
  ASSERT_TRUE(decided.Decide());
  const SearchResult best = SearchAt(decided.placement().arms, Centres(decided.Prices()), decided.placement().Competing()).value();
  const PlanCounts counts = MostPlansToRace(decided.placement(), decided.Prices(), {}, &best);
  ASSERT_EQ(counts.of_best.size(), 3u);
  EXPECT_EQ(counts.of_best.front(), counts.of_best.back());
}

class CompilerOfAll : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] std::string_view Name() const override { return "compiler"; }
  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kPredicate, {}, [](const Expr&) { return Verdict::Accept(); }};
  }
};

// 2500 models of a layer each took a graph compiler 100 s where the budget was 20.
TEST(PlansTest, WhatTakesLongerToCompileThanThereIsTimeIsNotSearchedAmong) {
  constexpr size_t kNodes = 40;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const HostLibrary library(1e-3);
  const CompilerOfAll compiler(1e-3);
  std::string text = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); ";
  for (size_t node = 1; node < kNodes; ++node) text += "%" + std::to_string(node) + " = nn.relu(%" + std::to_string(node - 1) + "); ";
  const Expr chain = Parsed(text + "%" + std::to_string(kNodes - 1) + " }");
  Pricer pricer(Device{}, cache, {});
  const auto competing_of = [&](double seconds_to_compile) {
    const PlacementPointer placement =
        MakePlacement(chain, {TargetOf(library), TargetOf(compiler)}, pricer, {}, {}, {.seconds_to_compile = seconds_to_compile}).value();
    const std::vector<Evidence> evidence(placement->kernels.size());
    const std::vector<Price> prices = Believe(placement->arms.kernels, evidence, {});
    EXPECT_EQ(CountCandidates(*placement, {evidence, prices}, {}).variants.too_long > 0, std::isfinite(seconds_to_compile));
    const std::vector<bool> competing = placement->Competing();
    std::map<std::pair<std::string, size_t>, size_t> counts;  // by backend and operators
    for (size_t c = 0; c < competing.size(); ++c) {
      const PricedCandidate& candidate = placement->candidates[c];
      if (competing[c] && candidate.is_partition)
        ++counts[{placement->NameOf(candidate.backend), candidate.candidate.sub_graph.inside().Count()}];
    }
    return counts;
  };
  auto counts = competing_of(std::numeric_limits<double>::infinity());
  EXPECT_GT((counts[{"compiler", 1}]), 0u);
  counts = competing_of(1);
  EXPECT_EQ((counts[{"compiler", 1}]), 0u);
  EXPECT_EQ((counts[{"compiler", kNodes}]), 1u);
  EXPECT_EQ((counts[{"library", 1}]), kNodes);
}

class SlowToCompile : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    SimulatedClock::Pass(1);
    return HostLibrary::Compile(function, device, variant);
  }
};

// A compile that never had time for a program built its best plan when time was over, and no library alone raced beside it.
TEST(PlansTest, TimeIsKeptForBuildingAPlanOfWhichNoProgramHasRun) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const SlowToCompile library(1e-3);
  CompileOptions options;
  options.budget_seconds = 10;
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }"), {&library}, cache, options);
  for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) ASSERT_TRUE(decided.MeasureAlone(kernel));
  const SearchResult best = SearchAt(decided.placement().arms, Centres(decided.Prices()), decided.placement().Competing()).value();
  const PlanCounts counts = MostPlansToRace(decided.placement(), decided.Prices(), {}, &best);
  EXPECT_EQ(counts.of_best.size(), 3u);
  ASSERT_EQ(counts.single_backends.size(), 1u);
  EXPECT_EQ(counts.single_backends[0].size(), 0u) << "they are compiled for the best plan";
  SimulatedClock::Pass(4.5);  // beside three compiles
  decided.measurer().SetContestants({}, 0);
  EXPECT_FALSE(decided.measurer().IsOver());
  decided.measurer().SetContestants(counts, 0);
  EXPECT_TRUE(decided.measurer().IsOver()) << "three more take what is left";
}

}  // namespace
}  // namespace collage
