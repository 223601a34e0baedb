#include "collage/search/search.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/search/evolutionary.h"
#include "collage/search/exact.h"
#include "collage/search/greedy.h"
#include "collage/search/op_level.h"
#include "collage/search/searcher.h"
#include "collage/search/shortest_path.h"
#include "collage/support/hash.h"
#include "tests/search/random_problem.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

class SearchersTest : public testing::TestWithParam<bool> {};

void ExpectIsCover(const SearchProblem& problem, const SearchResult& result) {
  IndexSet covered;
  for (const SearchChoice& choice : result.choices) {
    EXPECT_FALSE(covered.Intersects(problem.candidates[choice.candidate].inside));
    EXPECT_TRUE(problem.candidates[choice.candidate].variants[choice.variant].cost.IsKnown());
    covered |= problem.candidates[choice.candidate].inside;
  }
  EXPECT_EQ(covered.Count(), problem.node_count);
  EXPECT_TRUE(FindCycle(problem, result.choices).empty());
  EXPECT_EQ(result.cost, PriceOfCover(problem, result.choices));
}

/// "Every searcher equals brute force": the exact ones in price, those that claim the declared preference in every choice.
TEST_P(SearchersTest, EqualBruteForceOnSmallRandomGraphs) {
  std::mt19937_64 random(GetParam() ? 11 : 12);
  size_t solved = 0;
  for (size_t round = 0; round < Rounds(6000); ++round) {
    const SearchProblem problem = RandomProblem(random, GetParam());
    const auto expected = BruteForce(problem);
    for (const auto& search : {SearchDijkstra, +[](const SearchProblem& one) { return SearchShortestPath(one); },
                               +[](const SearchProblem& one) { return SearchShortestPath(one, ShortestPathOptions{.easy_states = 0}); }}) {
      const Result<SearchResult> found = search(problem);
      ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
      if (!expected) continue;
      ++solved;
      EXPECT_EQ(found->choices, *expected) << "round " << round;
      EXPECT_EQ(found->cost, PriceOfCover(problem, *expected)) << "round " << round;
      EXPECT_EQ(found->lower_bound, found->cost) << "round " << round;
    }
  }
  EXPECT_GT(solved, Rounds(2000));
}

/// Of one tensor few layouts are ever wanted; how many the whole problem has does not matter.
TEST_P(SearchersTest, LayoutsMayHaveAnyNumbers) {
  std::mt19937_64 random(GetParam() ? 15 : 16);
  const auto renumbered = [](size_t layout) { return layout * 1000; };
  for (size_t round = 0; round < Rounds(500); ++round) {
    SearchProblem problem = RandomProblem(random, GetParam());
    const auto expected = BruteForce(problem);
    problem.layout_count = renumbered(problem.layout_count) + 1;
    for (SearchCandidate& candidate : problem.candidates) {
      for (SearchVariant& variant : candidate.variants) {
        for (auto* layouts : {&variant.input_layouts, &variant.output_layouts}) {
          for (size_t& layout : *layouts) layout = renumbered(layout);
        }
      }
    }
    problem.conversion = [before = problem.conversion](size_t t, size_t from, size_t to) { return before(t, from / 1000, to / 1000); };
    for (const auto& search : {SearchDijkstra, +[](const SearchProblem& one) { return SearchShortestPath(one); }}) {
      const Result<SearchResult> found = search(problem);
      ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
      if (expected) {
        ASSERT_EQ(found->choices, *expected) << "round " << round;
      }
    }
  }
}

