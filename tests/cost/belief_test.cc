#include "collage/cost/belief.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace collage {
namespace {

TEST(StatisticsTest, TheMedianIntervalHoldsTheMedianAsOftenAsItClaims) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> distribution(0.0, 0.5);  // median 1
  constexpr int kTrials = 4000;
  for (const size_t count : {6, 9, 60}) {
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> samples(count);
      for (double& sample : samples) sample = distribution(random);
      const Interval interval = MedianInterval(samples, 0.95).value();
      held += interval.low <= 1 && 1 <= interval.high;
    }
    EXPECT_GE(held, kTrials * 94 / 100) << count;
  }
  EXPECT_FALSE(MedianInterval({1, 2, 3, 4, 5}, 0.95)) << "both ends with a chance of 1/32";
  EXPECT_TRUE(MedianInterval({1, 2, 3, 4, 5}, 0.9));
}

TEST(StatisticsTest, TheNextSampleIsAboveAsOftenAsClaimed) {
  std::mt19937_64 random(5);
  std::exponential_distribution<double> distribution;
  constexpr int kTrials = 4000;
  int above = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(40);
    for (double& sample : samples) sample = distribution(random);
    above += distribution(random) >= NextIsAbove(samples, 0.95).value();
  }
  EXPECT_GE(above, kTrials * 94 / 100);
  EXPECT_FALSE(NextIsAbove(std::vector<double>(18, 1.0), 0.95));
  EXPECT_TRUE(NextIsAbove(std::vector<double>(19, 1.0), 0.95));
}

TEST(StatisticsTest, FewestForIntervalIsWhereIntervalsOfTheMedianBegin) {
  EXPECT_EQ(FewestForInterval(0.95), 6u);
  for (const double confidence : {0.6, 0.8, 0.95, 0.999}) {
    const size_t fewest = FewestForInterval(confidence);
    EXPECT_TRUE(MedianInterval(std::vector<double>(fewest, 1.0), confidence)) << confidence;
    EXPECT_FALSE(MedianInterval(std::vector<double>(fewest - 1, 1.0), confidence)) << confidence;
  }
}

TEST(StatisticsTest, StudentsQuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(StudentQuantile(0.95, 1), 12.706, 1e-3);
  EXPECT_NEAR(StudentQuantile(0.95, 2), 4.303, 1e-3);
  EXPECT_NEAR(StudentQuantile(0.95, 5), 2.571, 1e-3);
  EXPECT_NEAR(StudentQuantile(0.99, 10), 3.169, 1e-3);
  EXPECT_NEAR(StudentQuantile(0.95, 1000000), 1.960, 1e-3);
}

/// The chance of |t| < `t` by Simpson's rule over Student's density.
double IntegralOfStudent(double t, double degrees) {
  constexpr int kSteps = 20000;
  const auto density = [&](double x) { return std::pow(1 + x * x / degrees, -(degrees + 1) / 2); };
  double sum = density(0) + density(t);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(t * i / kSteps);
  const double scale = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) / std::sqrt(degrees * std::acos(-1.0));
  return 2 * scale * sum * t / (3 * kSteps);
}

TEST(StatisticsTest, StudentsQuantilesHoldBetweenWholeDegreesToo) {
  for (const double degrees : {1.0, 1.4, 1.999, 2.5, 7.25, 60.1, 2000.5}) {
    for (const double confidence : {0.5, 0.95, 0.99})
      EXPECT_NEAR(IntegralOfStudent(StudentQuantile(confidence, degrees), degrees), confidence, 1e-7) << degrees << " degrees";
  }
}

TEST(StatisticsTest, AWeightThatHardlyChangesHardlyChangesThePrediction) {
  // The effective number of these falls below three.
  const Interval three = NextIsWithin({{1, 1}, {2, 1}, {3, 1}}, 0.95).value();
  const Interval less = NextIsWithin({{1, 1}, {2, 1}, {3, 0.99}}, 0.95).value();
  EXPECT_NEAR(less.low, three.low, 0.05);
  EXPECT_NEAR(less.high, three.high, 0.05);
}

TEST(StatisticsTest, FewWeightsPredictNothing) {
  EXPECT_FALSE(NextIsWithin({{1, 1}}, 0.95));
  EXPECT_FALSE(NextIsWithin({{1, 1}, {2, 1e-6}}, 0.95)) << "hardly more than one";
  const Interval two = NextIsWithin({{1, 1}, {1.1, 1}}, 0.95).value();
  EXPECT_LT(two.low, 0.5);
  EXPECT_GT(two.high, 1.6);
}

