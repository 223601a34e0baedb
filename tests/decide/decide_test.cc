#include "collage/decide/decide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "collage/search/shortest_path.h"
#include "tests/decide/simulated_machine.h"
#include "tests/search/random_problem.h"

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
    outcome.proved_above += decision->proved_bound.ToSeconds() > optimum;
    outcome.programs += machine.programs();
    outcome.alone += machine.alone();
    outcome.kernels += evidence.size();
    outcome.regret += found / optimum - 1;
    outcome.open += decision->open;
  }
  std::printf(
      "%zu runs: %zu within, %zu settled (%zu wrongly), %zu proved bounds too high; %.1f programs, %.1f of %.1f kernels alone, regret "
      "%.2f%%, open %.2f%%\n",
      outcome.runs, outcome.within, outcome.settled, outcome.claimed_wrongly, outcome.proved_above,
      static_cast<double>(outcome.programs) / static_cast<double>(outcome.runs),
      static_cast<double>(outcome.alone) / static_cast<double>(outcome.runs),
      static_cast<double>(outcome.kernels) / static_cast<double>(outcome.runs), 100 * outcome.regret / static_cast<double>(outcome.runs),
      100 * outcome.open / static_cast<double>(outcome.runs));
  return outcome;
}

TEST(DecideTest, OnSimulatedMachinesThePlanIsWithinTheDeclaredDifference) {
  const Outcome small = Simulate(900, 0, {});
  EXPECT_GE(small.within, 855u);
  EXPECT_LE(small.claimed_wrongly, small.settled / 20);
  EXPECT_EQ(small.proved_above, 0u);
}

TEST(DecideTest, OnSimulatedMachinesLargePlansAreWithinTheDeclaredDifference) {
  // Sixty nodes and three minutes: then time ends, and what is left open is said.
  const Outcome large = Simulate(10, 3, {});
  EXPECT_GE(large.within, 8u);
  EXPECT_EQ(large.claimed_wrongly, 0u);
  EXPECT_EQ(large.proved_above, 0u);
}

TEST(DecideTest, TheConfidenceIsDeclaredInOnePlace) {
  Declared careless;
  careless.confidence = 0.5;
  const Outcome careful = Simulate(100, 0, {});
  const Outcome hasty = Simulate(100, 0, {}, careless);
  EXPECT_LT(hasty.programs + hasty.alone, careful.programs + careful.alone);
  EXPECT_GE(hasty.settled, careful.settled);
}

}  // namespace
}  // namespace collage