TEST(ManyLayoutsTest, ATensorInMoreThanHaveNumbersIsSearchedWithThoseAndNotProven) {
  constexpr size_t kLayouts = 50;
  SearchProblem problem;
  problem.node_count = 2;
  problem.layout_count = kLayouts;
  problem.backend_count = 1;
  problem.tensors = {{0, {1}, false}, {1, {}, true}};
  problem.conversion = [](size_t, size_t, size_t) { return Cost::Microseconds(100); };
  problem.candidates = {{IndexSet({0}), 0, {}, {0}, {}}, {IndexSet({1}), 0, {0}, {1}, {}}};
  for (size_t layout = 0; layout < kLayouts; ++layout) {
    const Cost cost = Cost::Microseconds(static_cast<double>(2 * kLayouts - layout));
    problem.candidates[0].variants.push_back({cost, {}, {layout}});
    problem.candidates[1].variants.push_back({cost, {layout}, {0}});
  }
  const Cost optimum = Cost::Microseconds(2.0 * (kLayouts + 1));
  for (const auto& search : {SearchDijkstra, +[](const SearchProblem& one) { return SearchShortestPath(one); }}) {
    const SearchResult found = search(problem).value();
    EXPECT_EQ(found.cost, PriceOfCover(problem, found.choices));
    EXPECT_FALSE(found.is_proven);
    EXPECT_LE(found.lower_bound, optimum);
    EXPECT_GE(found.lower_bound, optimum - Cost::Microseconds(1));
  }
}

