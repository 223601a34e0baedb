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

  /// The race after quiet pricing, of which the first `seconds` are disturbed.
  RaceOutcome RaceDisturbedFor(double seconds) {
    Placement placement =
        Placement::Create(ParseExpr("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }", Operators()).value().expr,
                          {{{&backend_, "1", BackendRules::Style::kPattern}, backend_.Rules(), "cpu -compiler=disturbed"}}, pricer_,
                          options_.progress)
            .value();
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

}  // namespace
}  // namespace collage
