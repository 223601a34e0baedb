#include "collage/cost/comparison.h"

#include <gtest/gtest.h>

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

TEST(CompareTest, SaysWhoMayBeFasterByWhatMatters) {
  const std::vector<double> base(9, 1.0);
  EXPECT_FALSE(MayBeFaster(std::vector<double>(9, 1.1), base, {}));
  EXPECT_FALSE(MayBeFaster(std::vector<double>(9, 0.995), base, {})) << "less than makes a difference";
  EXPECT_FALSE(MayBeFaster({0.995, 1.2, 0.995, 1.2, 0.995, 1.2}, base, {})) << "slower or as fast";
  EXPECT_TRUE(MayBeFaster(std::vector<double>(9, 0.98), base, {}));
  EXPECT_TRUE(MayBeFaster({0.9, 1.1, 0.9, 1.1, 0.9, 1.1}, base, {}));
  EXPECT_TRUE(MayBeFaster({1.1, 1.1}, base, {})) << "too few";
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

// Most rounds are of the last one alone, and tell nothing of the others.
TEST(BestFirstTest, WhoStaysAloneIsTheFastest) {
  Times times(3);
  for (int round = 0; round < 40; ++round) {
    if (round < 6) times[0].push_back(2.42);
    if (round < 9) times[1].push_back(2.39);
    times[2].push_back(2.23);
  }
  EXPECT_EQ(BestFirst(times, {}, EarlierIsPreferred), (std::vector<size_t>{2, 1, 0}));
}

TEST(BestFirstTest, ThoseThatLoseInACircleAreOrderedAllTheSame) {
  // Each is faster than the next in two of three rounds, by the same factor.
  Times times(3);
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 3; ++i) times[i].push_back(1 + 0.1 * ((i + round) % 3));
  }
  ASSERT_EQ(Compare(times[0], times[2], {}), Comparison::kWorse);
  ASSERT_EQ(Compare(times[1], times[0], {}), Comparison::kWorse);
  ASSERT_EQ(Compare(times[2], times[1], {}), Comparison::kWorse);
  EXPECT_EQ(BestFirst(times, {}, EarlierIsPreferred).size(), 3u);
}

}  // namespace
}  // namespace collage