TEST_P(SearchersTest, TheIntegerProgramEqualsBruteForce) {
  std::mt19937_64 random(GetParam() ? 21 : 22);
  size_t solved = 0;
  for (size_t round = 0; round < Rounds(250); ++round) {
    const SearchProblem problem = RandomProblem(random, GetParam());
    const auto expected = BruteForce(problem);
    const Result<SearchResult> found = SearchExactly(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (!expected) continue;
    ++solved;
    ExpectIsCover(problem, *found);
    const double optimum = PriceOfCover(problem, *expected).ToMicroseconds();
    EXPECT_NEAR(found->cost.ToMicroseconds(), optimum, 1e-5 * optimum) << "round " << round;
    EXPECT_LE(found->lower_bound.ToMicroseconds(), optimum) << "round " << round;
    EXPECT_GE(found->lower_bound.ToMicroseconds(), optimum * (1 - 1e-4)) << "round " << round;
  }
  EXPECT_GT(solved, Rounds(100));
}

TEST_P(SearchersTest, TheInexactOnesGiveValidCoversAtTheirTruePrice) {
  std::mt19937_64 random(GetParam() ? 31 : 32);
  for (size_t round = 0; round < Rounds(1500); ++round) {
    const SearchProblem problem = RandomProblem(random, GetParam());
    SearcherOptions options;
    for (size_t b = 0; b < problem.backend_count; ++b) {
      options.is_graph_backend.push_back(random() % 2 == 0);
      options.priority.push_back(problem.backend_count - 1 - b);
    }
    options.seed = random();
    const Result<SearchResult> optimum = SearchShortestPath(problem);
    for (const Searcher& searcher : Searchers(options)) {
      if (searcher.is_exact) continue;
      const Result<SearchResult> found = searcher.search(problem);
      if (!optimum) {
        EXPECT_FALSE(found.has_value()) << searcher.name << ", round " << round;
        continue;
      }
      // Without the graph backends there may be no cover.
      if (!found && searcher.name == "op-level") continue;
      ASSERT_TRUE(found.has_value()) << searcher.name << ", round " << round;
      ExpectIsCover(problem, *found);
      EXPECT_GE(found->cost, optimum->cost) << searcher.name << ", round " << round;
      EXPECT_LE(found->lower_bound, optimum->cost) << searcher.name << ", round " << round;
    }
  }
}

/// With one layout and one price for every change of backend nothing that the op-level program ignores is left.
TEST_P(SearchersTest, TheOpLevelProgramEqualsBruteForceWhereKernelsAreIndependent) {
  std::mt19937_64 random(GetParam() ? 41 : 42);
  size_t solved = 0;
  for (size_t round = 0; round < Rounds(3000); ++round) {
    SearchProblem problem = RandomProblem(random, GetParam());
    for (SearchCandidate& candidate : problem.candidates) {
      for (SearchVariant& variant : candidate.variants) {
        variant.input_layouts.assign(candidate.inputs.size(), 0);
        variant.output_layouts.assign(candidate.outputs.size(), 0);
      }
    }
    for (auto& row : problem.transition) row.assign(row.size(), Cost::Microseconds(3));
    const auto expected = BruteForce(problem);
    const Result<SearchResult> found = SearchOpLevel(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (!expected) continue;
    ++solved;
    ExpectIsCover(problem, *found);
    EXPECT_EQ(found->cost, PriceOfCover(problem, *expected)) << "round " << round;
  }
  EXPECT_GT(solved, Rounds(500));
}

TEST_P(SearchersTest, EvolutionIsNeverWorseThanItsStartUnderAnyMeasurement) {
  std::mt19937_64 random(GetParam() ? 51 : 52);
  size_t better = 0;
  for (size_t round = 0; round < Rounds(300); ++round) {
    const SearchProblem problem = RandomProblem(random, GetParam());
    const Result<SearchResult> start = SearchOpLevel(problem);
    if (!start) continue;
    EvolutionOptions options;
    options.is_graph_backend.assign(problem.backend_count, true);
    options.seed = random();
    // Whole plans cost something else than the sum of their parts, and some cannot be built at all.
    const uint64_t salt = random();
    options.measure = [&, salt](const std::vector<SearchChoice>& plan) {
      uint64_t hash = salt;
      for (const SearchChoice& choice : plan) hash = HashCombine(hash, choice.candidate * 8 + choice.variant);
      if (plan != start->choices && hash % 7 == 0) return Cost::Invalid();
      return Cost::Microseconds(static_cast<double>(hash % 1000));
    };
    const Result<EvolutionResult> found = SearchByEvolution(problem, start->choices, options);
    ASSERT_TRUE(found.has_value()) << "round " << round;
    EXPECT_EQ(found->start_cost, options.measure(start->choices));
    EXPECT_EQ(found->cost, options.measure(found->choices));
    EXPECT_LE(found->cost, found->start_cost) << "round " << round;
    better += found->cost < found->start_cost ? 1 : 0;
    EXPECT_EQ(SearchByEvolution(problem, start->choices, options)->choices, found->choices) << "not deterministic, round " << round;
  }
  EXPECT_GT(better, Rounds(20));
}

/// "identical segments solved once"
TEST_P(SearchersTest, RepeatedBlocksAreSearchedOnceAndChangeNothing) {
  std::mt19937_64 random(GetParam() ? 71 : 72);
  size_t reused = 0;
  for (int round = 0; round < 30; ++round) {
    const SearchProblem problem = RepeatedBlocks(random, 12, GetParam());
    const SearchResult once = SearchShortestPath(problem).value();
    const SearchResult each = SearchShortestPath(problem, ShortestPathOptions{.reuse_segments = false}).value();
    ASSERT_EQ(once.cost, each.cost) << "round " << round;
    EXPECT_EQ(once.choices, each.choices) << "round " << round;
    EXPECT_EQ(once.partitions, each.partitions) << "round " << round;
    EXPECT_EQ(once.lower_bound, each.lower_bound) << "round " << round;
    EXPECT_EQ(PriceOfCover(problem, once.choices), once.cost) << "round " << round;
    reused += once.states_expanded * 10 < each.states_expanded * 7 ? 1 : 0;
  }
  // A tie that what came before decides is not repeated, and coarse prices are full of them.
  EXPECT_GT(reused, GetParam() ? 0u : 15u);
}

/// Ties that begin many steps before they are decided.
TEST(TiesTest, LongOnesAreDecidedAsByComparingWholePaths) {
  std::mt19937_64 random(81);
  for (int round = 0; round < 40; ++round) {
    const SearchProblem problem = RepeatedBlocks(random, 3, /*coarse_prices=*/true);
    const SearchResult expected = SearchDijkstra(problem).value();
    for (const bool reuse_segments : {true, false})
      EXPECT_EQ(SearchShortestPath(problem, ShortestPathOptions{.reuse_segments = reuse_segments})->choices, expected.choices)
          << "round " << round;
    EXPECT_EQ(SearchShortestPath(problem, ShortestPathOptions{.easy_states = 0})->choices, expected.choices) << "round " << round;
  }
}

constexpr size_t kLayers = Rounds(100'000);

/// Equal layers, each in two layouts at the same price, but for the first: there the one is so much dearer.
SearchProblem EqualLayers(Cost dearer) {
  SearchProblem problem;
  problem.node_count = kLayers;
  problem.layout_count = 2;
  problem.backend_count = 1;
  problem.conversion = [](size_t, size_t, size_t) { return Cost::Microseconds(1); };
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const bool is_first = layer == 0;
    const bool is_last = layer + 1 == kLayers;
    problem.tensors.push_back({layer, {}, is_last});
    if (!is_last) problem.tensors.back().consumers = {layer + 1};
    SearchCandidate candidate{IndexSet({layer}), 0, {}, {layer}, {}};
    if (!is_first) candidate.inputs = {layer - 1};
    for (const size_t layout : {size_t{1}, size_t{0}}) {
      const Cost cost = Cost::Microseconds(2) + (is_first && layout == 1 ? dearer : Cost());
      candidate.variants.push_back({cost, std::vector<size_t>(is_first ? 0 : 1, layout), {is_last ? 0 : layout}});
    }
    problem.candidates.push_back(std::move(candidate));
  }
  return problem;
}

/// Two ways tie from the first layer to the last, or at each layer after ways that cost differently, by what a conversion costs.
TEST(TiesTest, AlongHundredThousandLayersAreNotWalkedAgainAtEachOfThem) {
  for (const double dearer : {0.0, 1.0}) {
    SCOPED_TRACE(dearer);
    const SearchProblem problem = EqualLayers(Cost::Microseconds(dearer));
    const SearchResult found = SearchShortestPath(problem, ShortestPathOptions{.reuse_segments = false}).value();
    EXPECT_EQ(found.cost, Cost::Microseconds(2.0 * kLayers));
    EXPECT_TRUE(found.is_proven);
    // The declared preference is the earlier variant, where it is as cheap.
    const size_t expected = dearer > 0 ? 1 : 0;
    EXPECT_TRUE(
        std::all_of(found.choices.begin(), found.choices.end(), [&](const SearchChoice& choice) { return choice.variant == expected; }));
  }
}

INSTANTIATE_TEST_SUITE_P(FineAndTiedPrices, SearchersTest, testing::Bool(), [](const auto& info) { return info.param ? "tied" : "fine"; });

TEST(FindSearcherTest, AnUnknownNameIsAnErrorThatListsTheKnown) {
  const Result<Searcher> found = FindSearcher("best");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message, "there is no searcher 'best', expected one of sweep, dijkstra, exact, op-level, evolutionary, greedy");
}

/// The paper's graph level: a region is worth more to a graph compiler than the sum of its kernels' prices says.
TEST(EvolutionTest, FindsTheRegionThatOnlyAMeasurementShows) {
  SearchProblem problem;
  problem.node_count = 6;
  problem.backend_count = 2;
  for (size_t n = 0; n < 6; ++n) problem.tensors.push_back({n, n < 5 ? std::vector<size_t>{n + 1} : std::vector<size_t>{}, n == 5});
  problem.tensors.push_back({SearchTensor::kOutside, {0}, false});
  const auto add = [&](size_t begin, size_t end, size_t backend, double price) {
    SearchCandidate candidate;
    for (size_t n = begin; n < end; ++n) candidate.inside.Add(n);
    candidate.backend = backend;
    candidate.inputs = {begin == 0 ? 6 : begin - 1};
    candidate.outputs = {end - 1};
    candidate.variants = {{Cost::Microseconds(price), {0}, {0}}};
    problem.candidates.push_back(std::move(candidate));
  };
  for (size_t n = 0; n < 6; ++n) add(n, n + 1, 0, 10);
  for (size_t begin = 0; begin < 6; ++begin) {
    for (size_t end = begin + 1; end <= 6; ++end) add(begin, end, 1, 11.0 * static_cast<double>(end - begin));
  }
  const std::vector<SearchChoice> start = SearchOpLevel(problem, {{false, true}})->choices;
  ASSERT_EQ(start.size(), 6u);
  EvolutionOptions options;
  options.is_graph_backend = {false, true};
  options.measure = [&](const std::vector<SearchChoice>& plan) {
    // Between nodes 1 and 4 each edge inside of a region saves 6 us.
    Cost cost;
    for (const SearchChoice& choice : plan) {
      const SearchCandidate& candidate = problem.candidates[choice.candidate];
      const bool gains = candidate.backend == 1 && candidate.inside.IsSubsetOf(IndexSet({1, 2, 3, 4}));
      const double saved = gains ? 6.0 * static_cast<double>(candidate.inside.Count() - 1) : 0;
      cost += candidate.variants[0].cost - Cost::Microseconds(saved);
    }
    return cost;
  };
  const Result<EvolutionResult> found = SearchByEvolution(problem, start, options);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cost, Cost::Microseconds(46));  // 10 + (4 * 11 - 3 * 6) + 10
}

