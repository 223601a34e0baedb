#include "collage/decide/decide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "collage/decide/priced_problem.h"
#include "collage/search/shortest_path.h"
#include "tests/decide/simulated_machine.h"
#include "tests/search/random_problem.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

bool IsConvex(const SearchProblem& problem, const SearchCandidate& candidate) {
  IndexSet left;  // nodes behind the candidate and outside of it
  for (size_t node = 0; node < problem.node_count; ++node) {
    bool is_behind = false;
    bool has_left = false;
    for (const SearchTensor& tensor : problem.tensors) {
      if (tensor.producer == SearchTensor::kOutside) continue;
      if (std::find(tensor.consumers.begin(), tensor.consumers.end(), node) == tensor.consumers.end()) continue;
      is_behind = is_behind || candidate.inside.Contains(tensor.producer);
      has_left = has_left || left.Contains(tensor.producer);
    }
    if (candidate.inside.Contains(node) && has_left) return false;
    if (!candidate.inside.Contains(node) && (is_behind || has_left)) left.Add(node);
  }
  return true;
}

/// A problem whose prices are those of kernels: from tens to hundreds of microseconds, without ties.
SearchProblem TimedProblem(std::mt19937_64& random, size_t blocks) {
  SearchProblem problem = blocks == 0 ? RandomProblem(random, false) : RepeatedBlocks(random, blocks, false);
  // No backend offers a candidate that a path leaves and enters again.
  std::erase_if(problem.candidates, [&](const SearchCandidate& candidate) { return !IsConvex(problem, candidate); });
  for (SearchCandidate& candidate : problem.candidates) {
    for (SearchVariant& variant : candidate.variants) {
      if (!variant.cost.IsKnown()) continue;
      std::lognormal_distribution<double> factor(0, 0.4);
      variant.cost = Cost::Microseconds(40 * static_cast<double>(candidate.inside.Count()) * factor(random));
    }
  }
  // Transitions are told at one speed, and are small; so they are here.
  for (std::vector<Cost>& row : problem.transition) {
    for (Cost& cost : row) cost = Cost::Microseconds(static_cast<double>(random() % 3));
  }
  return problem;
}

struct Outcome {
  size_t runs = 0;
  size_t within = 0;  // of the optimum, by the smallest difference
  size_t settled = 0;
  size_t proved_above = 0;     // proved bounds above the optimum: never
  size_t claimed_wrongly = 0;  // settled, and not within
  size_t programs = 0;
  size_t alone = 0;
  size_t waits = 0;
  size_t kernels = 0;
  double regret = 0;
  double open = 0;
};

Outcome Simulate(size_t runs, size_t blocks, const SimulatedMachine::Nature& nature, const Declared& declared = {}) {
  Outcome outcome;
  std::mt19937_64 random(blocks + 1);
  while (outcome.runs < runs) {
    SearchProblem problem = TimedProblem(random, blocks);
    if (!SearchShortestPath(problem)) continue;
    SimulatedMachine machine(std::move(problem), random, nature);
    std::vector<Evidence> evidence = machine.NoEvidence();
    DecideOptions options;
    options.declared = declared;
    const Result<Decision> decision = Decide(machine.arms(), evidence, machine, options);
    EXPECT_TRUE(decision) << decision.error().message;
    if (!decision) return outcome;
    const double optimum = machine.Optimum().ToSeconds();
    const double found = machine.TrueCost(decision->best.choices).ToSeconds();
    ++outcome.runs;
    outcome.within += found <= optimum * (1 + declared.smallest_difference);
    outcome.settled += decision->is_settled;
    outcome.claimed_wrongly += decision->is_settled && found > optimum * (1 + declared.smallest_difference);
    const Bounds bounds = BoundsOf(machine.arms(), Believe(machine.arms().kernels, evidence, declared), {}, *decision).value();
    outcome.proved_above += bounds.proved.ToSeconds() > optimum;
    outcome.programs += machine.programs();
    outcome.alone += machine.alone();
    outcome.waits += machine.waits();
    outcome.kernels += evidence.size();
    outcome.regret += found / optimum - 1;
    outcome.open += bounds.open;
  }
  std::printf(
      "%zu runs: %zu within, %zu settled (%zu wrongly), %zu proved bounds too high; %.1f programs, %.1f of %.1f kernels alone, %.1f waits "
      "for "
      "them, regret %.2f%%, open %.2f%%\n",
      outcome.runs, outcome.within, outcome.settled, outcome.claimed_wrongly, outcome.proved_above,
      static_cast<double>(outcome.programs) / static_cast<double>(outcome.runs),
      static_cast<double>(outcome.alone) / static_cast<double>(outcome.runs),
      static_cast<double>(outcome.kernels) / static_cast<double>(outcome.runs),
      static_cast<double>(outcome.waits) / static_cast<double>(outcome.runs), 100 * outcome.regret / static_cast<double>(outcome.runs),
      100 * outcome.open / static_cast<double>(outcome.runs));
  return outcome;
}

