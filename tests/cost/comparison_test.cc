#include "collage/cost/comparison.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace collage {
namespace {

using Times = std::vector<std::vector<double>>;

bool EarlierIsPreferred(size_t a, size_t b) { return a < b; }

TEST(CompareTest, TellsBetterWorseTieAndDoubt) {
  const std::vector<double> base(9, 1.0);
  EXPECT_EQ(Compare(base, base, {}), Comparison::kTie);
  EXPECT_EQ(Compare(std::vector<double>(9, 0.9), base, {}), Comparison::kBetter);
  EXPECT_EQ(Compare(std::vector<double>(9, 1.1), base, {}), Comparison::kWorse);
  EXPECT_EQ(Compare(std::vector<double>(9, 1.004), base, {}), Comparison::kTie) << "less than makes a difference";
  EXPECT_EQ(Compare({0.9, 1.1, 0.9, 1.1, 0.9, 1.1}, base, {}), Comparison::kNeedMore);
  EXPECT_EQ(Compare({0.9, 0.9}, base, {}), Comparison::kNeedMore);
}

TEST(RelativeTimesTest, OfTwoAreTheirPairedRatio) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> between(1, 2);
  Times times(2);
  for (int round = 0; round < 21; ++round) {
    for (std::vector<double>& row : times) row.push_back(between(random));
  }
  const std::vector<double> relative = RelativeTimes(times);
  EXPECT_NEAR(relative[1] / relative[0], PairedRatio(times[1], times[0]), 1e-4);
}

TEST(RelativeTimesTest, SlowRoundsAreHeldAgainstNobody) {
  // The first six rounds are slow, and the second contestant leaves after them.
  Times times = {{}, {}, {}};
  for (int round = 0; round < 30; ++round) {
    const double speed = round < 6 ? 1.5 : 1;
    times[0].push_back(1.0 * speed);
    if (round < 6) times[1].push_back(1.1 * speed);
    times[2].push_back(1.2 * speed);
  }
  const std::vector<double> relative = RelativeTimes(times);
  EXPECT_NEAR(relative[1] / relative[0], 1.1, 1e-3);
  EXPECT_NEAR(relative[2] / relative[0], 1.2, 1e-3);
}

TEST(RelativeTimesTest, WhoHasNoTimesIsSlowest) {
  EXPECT_EQ(RelativeTimes({{1}, {}})[1], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(RelativeTimes({}).empty());
}

TEST(BestFirstTest, TiesGoToWhoIsPreferredAndOthersFollowByTime) {
  const Times times = {
      std::vector<double>(9, 1.2), std::vector<double>(9, 1.004), std::vector<double>(9, 1.0), {}, std::vector<double>(9, 1.1)};
  EXPECT_EQ(BestFirst(times, {}, EarlierIsPreferred), (std::vector<size_t>{1, 2, 4, 0}));
  EXPECT_TRUE(BestFirst({{}, {}}, {}, EarlierIsPreferred).empty());
}

// As MobileNet v3 raced: the one that is preferred, a library alone, was as fast as the searched plan while both wavered, slower than the
// cheapest cover, and so it left. Later rounds are calm.
TEST(BestFirstTest, WhoWasLikeALoserWhileItStayedDoesNotWin) {
  Times times = {{}, {}, {}};
  for (int round = 0; round < 40; ++round) {
    const bool is_calm = round >= 10;
    const double wavering = round % 2 == 0 ? 1.0 : 1.1;
    if (!is_calm) times[0].push_back(3.3 * wavering);
    times[1].push_back(is_calm ? 3.0 : 3.3 * wavering);
    times[2].push_back(is_calm ? 2.98 : 3.0 * wavering);
  }
  EXPECT_EQ(BestFirst(times, {}, EarlierIsPreferred), (std::vector<size_t>{1, 2, 0}));
}

// The first one left early, behind rounds in which the second was disturbed.
TEST(BestFirstTest, WhoLeftBehindDisturbedRoundsIsNotTheFastest) {
  Times times = {{}, {}, {}};
  for (int round = 0; round < 40; ++round) {
    if (round < 6) times[0].push_back(1.05);
    times[1].push_back(round < 6 ? 1.1 : 0.95);
    times[2].push_back(1.0);
  }
  EXPECT_EQ(BestFirst(times, {}, EarlierIsPreferred).front(), 1u);
}

}  // namespace
}  // namespace collage