TEST(GreedyTest, TakesByPriorityAndGivesUpWhatLeavesANodeUncovered) {
  SearchProblem problem;
  problem.node_count = 3;
  problem.backend_count = 2;
  problem.tensors = {{0, {1}, false}, {1, {2}, false}, {2, {}, true}, {SearchTensor::kOutside, {0}, false}};
  const auto add = [&](std::vector<size_t> inside, size_t backend) {
    SearchCandidate candidate;
    candidate.inside = IndexSet(inside);
    candidate.backend = backend;
    candidate.inputs = {inside.front() == 0 ? 3 : inside.front() - 1};
    candidate.outputs = {inside.back()};
    candidate.variants = {{Cost::Microseconds(1), {0}, {0}}};
    problem.candidates.push_back(std::move(candidate));
  };
  add({0}, 0);
  add({1, 2}, 0);
  add({0, 1}, 1);
  add({2}, 1);
  EXPECT_EQ(SearchGreedily(problem)->choices, (std::vector<SearchChoice>{{0, 0}, {1, 0}}));
  EXPECT_EQ(SearchGreedily(problem, {1, 0})->choices, (std::vector<SearchChoice>{{2, 0}, {3, 0}}));
  problem.candidates.pop_back();
  EXPECT_EQ(SearchGreedily(problem, {1, 0})->choices, (std::vector<SearchChoice>{{0, 0}, {1, 0}}));
}

