#include "collage/driver/compile_time.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "collage/backend/registry.h"
#include "collage/cache/cache_maintenance.h"
#include "collage/driver/compile_function.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"
#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

class CompilerOfAll : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] std::string_view Name() const override { return "compiler"; }
  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kPredicate, {}, [](const Expr&) { return Verdict::Accept(); }};
  }
};

Expr Chain(size_t nodes) {
  std::string text = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); ";
  for (size_t node = 1; node < nodes; ++node) text += "%" + std::to_string(node) + " = nn.relu(%" + std::to_string(node - 1) + "); ";
  return Parsed(text + "%" + std::to_string(nodes - 1) + " }");
}

/// Whole compiles know backends by name.
class CompileTimeTest : public testing::Test {
 protected:
  CompileTimeTest() {
    for (const auto& backend : backends_) EXPECT_TRUE(AddBackend(backend));
  }
  ~CompileTimeTest() override {
    for (const auto& backend : backends_) RemoveBackend(std::string(backend->Name()));
  }

  std::vector<PlacementTarget> Targets() { return {TargetOf(*backends_[0]), TargetOf(*backends_[1])}; }

  SimulatedClock clock_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  std::vector<std::shared_ptr<const Backend>> backends_ = {std::make_shared<HostLibrary>(1e-6), std::make_shared<CompilerOfAll>(2e-6)};
};

// 2500 models of a layer each took a graph compiler 100 s where the budget was 20.
TEST_F(CompileTimeTest, WhatTakesLongerThanThereIsTimeIsLeftOutIfNothingIsKnownOfIt) {
  constexpr size_t kNodes = 40;
  Pricer pricer(Device{}, cache_, {});
  const PlacementPointer placement = MakePlacement(Chain(kNodes), Targets(), pricer, {}).value();
  std::vector<Evidence> evidence(placement->kernels.size());
  const auto in_time = [&](double seconds) {
    const std::vector<bool> among = CompiledInTime(*placement, evidence, placement->Competing(), seconds);
    std::map<std::pair<std::string, size_t>, size_t> counts;  // by backend and operators
    for (size_t c = 0; c < among.size(); ++c) {
      const PricedCandidate& candidate = placement->candidates[c];
      if (among[c] && candidate.is_partition)
        ++counts[{placement->NameOf(candidate.backend), candidate.candidate.sub_graph.inside().Count()}];
    }
    return counts;
  };
  auto counts = in_time(kForever);
  const size_t alone = counts[{"compiler", 1}];
  EXPECT_GT(alone, 0u);
  EXPECT_EQ(CountTooLongToCompile(*placement, evidence, kForever), 0u);
  counts = in_time(1);
  EXPECT_EQ((counts[{"compiler", 1}]), 0u);
  EXPECT_EQ((counts[{"compiler", kNodes}]), 1u);
  EXPECT_EQ((counts[{"library", 1}]), kNodes);
  EXPECT_GT(CountTooLongToCompile(*placement, evidence, 1), 0u);
  for (Evidence& known : evidence) known.alone = {{1e-3, 1e-3}};
  EXPECT_EQ(in_time(1)[std::pair(std::string("compiler"), size_t{1})], alone);
}

TEST_F(CompileTimeTest, WhatASmallBudgetHasLeftOutIsDecidedAboutWithALargerOne) {
  const auto budget_of_decision = [&](double budget) {
    CompileOptions options;
    options.isolated = false;
    options.threads = 1;
    options.budget_seconds = budget;
    const Result<PlacedFunction> placed = PlaceByMeasuring(options, cache_, Targets(), Chain(10));
    EXPECT_TRUE(placed) << placed.error().message;
    double seconds = 0;
    const Status read = ForEachEntry(cache_, [&](const CacheEntry& entry) {
      if (entry.key.fact == Fact::kDecision) seconds = entry.measurement.samples.front();
      return Status();
    });
    EXPECT_TRUE(read);
    return seconds;
  };
  EXPECT_EQ(budget_of_decision(0.4), 0.4) << "that is what it is settled for";
  EXPECT_GT(budget_of_decision(1000), 1e6) << "for good";
}

}  // namespace
}  // namespace collage