TEST(DecideTest, OnSimulatedMachinesThePlanIsWithinTheDeclaredDifference) {
  const Outcome small = Simulate(Rounds(900), 0, {});
  EXPECT_GE(small.within, small.runs * 95 / 100);
  EXPECT_LE(small.claimed_wrongly, small.settled / 20);
  EXPECT_EQ(small.proved_above, 0u);
}

TEST(DecideTest, OnSimulatedMachinesLargePlansAreWithinTheDeclaredDifference) {
  // Sixty nodes and three minutes: then time ends, and what is left open is said.
  const Outcome large = Simulate(Rounds(10), 3, {});
  EXPECT_GE(large.within, large.runs * 8 / 10);
  EXPECT_EQ(large.claimed_wrongly, 0u);
  EXPECT_EQ(large.proved_above, 0u);
}

TEST(DecideTest, ManyMachinesGiveAsGoodAPlanAfterFewerWaits) {
  SimulatedMachine::Nature fleet;
  fleet.at_once = 8;
  const Outcome one = Simulate(Rounds(300), 0, {});
  const Outcome many = Simulate(Rounds(300), 0, fleet);
  EXPECT_GE(many.within, many.runs * 95 / 100);
  EXPECT_LE(many.claimed_wrongly, many.settled / 20);
  EXPECT_EQ(many.proved_above, 0u);
  EXPECT_EQ(one.waits, one.alone);
  EXPECT_LT(3 * many.waits, one.waits);
}

TEST(DecideTest, TheConfidenceIsDeclaredInOnePlace) {
  Declared careless;
  careless.confidence = 0.5;
  const Outcome careful = Simulate(100, 0, {});
  const Outcome hasty = Simulate(100, 0, {}, careless);
  EXPECT_LT(hasty.programs + hasty.alone, careful.programs + careful.alone);
  EXPECT_GE(hasty.settled, careful.settled);
}

/// Kernels take what they take; remembers who was timed alone.
class Steady : public Measurer {
 public:
  Steady(const Arms& arms, std::vector<double> seconds) : arms_(arms), seconds_(std::move(seconds)) {}
  Result<Found> MeasureAlone(size_t kernel) override {
    alone.push_back(kernel);
    return Found{{kernel, {std::vector<Row>(9, {seconds_[kernel], 1}), {}, {}}}};
  }
  Result<Found> MeasureInProgram(const std::vector<SearchChoice>& cover) override {
    ++round_;
    Found found;
    for (const SearchChoice& choice : cover) {
      const size_t kernel = arms_.kernel_of[choice.candidate][choice.variant];
      found.push_back({kernel, {{}, {{{seconds_[kernel], 1}, 1, round_}}, {}}});
    }
    return found;
  }
  [[nodiscard]] bool IsOver() const override { return false; }
  std::vector<size_t> alone;

 private:
  const Arms& arms_;
  std::vector<double> seconds_;
  uint64_t round_ = 0;
};

/// Operators in a row, and kernels of some of them.
class OperatorsInARow : public Arms {
 public:
  OperatorsInARow(size_t nodes, size_t backends) {
    problem.node_count = nodes;
    problem.backend_count = backends;
    for (size_t node = 0; node <= nodes; ++node) {
      SearchTensor tensor;
      if (node > 0) tensor.producer = node - 1;
      if (node < nodes) tensor.consumers = {node};
      tensor.is_result = node == nodes;
      problem.tensors.push_back(tensor);
    }
  }