TEST(BeliefTest, WhatNeverRanIsItsRoofline) {
  const KernelRelations relations(std::vector<KernelFacts>{{0, 0, {1}, 100, Cost::Microseconds(3)}});
  const Price price = Believe(relations, {{}}, {}).front();
  EXPECT_EQ(price.known, Price::Known::kNothing);
  EXPECT_EQ(price.low, Cost::Microseconds(3));
  EXPECT_TRUE(price.centre.IsUnknown());
  EXPECT_TRUE(price.high.IsUnknown());
}

Evidence Alone(double seconds, double anchor = 1) { return {std::vector<Row>(9, Row{seconds, anchor}), {}, {}}; }

TEST(BeliefTest, RowsOfDifferentMomentsCompareByTheirAnchor) {
  const KernelRelations relations(std::vector<KernelFacts>(2));
  const std::vector<Price> prices = Believe(relations, {Alone(2e-3, 1e-4), Alone(4e-3, 2e-4)}, {});
  EXPECT_EQ(prices[0].centre, prices[1].centre);
}

TEST(BeliefTest, WhatIsUsualIsSoForOneDevice) {
  std::vector<KernelFacts> facts(4);
  facts[2].device = facts[3].device = 1;
  // The other device's anchor is a hundredth of the host's, and says nothing of the host.
  const std::vector<Price> prices =
      Believe(KernelRelations(facts), {Alone(2e-3, 1e-4), Alone(4e-3, 2e-4), Alone(3e-5, 1e-6), Alone(6e-5, 2e-6)}, {});
  EXPECT_EQ(prices[0].centre, prices[1].centre);
  EXPECT_EQ(prices[2].centre, prices[3].centre);
  EXPECT_EQ(prices[0].centre, Cost::Seconds(3e-3));
  EXPECT_EQ(prices[2].centre, Cost::Seconds(4.5e-5));
}

TEST(BeliefTest, TimesAloneBecomeThoseOfProgramsByTheRatiosOfTheirBackend) {
  std::vector<KernelFacts> facts(5);
  facts[2].variant = 2;
  facts[4].backend = 1;
  std::vector<Evidence> evidence(5, Alone(1e-3));
  for (size_t k = 0; k < 3; ++k) {
    for (uint64_t round = 1; round <= 3; ++round)
      evidence[k].in_program.push_back({{(1.5 + 0.1 * static_cast<double>(k)) * 1e-3, 1}, 7, round});
  }
  const std::vector<Price> prices = Believe(KernelRelations(facts), evidence, {});
  EXPECT_EQ(prices[0].known, Price::Known::kInProgram);
  EXPECT_EQ(prices[0].centre, Cost::Seconds(1.5e-3));
  EXPECT_EQ(prices[3].known, Price::Known::kAlone);
  EXPECT_NEAR(prices[3].centre.ToSeconds(), 1.55e-3, 0.06e-3) << "as the others of its variant";
  EXPECT_LT(prices[3].low, Cost::Seconds(1.5e-3));
  EXPECT_GT(prices[3].high, Cost::Seconds(1.6e-3));
  EXPECT_LT(prices[4].low, prices[0].low) << "its variant has shown nothing, and two others hardly tell what it will show";
  EXPECT_GT(prices[4].high, Cost::Seconds(1.7e-3));
}

TEST(BeliefTest, AnAnchorThatIsDisturbedOnceDecidesNothing) {
  std::vector<Evidence> evidence(4);
  for (size_t k = 0; k < 4; ++k) {
    evidence[k].in_program = {{{1e-3, 1e-3}, 7, 1}, {{1e-3, 3e-3}, 7, 2}, {{1e-3, 1e-3}, 7, 3}};
  }
  for (const Price& price : Believe(KernelRelations(std::vector<KernelFacts>(4)), evidence, {}))
    EXPECT_NEAR(price.centre.ToSeconds(), 1e-3, 1e-6);
}

TEST(BeliefTest, WhatATurnDeviatesByIsToldByKernelsThatOtherProgramsHold) {
  // In the last round the program was slowed down after the anchor had run. The first kernel ran in other programs, so it tells.
  std::vector<Evidence> evidence(3);
  for (uint64_t round = 1; round <= 5; ++round) {
    evidence[0].in_program.push_back({{4e-3, 9e-3}, 7, round});
    evidence[1].in_program.push_back({{1e-3, 9e-3}, 7, round});
  }
  evidence[0].in_program.push_back({{1.2 * 4e-3, 9e-3}, 7, 6});
  evidence[2].in_program.push_back({{1.2 * 2e-3, 9e-3}, 7, 6});
  const std::vector<Price> prices = Believe(KernelRelations(std::vector<KernelFacts>(3)), evidence, {});
  EXPECT_NEAR(prices[0].centre.ToSeconds(), 4e-3, 1e-6);
  EXPECT_NEAR(prices[2].centre.ToSeconds(), 2e-3, 1e-6);
}

