// "Every searcher equals brute force on all graphs up to 6 operators with random prices, layouts and conversions, incl. Invalid and
// ties; evolutionary never worse than its start."

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "collage/search/evolutionary.h"
#include "collage/search/exact.h"
#include "collage/search/op_level.h"
#include "collage/search/searcher.h"
#include "collage/search/shortest_path.h"
#include "tests/search/random_problem.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

/// What is slow is tried on one of so many graphs of six nodes, and under a sanitizer on fewer of five and six; with COLLAGE_EVERY_GRAPH=1
/// in the environment on all of them, which takes about half an hour.
size_t OneOf(size_t node_count, size_t of_six) {
  if (node_count < 5 || std::getenv("COLLAGE_EVERY_GRAPH") != nullptr) return 1;
  return node_count == 5 ? kOneOfCases : of_six * kOneOfCases;
}

/// Node counts, each with fine prices and with prices full of ties.
class EveryGraphTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  /// One random problem over every connected graph, with its optimum.
  template <class Visit>
  static void ForEach(uint64_t seed, size_t every, const Visit& visit) {
    const auto [node_count, has_ties] = GetParam();
    std::mt19937_64 random(seed * 100 + node_count * 2 + (has_ties ? 1 : 0));
    const auto graphs = ConnectedGraphs(node_count);
    // Of many nodes there are so many that half of them get fine prices and half ties; of fewer nodes each gets both.
    const bool are_shared = node_count >= 5;
    for (size_t g = are_shared && has_ties ? every : 0; g < graphs.size(); g += are_shared ? 2 * every : 1) {
      const SearchProblem problem = RandomProblemOver(graphs[g], random, has_ties);
      visit(problem, g);
      if (testing::Test::HasFailure()) return;
    }
  }
};

TEST(ConnectedGraphsTest, AreAsManyAsThereAre) {
  // Connected labelled graphs of n nodes (OEIS A001187): each has one numbering of its edges in dataflow order.
  const std::vector<size_t> counts = {1, 1, 4, 38, 728, 26704};
  for (size_t n = 1; n <= counts.size(); ++n) EXPECT_EQ(ConnectedGraphs(n).size(), counts[n - 1]);
}

TEST_P(EveryGraphTest, ShortestPathAndDijkstraFindThePreferredOptimum) {
  size_t solved = 0;
  ForEach(1, OneOf(std::get<0>(GetParam()), 1), [&](const SearchProblem& problem, size_t graph) {
    const auto expected = BruteForce(problem);
    solved += expected ? 1 : 0;
    std::vector<Searcher> searchers = Searchers();
    std::erase_if(searchers, [](const Searcher& searcher) { return searcher.name != "sweep" && searcher.name != "dijkstra"; });
    searchers.push_back(
        {"with bounds", true, [](const SearchProblem& one) { return SearchShortestPath(one, ShortestPathOptions{.easy_states = 0}); }});
    for (const Searcher& searcher : searchers) {
      const Result<SearchResult> found = searcher.search(problem);
      ASSERT_EQ(found.has_value(), expected.has_value()) << searcher.name << ", graph " << graph;
      if (!expected) continue;
      EXPECT_EQ(found->choices, *expected) << searcher.name << ", graph " << graph;
      EXPECT_EQ(found->cost, PriceOfCover(problem, *expected)) << searcher.name << ", graph " << graph;
      EXPECT_EQ(found->lower_bound, found->cost) << searcher.name << ", graph " << graph;
    }
  });
  // Of one node or two there are few, and all variants of one may be Invalid.
  if (std::get<0>(GetParam()) > 3) {
    EXPECT_GT(solved, 10u);
  }
}

TEST_P(EveryGraphTest, TheIntegerProgramFindsTheOptimum) {
  // A solver's call takes a hundred times a sweep.
  ForEach(2, OneOf(std::get<0>(GetParam()), 200), [&](const SearchProblem& problem, size_t graph) {
    const auto expected = BruteForce(problem);
    const Result<SearchResult> found = SearchExactly(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "graph " << graph << (found ? "" : ": " + found.error().message);
    if (!expected) return;
    const double optimum = PriceOfCover(problem, *expected).ToMicroseconds();
    EXPECT_NEAR(found->cost.ToMicroseconds(), optimum, 1e-5 * optimum) << "graph " << graph;
    EXPECT_EQ(found->cost, PriceOfCover(problem, found->choices)) << "graph " << graph;
    EXPECT_LE(found->lower_bound.ToMicroseconds(), optimum) << "graph " << graph;
    EXPECT_GE(found->lower_bound.ToMicroseconds(), optimum * (1 - 1e-4)) << "graph " << graph;
  });
}

TEST_P(EveryGraphTest, EvolutionIsNeverWorseThanItsStart) {
  // Two hundred plans a call.
  ForEach(3, OneOf(std::get<0>(GetParam()), 40), [&](const SearchProblem& problem, size_t graph) {
    const Result<SearchResult> start = SearchOpLevel(problem);
    if (!start) return;
    EvolutionOptions options;
    options.is_graph_backend.assign(problem.backend_count, true);
    options.seed = graph;
    const Result<EvolutionResult> found = SearchByEvolution(problem, start->choices, options);
    ASSERT_TRUE(found.has_value()) << "graph " << graph;
    EXPECT_EQ(found->start_cost, start->cost) << "graph " << graph;
    EXPECT_LE(found->cost, found->start_cost) << "graph " << graph;
    EXPECT_EQ(found->cost, PriceOfCover(problem, found->choices)) << "graph " << graph;
    const Result<SearchResult> optimum = SearchShortestPath(problem);
    ASSERT_TRUE(optimum.has_value()) << "graph " << graph;
    EXPECT_GE(found->cost, optimum->cost) << "graph " << graph;
  });
}

INSTANTIATE_TEST_SUITE_P(UpToSixOperators, EveryGraphTest, testing::Combine(testing::Range(size_t{1}, size_t{7}), testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "_of_" + (std::get<1>(info.param) ? "tied" : "fine") +
                                  "_prices";
                         });

}  // namespace
}  // namespace collage
