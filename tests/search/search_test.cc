#include "collage/search/search.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>

#include "tests/search/random_problem.h"

namespace collage {
namespace {

std::optional<Cost> BruteForce(const SearchProblem& problem, size_t& partitions) {
  std::optional<Cost> best;
  std::vector<SearchChoice> chosen;
  const std::function<void(IndexSet)> extend = [&](const IndexSet& covered) {
    size_t next = 0;
    while (next < problem.node_count && covered.Contains(next)) ++next;
    if (next == problem.node_count) {
      if (!FindCycle(problem, chosen).empty()) return;
      const Cost cost = PriceOfCover(problem, chosen);
      size_t count = 0;
      for (const SearchChoice& choice : chosen) count += problem.candidates[choice.candidate].is_partition ? 1 : 0;
      if (!best || cost < *best || (cost == *best && count < partitions)) {
        best = cost;
        partitions = count;
      }
      return;
    }
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem.candidates[c];
      if (candidate.inside.First() != next || candidate.inside.Intersects(covered)) continue;
      for (size_t v = 0; v < candidate.variants.size(); ++v) {
        if (!candidate.variants[v].cost.IsKnown()) continue;
        chosen.push_back({c, v});
        extend(covered | candidate.inside);
        chosen.pop_back();
      }
    }
  };
  extend({});
  return best;
}

class DijkstraTest : public testing::TestWithParam<bool> {};

TEST_P(DijkstraTest, EqualsBruteForceOnSmallRandomGraphs) {
  std::mt19937_64 random(GetParam() ? 11 : 12);
  size_t solved = 0;
  for (int round = 0; round < 6000; ++round) {
    const SearchProblem problem = RandomProblem(random, GetParam());
    size_t partitions = 0;
    const std::optional<Cost> expected = BruteForce(problem, partitions);
    const Result<SearchResult> found = SearchDijkstra(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (!expected) continue;
    ++solved;
    ASSERT_EQ(found->cost.ToSeconds(), expected->ToSeconds()) << "round " << round;
    EXPECT_EQ(PriceOfCover(problem, found->choices).ToSeconds(), expected->ToSeconds()) << "round " << round;
    size_t count = 0;
    for (const SearchChoice& choice : found->choices) count += problem.candidates[choice.candidate].is_partition ? 1 : 0;
    EXPECT_EQ(count, partitions) << "round " << round;
  }
  EXPECT_GT(solved, 1000u);
}

INSTANTIATE_TEST_SUITE_P(FineAndTiedPrices, DijkstraTest, testing::Bool());

TEST(DijkstraTest, AnUncoverableNodeIsNamed) {
  SearchProblem problem;
  problem.node_count = 2;
  problem.backend_count = 1;
  problem.tensors = {{0, {1}, false}, {1, {}, true}};
  problem.candidates.push_back({IndexSet({0}), 0, {}, {0}, {{Cost::Microseconds(1), {}, {0}}}});
  problem.candidates.push_back({IndexSet({1}), 0, {0}, {1}, {{Cost::Invalid(), {0}, {0}}}});
  const Result<SearchResult> result = SearchDijkstra(problem);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "no valid candidate covers node 1");
}

TEST(DijkstraTest, AChainKeepsItsBlockedLayoutForNothing) {
  // Three kernels, each 10 us plain or 8 us blocked; a conversion costs 3 us: blocked wins only as a whole chain.
  SearchProblem problem;
  problem.node_count = 3;
  problem.layout_count = 2;
  problem.backend_count = 1;
  problem.tensors = {{0, {1}, false}, {1, {2}, false}, {2, {}, true}, {SearchTensor::kOutside, {0}, false}};
  problem.conversion = [](size_t, size_t, size_t) { return Cost::Microseconds(2.5); };
  for (size_t n = 0; n < 3; ++n) {
    const size_t input = n == 0 ? 3 : n - 1;
    problem.candidates.push_back({IndexSet({n}), 0, {input}, {n}, {{Cost::Microseconds(10), {0}, {0}}, {Cost::Microseconds(8), {1}, {1}}}});
  }
  const Result<SearchResult> result = SearchDijkstra(problem);
  ASSERT_TRUE(result.has_value());
  EXPECT_DOUBLE_EQ(result->cost.ToMicroseconds(), 29);
  for (const SearchChoice& choice : result->choices) EXPECT_EQ(choice.variant, 1u);
}

TEST(DijkstraTest, ATenThousandNodeChainIsNearLinear) {
  const auto states = [](size_t n) {
    SearchProblem problem;
    problem.node_count = n;
    problem.layout_count = 2;
    problem.backend_count = 2;
    problem.conversion = [](size_t, size_t, size_t) { return Cost::Microseconds(1); };
    for (size_t i = 0; i < n; ++i)
      problem.tensors.push_back({i, i + 1 < n ? std::vector<size_t>{i + 1} : std::vector<size_t>{}, i + 1 == n});
    for (size_t i = 0; i < n; ++i) {
      for (size_t length = 1; length <= 3 && i + length <= n; ++length) {
        SearchCandidate candidate;
        for (size_t j = i; j < i + length; ++j) candidate.inside.Add(j);
        candidate.backend = length % 2;
        if (i > 0) candidate.inputs = {i - 1};
        candidate.outputs = {i + length - 1};
        const std::vector<size_t> plain(candidate.inputs.size(), 0);
        const std::vector<size_t> blocked(candidate.inputs.size(), 1);
        candidate.variants = {{Cost::Microseconds(5.0 + static_cast<double>((i * 7) % 5)), plain, {0}},
                              {Cost::Microseconds(4), blocked, {1}}};
        problem.candidates.push_back(std::move(candidate));
      }
    }
    const Result<SearchResult> result = SearchDijkstra(problem);
    return result ? result->states_expanded : 0;
  };
  const size_t small = states(1000);
  ASSERT_GT(small, 0u);
  EXPECT_LE(states(10000), 13 * small);
}

}  // namespace
}  // namespace collage