TEST(BeliefTest, AnchorsOfDifferentHoursHaveOneLevel) {
  // In the hour of the second anchor, which is another program, the machine was half as fast. The first kernel ran in both hours.
  std::vector<Evidence> evidence(3);
  for (uint64_t round = 1; round <= 3; ++round) {
    evidence[0].in_program.push_back({{4e-3, 9e-3}, 7, round});
    evidence[1].in_program.push_back({{1e-3, 9e-3}, 7, round});
    evidence[0].in_program.push_back({{8e-3, 5e-3}, 8, round});
    evidence[2].in_program.push_back({{2e-3, 5e-3}, 8, round});
  }
  const std::vector<Price> prices = Believe(KernelRelations(std::vector<KernelFacts>(3)), evidence, {});
  EXPECT_NEAR(prices[1].centre.ToSeconds() / prices[2].centre.ToSeconds(), 1, 1e-3);
  EXPECT_NEAR(prices[0].centre.ToSeconds() / prices[1].centre.ToSeconds(), 4, 1e-3);
}

TEST(BeliefTest, AnchorsThatShareInAChainHaveOneLevel) {
  // Each next anchor is of an hour in which the machine was half as fast; neighbours have one kernel in common.
  std::vector<Evidence> evidence(5);
  for (size_t anchor = 0; anchor < 4; ++anchor) {
    for (uint64_t round = 1; round <= 4; ++round) {
      const double seconds = 1e-3 * std::pow(2, anchor);
      evidence[anchor].in_program.push_back({{seconds, 1e-3}, anchor + 1, round});
      evidence[anchor + 1].in_program.push_back({{seconds, 1e-3}, anchor + 1, round});
    }
  }
  const std::vector<Price> prices = Believe(KernelRelations(std::vector<KernelFacts>(5)), evidence, {});
  for (const Price& price : prices) EXPECT_NEAR(price.centre.ToSeconds() / prices[0].centre.ToSeconds(), 1, 1e-9);
}

TEST(BeliefTest, OfWhatNoOtherProgramHoldsTheAnchorTellsTheSpeed) {
  // The machine was half as fast while the second program ran. What both hold takes a tenth of it, and was disturbed besides.
  std::vector<Evidence> evidence(3);
  for (uint64_t round = 1; round <= 3; ++round) {
    evidence[0].in_program.push_back({{1e-4, 1e-3}, 7, round});
    evidence[1].in_program.push_back({{1e-3, 1e-3}, 7, round});
    evidence[0].in_program.push_back({{5e-4, 2e-3}, 7, round + 3});
    evidence[2].in_program.push_back({{2e-3, 2e-3}, 7, round + 3});
  }
  const std::vector<Price> prices = Believe(KernelRelations(std::vector<KernelFacts>(3)), evidence, {});
  EXPECT_NEAR(prices[1].centre.ToSeconds() / prices[2].centre.ToSeconds(), 1, 1e-3);
}

TEST(BeliefTest, OneRoundOfManyWidensNoInterval) {
  std::vector<Evidence> steady(2);
  for (uint64_t round = 1; round <= 20; ++round) {
    steady[0].in_program.push_back({{1e-3 * (round % 2 == 0 ? 1.01 : 0.99), 3e-3}, 7, round});
    steady[1].in_program.push_back({{2e-3 * (round % 4 < 2 ? 1.01 : 0.99), 3e-3}, 7, round});
  }
  std::vector<Evidence> disturbed = steady;
  disturbed[0].in_program.back().row.seconds *= 5;
  const KernelRelations relations(std::vector<KernelFacts>(2));
  EXPECT_LT(Believe(relations, disturbed, {})[1].radius, 1.1 * Believe(relations, steady, {})[1].radius);
}

