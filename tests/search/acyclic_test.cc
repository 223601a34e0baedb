#include "collage/search/acyclic.h"

#include <gtest/gtest.h>

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

/// Blocks of four nodes in a chain. Cheapest by far are the outer two together, which the inner two would have to run between: such a
/// choice closes a cycle, and each block has its own.
SearchProblem ManyCycles(size_t blocks) {
  SearchProblem problem;
  problem.node_count = 4 * blocks;
  problem.backend_count = 1;
  problem.conversion = [](size_t, size_t, size_t) { return Cost(); };
  for (size_t n = 0; n < problem.node_count; ++n)
    problem.tensors.push_back(
        {n, n + 1 < problem.node_count ? std::vector<size_t>{n + 1} : std::vector<size_t>{}, n + 1 == problem.node_count});
  const auto add = [&](const std::vector<size_t>& inside, double price) {
    SearchCandidate candidate;
    candidate.inside = IndexSet(inside);
    for (const size_t node : inside) {
      if (node > 0 && !candidate.inside.Contains(node - 1)) candidate.inputs.push_back(node - 1);
      if (!candidate.inside.Contains(node + 1)) candidate.outputs.push_back(node);
    }
    const std::vector<size_t> plain(candidate.inputs.size(), 0);
    candidate.variants = {{Cost::Microseconds(price), plain, std::vector<size_t>(candidate.outputs.size(), 0)}};
    problem.candidates.push_back(std::move(candidate));
  };
  for (size_t n = 0; n < problem.node_count; n += 4) {
    add({n, n + 3}, 1);
    add({n + 1, n + 2}, 1);
    add({n, n + 1}, 4);
    add({n + 2, n + 3}, 4);
    for (size_t node = n; node < n + 4; ++node) add({node}, 10);
  }
  return problem;
}

TEST(AcyclicTest, NobodyWaitsForWhatIsCoveredInFavourOfAnotherForm) {
  // Node 0 is read by 1 and 2, and those by 3. One candidate covers 0 but computes none of it, and 2 is computed without it as well.
  SearchProblem problem;
  problem.node_count = 4;
  problem.backend_count = 1;
  problem.tensors = {{0, {1, 2}, false}, {1, {3}, false}, {2, {3}, false}, {3, {}, true}};
  const auto add = [&](const std::vector<size_t>& inside, std::vector<size_t> inputs, size_t output) {
    const std::vector<size_t> plain(inputs.size(), 0);
    problem.candidates.push_back({IndexSet(inside), 0, std::move(inputs), {output}, {{Cost::Microseconds(1), plain, {0}}}});
  };
  add({0, 1, 3}, {2}, 3);
  add({2}, {}, 2);
  EXPECT_TRUE(FindCycle(problem, {{0, 0}, {1, 0}}).empty());
  EXPECT_EQ(SearchShortestPath(problem).value().cost, Cost::Microseconds(2));
  problem.candidates[1].inputs = {0};  // reads what the other one computes
  EXPECT_EQ(FindCycle(problem, {{0, 0}, {1, 0}}).size(), 2u);
}

constexpr double kOptimumOfABlock = 8;

TEST(AcyclicTest, FewCyclesAreBranchedOnUntilTheOptimumIsProven) {
  const SearchResult found = SearchShortestPath(ManyCycles(3)).value();
  EXPECT_TRUE(found.is_proven);
  EXPECT_EQ(found.cost, Cost::Microseconds(3 * kOptimumOfABlock));
  EXPECT_EQ(found.lower_bound, found.cost);
}

TEST(AcyclicTest, ManyCyclesEndAtTheLimitWithAnAcyclicCoverAndAnHonestBound) {
  const SearchProblem problem = ManyCycles(24);
  const Cost optimum = Cost::Microseconds(24 * kOptimumOfABlock);
  for (const size_t most_solves : {size_t{1}, size_t{2}, size_t{20}}) {
    const SearchResult found = SearchShortestPath(problem, ShortestPathOptions{.most_solves = most_solves}).value();
    EXPECT_TRUE(FindCycle(problem, found.choices).empty());
    EXPECT_EQ(PriceOfCover(problem, found.choices), found.cost);
    EXPECT_FALSE(found.is_proven);
    EXPECT_LT(found.lower_bound, found.cost);
    EXPECT_GE(found.cost, optimum);
    EXPECT_LE(found.lower_bound, optimum);
    EXPECT_GE(found.lower_bound, Cost::Microseconds(24 * 2));
  }
  for (const Result<SearchResult>& found : {SearchShortestPath(problem), SearchDijkstra(problem)}) {
    EXPECT_TRUE(found->is_proven);
    EXPECT_EQ(found->cost, optimum);
  }
}

TEST(AcyclicTest, WhatHasTwoExitsMayCloseACycle) {
  const SearchProblem problem = ManyCycles(1);
  EXPECT_EQ(LeadToOneExit(problem), (std::vector<bool>{false, true, true, true, true, true, true, true}));
}

}  // namespace
}  // namespace collage