  void Add(size_t first, size_t last, size_t backend, double seconds_of_one) {
    SearchCandidate candidate;
    KernelFacts fact;
    for (size_t node = first; node <= last; ++node) {
      candidate.inside.Add(node);
      fact.heavy.push_back(node);
    }
    const auto count = static_cast<double>(last - first + 1);
    candidate.backend = fact.backend = backend;
    candidate.inputs = {first};
    candidate.outputs = {last + 1};
    candidate.variants = {{Cost(), {0}, {0}}};
    problem.candidates.push_back(candidate);
    kernel_of.push_back({facts.size()});
    fact.variant = 2 * backend;
    fact.roofline = Cost::Microseconds(count);
    fact.compile_seconds = 1e-3 * count;
    facts.push_back(fact);
    seconds.push_back(count * seconds_of_one);
    kernels = KernelRelations(facts);
  }

  std::vector<KernelFacts> facts;
  std::vector<double> seconds;
};

TEST(DecideTest, AKernelOfManyOperatorsIsNotTimedWhereItsPartsRuleItOut) {
  constexpr size_t kNodes = 12;
  OperatorsInARow row(kNodes, 2);
  // A library that takes single operators, and a compiler that takes any row of them and is half as fast.
  for (size_t node = 0; node < kNodes; ++node) row.Add(node, node, 0, 1e-3);
  for (size_t first = 0; first < kNodes; ++first) {
    for (size_t last = first; last < kNodes; ++last) row.Add(first, last, 1, 2e-3);
  }
  std::vector<Evidence> evidence(row.facts.size());
  Steady measurer(row, row.seconds);
  const Result<Decision> decision = Decide(row, evidence, measurer, {});
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_TRUE(decision->is_settled);
  EXPECT_NEAR(decision->best.cost.ToSeconds(), kNodes * 1e-3, 1e-5);
  const auto is_large = [&](size_t kernel) { return row.facts[kernel].heavy.size() > 3; };
  // How the compiler's times in programs compare to those alone has to be seen before anything can be stated of the others.
  EXPECT_LE(std::count_if(measurer.alone.begin(), measurer.alone.end(), is_large), 2);
  EXPECT_LE(measurer.alone.size(), 2 * kNodes + 5) << "the parts, and a few rows of them";
}

/// Remembers what its programs take.
class OfPrograms : public Steady {
 public:
  using Steady::Steady;
  Result<Found> MeasureInProgram(const std::vector<SearchChoice>& cover) override {
    Result<Found> found = Steady::MeasureInProgram(cover);
    programs.push_back(0);
    for (const auto& [kernel, evidence] : found.value()) programs.back() += evidence.in_program.front().row.seconds;
    return found;
  }
  std::vector<double> programs;
};

