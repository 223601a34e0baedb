#include "collage/measure/race.h"

#include <gtest/gtest.h>

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
  // In each round one is ten times as slow as the other, each in turn.
  const auto unsteady = [](bool is_slow) {
    return [is_slow]() mutable {
      SimulatedClock::Pass(is_slow ? 2000e-6 : 200e-6);
      is_slow = !is_slow;
      return Status{};
    };
  };
  RaceOptions options;
  options.budget_seconds = 0.5;
  options.seconds_per_turn = 0;
  const size_t undecided = Race({{"a", unsteady(true)}, {"again", unsteady(false)}}, options, {})[0].rounds.size();
  const size_t decided = Race({Contender("a", 200e-6), Contender("again", 200e-6)}, options, {})[0].rounds.size();
  EXPECT_GT(undecided, 5 * decided);
}

// One is as fast as the fastest at times, and never faster by what matters.
TEST(RaceTest, EndsWhenNobodyMayBeFasterWhateverTheirOrder) {
  const SimulatedClock clock;
  int runs = 0;
  const auto sometimes_slower = [&] {
    SimulatedClock::Pass(++runs % 2 == 0 ? 998e-6 : 1100e-6);
    return Status{};
  };
  RaceOptions options;
  options.budget_seconds = 5;
  options.seconds_per_turn = 0;
  const std::vector<Contestant> contestants = {Contender("steady", 1000e-6), {"wavering", sometimes_slower}};
  EXPECT_LE(Race(contestants, options, {})[0].rounds.size(), 7u);
  options.is_answered = [](const std::vector<RaceResult>& results) { return results[0].rounds.size() == 40; };
  EXPECT_EQ(Race(contestants, options, {})[0].rounds.size(), 40u) << "another question";
}

TEST(RaceTest, TheFastestIsKnownAmongThoseThatAreNotAlike) {
  const std::vector<double> doubtful = {0.9, 1.2, 0.9, 1.2, 0.9, 1.2};
  const std::vector<double> slow(6, 1.3);
  std::vector<RaceResult> results = {{"steady", std::vector<double>(6, 1.0), ""}, {"doubtful", doubtful, ""}, {"slow", slow, ""}};
  EXPECT_FALSE(IsFastestKnown(results, {}));
  EXPECT_TRUE(IsFastestKnown(results, {}, [](size_t a, size_t b) { return a + b == 1; }));
  EXPECT_FALSE(IsFastestKnown(results, {}, [](size_t a, size_t b) { return a + b == 2; }));
  results[1].rounds.pop_back();
  EXPECT_TRUE(IsFastestKnown(results, {})) << "it left";
}

// A run of 70 ms is more than half a turn; a turn of one run would count it as the others leave the caches.
TEST(RaceTest, NoProgramCountsWithColdCachesWhereThereIsTime) {
  const SimulatedClock clock;
  std::string last;
  const auto contender = [&](const std::string& name) {
    return Contestant{name, [&last, name] {
                        SimulatedClock::Pass(last == name ? 0.07 : 0.09);
                        last = name;
                        return Status{};
                      }};
  };
  RaceOptions options;
  options.budget_seconds = 12 * 0.16 + 0.01;
  for (const RaceResult& result : Race({contender("a"), contender("b")}, options, {})) {
    for (const double seconds : result.rounds) EXPECT_NEAR(seconds, 0.07, 1e-5);
  }
}

}  // namespace
}  // namespace collage