TEST(BeliefTest, RelativesTellWhenThereAreEnoughOfThem) {
  for (const size_t known : {18, 40}) {
    std::vector<KernelFacts> facts;
    std::vector<Evidence> evidence;
    // Pairs around the same heavy operator: with a tail each takes 1.2 times as long as without.
    for (size_t pair = 0; pair < known; ++pair) {
      for (const double factor : {1.0, 1.2}) {
        facts.push_back({0, 2, {pair}, 1000, Cost::Microseconds(1)});
        evidence.push_back(Alone(factor * 1e-3));
        for (uint64_t round = 1; round <= 3; ++round) evidence.back().in_program.push_back({{factor * 1e-3, 1}, 7, round});
      }
    }
    facts.push_back({0, 2, {0}, 1000, Cost::Microseconds(1)});
    evidence.emplace_back();
    const Price price = Believe(KernelRelations(facts), evidence, {}).back();
    EXPECT_EQ(price.known, Price::Known::kRelatives);
    EXPECT_GT(price.low, Cost::Seconds(0.7e-3));
    EXPECT_LT(price.low, Cost::Seconds(1e-3));
    EXPECT_EQ(price.proved_low, Cost::Microseconds(1));
  }
}

TEST(BeliefTest, TwoSumsOfPartsTellOfALargerOne) {
  std::vector<KernelFacts> facts;
  std::vector<Evidence> evidence;
  const auto add = [&](std::vector<uint64_t> heavy, Evidence of) {
    facts.push_back({0, 2, std::move(heavy), 1000, Cost::Microseconds(1)});
    evidence.push_back(std::move(of));
  };
  for (uint64_t part = 0; part < 6; ++part) add({part}, Alone(1e-3));
  add({0, 1}, Alone(1.98e-3));
  add({0, 1, 2, 3, 4, 5}, {});
  EXPECT_EQ(Believe(KernelRelations(facts), evidence, {}).back().known, Price::Known::kNothing) << "one sum tells nothing";
  facts.pop_back();
  evidence.pop_back();
  add({2, 3}, Alone(2e-3));
  add({0, 1, 2, 3, 4, 5}, {});
  const Price price = Believe(KernelRelations(facts), evidence, {}).back();
  EXPECT_EQ(price.known, Price::Known::kRelatives);
  EXPECT_GT(price.usual_low, Cost::Seconds(5e-3));
  EXPECT_LT(price.usual_low, Cost::Seconds(6e-3));
  EXPECT_EQ(price.low, Cost::Microseconds(1)) << "nothing is known of programs";
}

TEST(BeliefTest, KernelsOfOneKindTellTheirRate) {
  // Each works on another shape, at 100 to 130 flops a nanosecond; ones made in another way are twice as slow.
  constexpr uint64_t kKind = 7;
  std::vector<KernelFacts> facts;
  std::vector<Evidence> evidence;
  for (uint64_t k = 0; k < 80; ++k) {
    const bool is_slow = k % 2 == 1;
    const double flops = 1e5 * static_cast<double>(1 + k);
    const double rate = (100 + static_cast<double>(k % 4) * 10) * (is_slow ? 0.5 : 1);
    facts.push_back({0, is_slow ? 2u : 4u, {k}, 1000, Cost(), kKind, flops});
    evidence.push_back(Alone(flops / rate * 1e-9));
    for (uint64_t round = 1; round <= 3; ++round) evidence.back().in_program.push_back({{flops / rate * 1e-9, 1}, 7, round});
  }
  const double flops = 4e6;
  for (const uint64_t variant : {2, 4}) {
    facts.push_back({0, variant, {1000 + variant}, 1000, Cost(), kKind, flops});
    evidence.emplace_back();
  }
  facts.push_back({0, 2, {2000}, 1000, Cost(), kKind + 1, flops});
  evidence.emplace_back();
  const std::vector<Price> prices = Believe(KernelRelations(facts), evidence, {});
  const Price& slow = prices[80];
  const Price& fast = prices[81];
  EXPECT_EQ(fast.known, Price::Known::kRelatives);
  EXPECT_GT(fast.low, Cost::Seconds(0.6 * flops / 130 * 1e-9));
  EXPECT_LT(fast.low, Cost::Seconds(flops / 100 * 1e-9));
  EXPECT_NEAR(slow.low.ToSeconds() / fast.low.ToSeconds(), 2, 0.2);
  EXPECT_EQ(prices[82].known, Price::Known::kNothing) << "of another kind";
}

TEST(BeliefTest, WhatIsWrongIsInvalid) {
  Evidence wrong = Alone(1e-3);
  wrong.invalid_reason = "differs";
  const Price price = Believe(KernelRelations(std::vector<KernelFacts>(1)), {wrong}, {}).front();
  EXPECT_EQ(price.known, Price::Known::kInvalid);
  EXPECT_TRUE(price.centre.IsInvalid());
}

}  // namespace
}  // namespace collage