TEST(DecideTest, NoProgramIsRunThatIsDearerThanTheIncumbentWhilePricesMayBeatIt) {
  constexpr size_t kNodes = 12;
  constexpr double kSecondsOfFirst = 2e-3;  // of each kernel of the backend that is priced first, by its roofline
  constexpr double kSecondsOfSecond = 1e-3;
  Arms arms;
  arms.problem.node_count = kNodes;
  arms.problem.backend_count = 2;
  std::vector<KernelFacts> facts;
  std::vector<double> seconds;
  for (size_t node = 0; node <= kNodes; ++node) {
    SearchTensor tensor;
    if (node > 0) tensor.producer = node - 1;
    if (node < kNodes) tensor.consumers = {node};
    tensor.is_result = node == kNodes;
    arms.problem.tensors.push_back(tensor);
    for (size_t backend = 0; node < kNodes && backend < 2; ++backend) {
      SearchCandidate candidate;
      candidate.inside.Add(node);
      candidate.backend = backend;
      candidate.inputs = {node};
      candidate.outputs = {node + 1};
      candidate.variants = {{Cost(), {0}, {0}}};
      arms.problem.candidates.push_back(candidate);
      arms.kernel_of.push_back({facts.size()});
      KernelFacts fact;
      fact.backend = facts.size();  // like no other
      fact.heavy = {node};
      fact.roofline = Cost::Microseconds(backend == 0 ? 1 : 2);
      facts.push_back(fact);
      seconds.push_back(backend == 0 ? kSecondsOfFirst : kSecondsOfSecond);
    }
  }
  arms.kernels = KernelRelations(facts);
  const auto programs_beside = [&](Cost incumbent) {
    std::vector<Evidence> evidence(facts.size());
    OfPrograms measurer(arms, seconds);
    DecideOptions options;
    options.incumbent = incumbent;
    const Result<Decision> decision = Decide(arms, evidence, measurer, options);
    EXPECT_TRUE(decision && decision->is_settled);
    EXPECT_NEAR(decision->best.cost.ToSeconds(), kNodes * kSecondsOfSecond, 1e-6);
    return measurer.programs;
  };
  EXPECT_NEAR(programs_beside(Cost::Unknown()).front(), kNodes * kSecondsOfFirst, 1e-6);
  const double incumbent = 1.5 * kNodes * kSecondsOfSecond;
  EXPECT_LT(programs_beside(Cost::Seconds(incumbent)).front(), incumbent);
  // None can beat this one, by rooflines: then the best cover is confirmed as without it.
  EXPECT_NEAR(programs_beside(Cost::Microseconds(1)).front(), kNodes * kSecondsOfFirst, 1e-6);
}

/// Time for the first prices alone.
class Hurried : public Steady {
 public:
  using Steady::Steady;
  [[nodiscard]] bool IsOver() const override { return true; }
};

TEST(DecideTest, WhereTimeEndsBeforeAnyPlanHasRunTheBoundSaysWhatIsOpen) {
  std::mt19937_64 random(5);
  size_t decided = 0;
  for (int round = 0; round < 50; ++round) {
    const SearchProblem problem = TimedProblem(random, 0);
    if (!SearchShortestPath(problem)) continue;
    const SimulatedMachine machine(problem, random, {});
    const Arms& arms = machine.arms();
    std::vector<double> seconds;
    for (const KernelFacts& facts : arms.kernels.kernels()) seconds.push_back(2 * facts.roofline.ToSeconds() + 1e-6);
    std::vector<Evidence> evidence(seconds.size());
    Hurried measurer(arms, seconds);
    const Result<Decision> decision = Decide(arms, evidence, measurer, {});
    ASSERT_TRUE(decision) << decision.error().message;
    if (decision->is_settled) continue;
    ++decided;
    const std::vector<Price> prices = Believe(arms.kernels, evidence, {});
    const Bounds bounds = BoundsOf(arms, prices, {}, *decision).value();
    EXPECT_LT(bounds.open, 1) << "round " << round;
    EXPECT_DOUBLE_EQ(bounds.open, std::max(0.0, 1 - bounds.likely.ToSeconds() / decision->best.cost.ToSeconds())) << "round " << round;
    const double most_gain = (decision->best.cost - SearchAt(arms, Lows(prices))->cost).ToSeconds();
    EXPECT_GE((decision->best.cost - bounds.likely).ToSeconds(), most_gain) << "round " << round;
    EXPECT_LE((decision->best.cost - bounds.likely).ToSeconds(), most_gain / 0.9 + 1e-12) << "round " << round;
  }
  EXPECT_GT(decided, 20u);
}

TEST(DecideTest, WhereTimeHasEndedNothingIsSearchedForBesideAPlanThatIsKnown) {
  OperatorsInARow row(3, 1);
  for (size_t node = 0; node < 3; ++node) row.Add(node, node, 0, 1e-3);
  std::vector<Evidence> evidence(row.facts.size());
  Hurried measurer(row, row.seconds);
  size_t searches = 0;
  DecideOptions options;
  options.rival = Cost::Seconds(1);
  options.searched = [&](const Result<SearchResult>&, bool, double) { ++searches; };
  const Result<Decision> decision = Decide(row, evidence, measurer, options);
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().message, kTimeEnded);
  EXPECT_EQ(searches, 0u);
  EXPECT_TRUE(measurer.alone.empty());
}

