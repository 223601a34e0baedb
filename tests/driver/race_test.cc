#include "collage/driver/race.h"

#include <gtest/gtest.h>

#include "collage/driver/context_pricing.h"
#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "tests/driver/timed_kernel.h"

namespace collage {
namespace {

constexpr double kSeconds = 1e-3;
constexpr double kDisturbance = 8;

/// Until then something else is using the cores.
Clock::time_point disturbed_until;

class DisturbedBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "disturbed"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.patterns.push_back({"disturbed.relu", pattern::CallOf("nn.relu", {pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function&, const Device&) const override { return {{"only", {Layout()}, {Layout()}}}; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [] { return Clock::now() < disturbed_until ? kDisturbance * kSeconds : kSeconds; });
  }
};

class RacePlansTest : public testing::Test {
 protected:
  RacePlansTest() {
    lower_.find_backend = [this](const std::string&) -> Result<const Backend*> { return &backend_; };
    options_.race_seconds = 1;
  }

  Placement Place() {
    return Placement::Create(ParseExpr("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }", Operators()).value().expr,
                             {{{&backend_, "1", BackendRules::Style::kPattern}, backend_.Rules(), "cpu -compiler=disturbed"}}, pricer_,
                             options_.progress)
        .value();
  }

  /// The race after quiet pricing, of which the first `seconds` are disturbed.
  RaceOutcome RaceDisturbedFor(double seconds) {
    Placement placement = Place();
    disturbed_until = {};
    const PlansInContext plans = PriceInContext(placement, lower_, options_).value();
    disturbed_until = Clock::After(seconds);
    return std::move(*RacePlans(placement, plans, lower_, options_));
  }

  SimulatedClock clock_;
  DisturbedBackend backend_;
  LowerOptions lower_;
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  Pricer pricer_{{}, cache_, {}};
};

TEST_F(RacePlansTest, AQuietRaceIsRunOnce) {
  const RaceOutcome outcome = RaceDisturbedFor(0);
  EXPECT_NEAR(outcome.drift, 1, 0.05);
  EXPECT_NEAR(outcome.timings.front().median_ms, 2 * kSeconds * 1e3, 0.1);
}

TEST_F(RacePlansTest, ADisturbedRaceIsRunAgain) {
  const RaceOutcome outcome = RaceDisturbedFor(2 * options_.race_seconds);
  EXPECT_NEAR(outcome.drift, 1, 0.05);
  EXPECT_NEAR(outcome.timings.front().median_ms, 2 * kSeconds * 1e3, 0.1);
}

TEST_F(RacePlansTest, EndlessDisturbanceIsToldByTheDrift) {
  const RaceOutcome outcome = RaceDisturbedFor(1e6);
  EXPECT_NEAR(outcome.drift, kDisturbance, 0.5);
}

TEST_F(RacePlansTest, ABudgetAllowsOneRace) {
  options_.budget_seconds = 1e3;
  EXPECT_NEAR(RaceDisturbedFor(2 * options_.race_seconds).drift, kDisturbance, 0.5);
}

TEST_F(RacePlansTest, DisturbedPricesAreToldByTheDrift) {
  Placement placement = Place();
  disturbed_until = Clock::After(1e6);
  const PlansInContext plans = PriceInContext(placement, lower_, options_).value();
  disturbed_until = {};
  EXPECT_NEAR(RacePlans(placement, plans, lower_, options_)->drift, 1 / kDisturbance, 0.01);
}

/// Each activation by itself or, where it may, two at once; all kernels take the time that they are told.
class NamedBackend : public Backend {
 public:
  NamedBackend(std::string name, bool pairs, double seconds) : name_(std::move(name)), pairs_(pairs), seconds_(seconds) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    const auto relu = [](const Pattern& input) { return pattern::CallOf("nn.relu", {input}); };
    BackendRules rules;
    rules.patterns.push_back({name_ + ".relu", pairs_ ? relu(relu(pattern::Wildcard())) : relu(pattern::Wildcard()), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Nothing by which transitions are measured.
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [seconds = seconds_] { return seconds; });
  }

 private:
  std::string name_;
  bool pairs_;
  double seconds_;
};

class TiedPlansTest : public testing::Test {
 protected:
  /// Races the plans of two single backends, the later declared one first; gives the winner's name.
  static std::string Winner(const NamedBackend& declared_first, const NamedBackend& declared_second) {
    MeasurementCache cache = MeasurementCache::Open({}).value();
    Pricer pricer({}, cache, {});
    CompileOptions options;
    options.race_seconds = 1;
    const auto target = [](const NamedBackend& backend) {
      return PlacementTarget{
          {&backend, "1", BackendRules::Style::kPattern}, backend.Rules(), "cpu -compiler=" + std::string(backend.Name())};
    };
    Placement placement =
        Placement::Create(ParseExpr("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }", Operators()).value().expr,
                          {target(declared_first), target(declared_second)}, pricer, options.progress)
            .value();
    LowerOptions lower;
    lower.find_backend = [&](const std::string& name) -> Result<const Backend*> {
      return name == declared_first.Name() ? &declared_first : &declared_second;
    };
    const PlansInContext plans{{placement.SearchSingle(1).value().value(), placement.SearchSingle(0).value().value()}, {}, {}};
    return plans.plans[RacePlans(placement, plans, lower, options).value().winner].name;
  }

  SimulatedClock clock_;
};

TEST_F(TiedPlansTest, OfEquallyFastPlansThatOfTheBackendDeclaredFirstIsTaken) {
  const NamedBackend a("alpha", false, 1e-3);
  const NamedBackend b("beta", false, 1e-3);
  EXPECT_EQ(Winner(a, b), "alpha");
  EXPECT_EQ(Winner(b, a), "beta");
}

TEST_F(TiedPlansTest, FewerPartitionsCountBeforeTheDeclaredOrder) {
  const NamedBackend apart("apart", false, 1e-3);
  const NamedBackend pairs("pairs", true, 2e-3);
  EXPECT_EQ(Winner(apart, pairs), "pairs");
  EXPECT_EQ(Winner(pairs, apart), "pairs");
}

TEST_F(TiedPlansTest, WhatIsFasterIsNoTie) {
  const NamedBackend a("alpha", false, 1.05e-3);
  const NamedBackend b("beta", false, 1e-3);
  EXPECT_EQ(Winner(a, b), "beta");
  EXPECT_EQ(Winner(b, a), "beta");
}

}  // namespace
}  // namespace collage
