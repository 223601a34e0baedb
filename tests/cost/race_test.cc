#include "collage/cost/race.h"

#include <gtest/gtest.h>

#include <random>

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
  EXPECT_EQ(results[1].rounds.size(), 5u);
  EXPECT_GT(results[0].rounds.size(), 5u);
  EXPECT_EQ(results[0].rounds.size(), results[2].rounds.size());
  EXPECT_NEAR(PairedRatio(results[1], results[0]), 10, 0.1);
}

TEST(RaceTest, OrdersContestantsByTheirTime) {
  const SimulatedClock clock;
  RaceOptions options;
  options.budget_seconds = 0.2;
  options.lost_ratio = 100;
  const std::vector<RaceResult> results = Race({Contender("slow", 4000e-6), Contender("fast", 1000e-6)}, options, {});
  ASSERT_GE(results[0].rounds.size(), 5u);
  EXPECT_EQ(results[0].rounds.size(), results[1].rounds.size());
  EXPECT_NEAR(PairedRatio(results[0], results[1]), 4, 0.1);
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

TEST(RaceTest, GoesOnWhileEqualContestantsDiffer) {
  const SimulatedClock clock;
  std::mt19937 random(1);
  const auto unsteady = [&] {
    SimulatedClock::Pass(random() % 2 == 0 ? 200e-6 : 2000e-6);
    return Status{};
  };
  RaceOptions options;
  options.budget_seconds = 0.02;
  options.most_seconds = 0.5;
  options.seconds_per_turn = 0;
  options.lost_ratio = 100;
  options.equal_pair = {0, 1};
  options.aim_noise = 1e6;
  const size_t content = Race({{"a", unsteady}, {"again", unsteady}}, options, {})[0].rounds.size();
  options.aim_noise = 0;
  const size_t never_content = Race({{"a", unsteady}, {"again", unsteady}}, options, {})[0].rounds.size();
  EXPECT_GT(never_content, 2 * content);
}

TEST(RaceTest, PairedRatioCancelsDrift) {
  const RaceResult a{"a", {1.0, 2.0, 4.0}, {}};
  const RaceResult b{"b", {0.5, 1.0, 2.0}, {}};
  EXPECT_DOUBLE_EQ(PairedRatio(a, b), 2.0);
}

}  // namespace
}  // namespace collage