TEST(ShortestPathTest, TheFirstNodeThatNothingCoversIsNamed) {
  SearchProblem problem;
  problem.node_count = 4;
  problem.backend_count = 1;
  problem.candidates.push_back({IndexSet({0}), 0, {}, {}, {{Cost::Microseconds(1), {}, {}}}});
  problem.candidates.push_back({IndexSet({0, 2}), 0, {}, {}, {{Cost::Microseconds(1), {}, {}}}});
  problem.candidates.push_back({IndexSet({1}), 0, {}, {}, {{Cost::Unknown(), {}, {}}}});
  const auto error = [&problem] { return SearchShortestPath(problem).error().message; };
  EXPECT_EQ(error(), "no valid candidate covers node 1");
  problem.candidates[2].variants[0].cost = Cost::Microseconds(1);
  EXPECT_EQ(error(), "no valid candidate covers node 3");
  // Each node is held by something, but by nothing that fits.
  problem.candidates.erase(problem.candidates.begin());
  problem.candidates.push_back({IndexSet({2, 3}), 0, {}, {}, {{Cost::Microseconds(1), {}, {}}}});
  EXPECT_EQ(error(), "no valid candidate covers node 3");
}

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
  const size_t small = states(Rounds(1000));
  ASSERT_GT(small, 0u);
  EXPECT_LE(states(Rounds(10000)), 13 * small);
}

}  // namespace
}  // namespace collage
