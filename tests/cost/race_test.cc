#include "collage/cost/race.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace collage {
namespace {

TEST(RaceTest, OrdersContestantsByTheirTime) {
  const std::vector<Contestant> contestants = {{"slow",
                                                [] {
                                                  ::usleep(4000);
                                                  return Status{};
                                                }},
                                               {"fast", [] {
                                                  ::usleep(1000);
                                                  return Status{};
                                                }}};
  RaceOptions options;
  options.budget_seconds = 0.2;
  const std::vector<RaceResult> results = Race(contestants, options, {});
  ASSERT_GE(results[0].rounds.size(), 5u);
  EXPECT_EQ(results[0].rounds.size(), results[1].rounds.size());
  EXPECT_GT(PairedRatio(results[0], results[1]), 1.5);
}

TEST(RaceTest, AFailureTakesOnlyItsContestantOut) {
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

TEST(RaceTest, StopsWhenAsked) {
  std::atomic<bool> stop{true};
  const std::vector<RaceResult> results = Race({{"only", [] { return Status{}; }}}, {}, {nullptr, &stop});
  EXPECT_TRUE(results[0].rounds.empty());
}

TEST(RaceTest, PairedRatioCancelsDrift) {
  const RaceResult a{"a", {1.0, 2.0, 4.0}, {}};
  const RaceResult b{"b", {0.5, 1.0, 2.0}, {}};
  EXPECT_DOUBLE_EQ(PairedRatio(a, b), 2.0);
}

}  // namespace
}  // namespace collage