TEST(DecideTest, WhereTimeEndsWithoutAPlanOneKernelForAllLayersIsTakenIfThatManyAreSoonerCompiledThanTheWholeModel) {
  constexpr size_t kLayers = 500;
  const auto partitions_where_a_layer_takes = [&](double compile_seconds) {
    OperatorsInARow row(2 * kLayers, 2);
    for (size_t layer = 0; layer < kLayers; ++layer) {
      row.Add(2 * layer, 2 * layer + 1, 0, 1e-3);
      row.kernel_of.back() = {0};
    }
    row.facts.front().compile_seconds = compile_seconds;
    row.Add(0, 2 * kLayers - 1, 1, 1e-4);
    std::vector<Evidence> evidence(row.facts.size());
    Hurried measurer(row, row.seconds);
    const Result<Decision> decision = Decide(row, evidence, measurer, {});
    EXPECT_EQ(measurer.alone.size(), 1u);
    return decision ? decision->best.choices.size() : 0;
  };
  EXPECT_EQ(partitions_where_a_layer_takes(1e-3), kLayers);
  EXPECT_EQ(partitions_where_a_layer_takes(4e-2), 1u);
}

/// A second is left.
class WithASecond : public Steady {
 public:
  using Steady::Steady;
  [[nodiscard]] bool HasTimeFor(double seconds) const override { return seconds < 1; }
};

TEST(DecideTest, WhatCannotRunInTheTimeThatIsLeftIsNeitherTheFirstPlanNorAChallenger) {
  constexpr size_t kLayers = 40;
  const auto priced_where_a_layer_takes = [&](double compile_seconds, Cost incumbent = Cost::Unknown()) {
    OperatorsInARow row(kLayers, 2);
    for (size_t layer = 0; layer < kLayers; ++layer) {
      row.Add(layer, layer, 0, 1e-3);
      row.kernel_of.back() = {0};
      row.Add(layer, layer, 1, 1e-4);
      row.kernel_of.back() = {1};
    }
    // By rooflines the second is cheaper.
    row.facts[0].roofline = Cost::Microseconds(2);
    row.facts[1].compile_seconds = compile_seconds;
    row.kernels = KernelRelations(row.facts);
    std::vector<Evidence> evidence(row.facts.size());
    WithASecond measurer(row, {1e-3, 1e-4});
    DecideOptions options;
    options.incumbent = incumbent;
    EXPECT_TRUE(Decide(row, evidence, measurer, options));
    return measurer.alone;
  };
  EXPECT_EQ(priced_where_a_layer_takes(1e-3).front(), 1u);
  EXPECT_EQ(priced_where_a_layer_takes(4e-2), std::vector<size_t>{0});
  const Cost cheaper = Cost::Microseconds(30000);  // than the cover that is known
  EXPECT_EQ(priced_where_a_layer_takes(1e-3, cheaper).front(), 1u);
  EXPECT_EQ(priced_where_a_layer_takes(4e-2, cheaper), std::vector<size_t>{0});
}

TEST(DecideTest, WhereTimeEndsWithoutAPlanTheOneIsTakenThatRunsSoonest) {
  constexpr size_t kNodes = 12;
  OperatorsInARow row(kNodes, 2);
  for (size_t node = 0; node < kNodes; ++node) row.Add(node, node, 0, 1e-3);
  row.Add(0, kNodes - 1, 1, 0.1);  // a whole model, far slower
  std::vector<Evidence> evidence(row.facts.size());
  Hurried measurer(row, row.seconds);
  const Result<Decision> decision = Decide(row, evidence, measurer, {});
  ASSERT_TRUE(decision) << decision.error().message;
  // Programs are made of kernels that a process of their own has run.
  EXPECT_EQ(measurer.alone, std::vector<size_t>{kNodes});
  EXPECT_EQ(decision->best.choices.size(), 1u);

  // A plan that is none of these covers is one.
  evidence.assign(row.facts.size(), {});
  Hurried beside_a_plan(row, row.seconds);
  DecideOptions options;
  options.incumbent = Cost::Seconds(1);
  const Result<Decision> none = Decide(row, evidence, beside_a_plan, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, kTimeEnded);
  EXPECT_TRUE(beside_a_plan.alone.empty());
}

}  // namespace
}  // namespace collage
