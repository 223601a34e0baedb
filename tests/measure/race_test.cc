#include "collage/measure/race.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/cost/comparison.h"
#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

Contestant Contender(const std::string& name, double seconds) {
  return {name, [seconds] {
            SimulatedClock::Pass(seconds);
            return Status{};
          }};
}

TEST(RaceTest, WhoHasLostLeavesTheTimeToTheOthers) {
  const SimulatedClock clock;
  RaceOptions options;
  options.budget_seconds = 0.5;
  options.seconds_per_turn = 0;
  const std::vector<RaceResult> results =
      Race({Contender("fast", 500e-6), Contender("slow", 5000e-6), Contender("as fast", 500e-6)}, options, {});
  EXPECT_EQ(results[1].rounds.size(), 6u);
  EXPECT_GE(results[0].rounds.size(), 6u);
  EXPECT_EQ(results[0].rounds.size(), results[2].rounds.size());
  EXPECT_NEAR(PairedRatio(results[1].rounds, results[0].rounds), 10, 0.1);
}

TEST(RaceTest, OrdersContestantsByTheirTime) {
  const SimulatedClock clock;
  RaceOptions options;
  options.budget_seconds = 0.2;
  const std::vector<RaceResult> results = Race({Contender("slow", 4000e-6), Contender("fast", 1000e-6)}, options, {});
  ASSERT_GE(results[0].rounds.size(), 5u);
  EXPECT_NEAR(PairedRatio(results[0].rounds, results[1].rounds), 4, 0.1);
}

// After runs of others a program finds little of what it needs in the caches, and the more it needs the longer.
TEST(RaceTest, TimesAreThoseOfFullCaches) {
  const SimulatedClock clock;
  std::string last;
  int runs = 0;
  const auto contender = [&](const std::string& name, double seconds, int runs_to_fill) {
    return Contestant{name, [&, name, seconds, runs_to_fill] {
                        runs = name == last ? runs + 1 : 0;
                        last = name;
                        SimulatedClock::Pass(seconds * (1 + 0.1 * std::max(0, runs_to_fill - runs)));
                        return Status{};
                      }};
  };
  const std::vector<RaceResult> results = Race({contender("large", 3000e-6, 12), contender("small", 3300e-6, 1)}, {}, {});
  for (const double seconds : results[0].rounds) EXPECT_NEAR(seconds, 3000e-6, 1e-5);
  for (const double seconds : results[1].rounds) EXPECT_NEAR(seconds, 3300e-6, 1e-5);
}

TEST(RaceTest, WhereNobodyIsToBeToldApartTimeAloneEndsIt) {
  const SimulatedClock clock;
  RaceOptions options;
  options.budget_seconds = 5;
  const std::vector<Contestant> twice = {Contender("slow", 3), Contender("again", 3)};
  EXPECT_EQ(Race(twice, options, {})[0].rounds.size(), 6u) << "as many as an interval needs";
  options.tells_apart = false;
  EXPECT_EQ(Race(twice, options, {})[0].rounds.size(), 1u);
}

TEST(RaceTest, AFailureTakesOnlyItsContestantOut) {
  const SimulatedClock clock;
  int runs = 0;
  const std::vector<Contestant> contestants = {{"broken", [&] { return ++runs > 4 ? Status(Fail("boom")) : Status{}; }},
                                               {"whole", [] { return Status{}; }}};
  RaceOptions options;
  options.budget_seconds = 0.01;
  const std::vector<RaceResult> results = Race(contestants, options, {});
  EXPECT_EQ(results[0].failure, "boom");
  EXPECT_TRUE(results[0].rounds.empty());
  EXPECT_GE(results[1].rounds.size(), 5u);
}

TEST(RaceTest, StopsAfterOneRoundWhenAsked) {
  const SimulatedClock clock;
  std::atomic<bool> stop{true};
  const std::vector<RaceResult> results = Race({{"only", [] { return Status{}; }}}, {}, {nullptr, &stop});
  EXPECT_EQ(results[0].rounds.size(), 1u);
}

TEST(RaceTest, GoesOnUntilItIsDecided) {
  const SimulatedClock clock;
  std::mt19937 random(1);
  const auto unsteady = [&] {
    SimulatedClock::Pass(random() % 2 == 0 ? 200e-6 : 2000e-6);
    return Status{};
  };
  RaceOptions options;
  options.budget_seconds = 0.5;
  options.seconds_per_turn = 0;
  const size_t undecided = Race({{"a", unsteady}, {"again", unsteady}}, options, {})[0].rounds.size();
  const size_t decided = Race({Contender("a", 200e-6), Contender("again", 200e-6)}, options, {})[0].rounds.size();
  EXPECT_GT(undecided, 5 * decided);
}

}  // namespace
}  // namespace collage
