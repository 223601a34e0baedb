// Searching again after prices have changed equals searching anew, ties included; bounds are bounds.

#include "collage/search/incremental.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>

#include "collage/search/exact.h"
#include "collage/search/relaxation.h"
#include "collage/search/sweep.h"
#include "tests/search/random_problem.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

// Bounds from the start, which problems so small do not need.
const ShortestPathOptions kBounded{.easy_states = 0};

Cost RandomCost(std::mt19937_64& random, bool is_coarse) {
  if (random() % 8 == 0) return random() % 2 == 0 ? Cost::Invalid() : Cost::Unknown();
  return Cost::Microseconds(is_coarse ? static_cast<double>(random() % 3) : static_cast<double>(random() % 1000) / 7.0);
}

void ChangePrices(SearchProblem& problem, std::mt19937_64& random, bool is_coarse) {
  for (size_t changes = 1 + random() % 3; changes-- > 0;) {
    SearchCandidate& candidate = problem.candidates[random() % problem.candidates.size()];
    candidate.variants[random() % candidate.variants.size()].cost = RandomCost(random, is_coarse);
  }
  if (random() % 6 == 0)
    problem.transition[random() % problem.backend_count][random() % problem.backend_count] = Cost::Microseconds(random() % 4);
  if (random() % 6 == 0) {
    problem.conversion = [before = problem.conversion, times = random() % 3](size_t tensor, size_t from, size_t to) {
      Cost cost;
      for (size_t i = 0; i < times; ++i) cost += before(tensor, from, to);
      return cost;
    };
  }
}

class IncrementalSearchTest : public testing::TestWithParam<bool> {};

TEST_P(IncrementalSearchTest, EqualsBruteForceAfterEveryChange) {
  std::mt19937_64 random(GetParam() ? 81 : 82);
  size_t solved = 0;
  for (size_t round = 0; round < Rounds(300); ++round) {
    SearchProblem problem = RandomProblem(random, GetParam());
    const auto covers = std::make_shared<SharedCoverGraph>();
    IncrementalSearch bounded(kBounded, covers);
    IncrementalSearch sharing({}, covers);
    IncrementalSearch usual;
    for (int change = 0; change < 12; ++change) {
      const auto expected = BruteForce(problem);
      for (IncrementalSearch* search : {&bounded, &sharing, &usual}) {
        const Result<SearchResult> found = search->Search(problem);
        ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round << ", change " << change;
        if (!expected) continue;
        ++solved;
        ASSERT_EQ(found->choices, *expected) << "round " << round << ", change " << change;
        ASSERT_EQ(found->cost, PriceOfCover(problem, *expected)) << "round " << round << ", change " << change;
        ASSERT_EQ(found->lower_bound, found->cost) << "round " << round << ", change " << change;
        ASSERT_TRUE(found->is_proven);
      }
      ChangePrices(problem, random, GetParam());
    }
  }
  EXPECT_GT(solved, Rounds(2000));
}

TEST_P(IncrementalSearchTest, ACoverThatIsGoodEnoughGainsItsShareOfTheMost) {
  constexpr double kShare = 0.5;
  std::mt19937_64 random(GetParam() ? 91 : 92);
  size_t gaining = 0;
  size_t refused = 0;
  for (size_t round = 0; round < Rounds(300); ++round) {
    SearchProblem problem = RandomProblem(random, GetParam());
    IncrementalSearch search(kBounded);
    for (int change = 0; change < 12; ++change) {
      const auto cheapest = BruteForce(problem);
      const Cost least = cheapest ? PriceOfCover(problem, *cheapest) : Cost();
      const Cost plan = Cost::Microseconds(least.ToMicroseconds() * 0.01 * static_cast<double>(80 + random() % 50));
      const Cost below = Cost::Microseconds(plan.ToMicroseconds() * 0.01 * static_cast<double>(90 + random() % 11));
      const Result<SearchResult> found =
          search.Search(problem, std::vector<bool>(problem.candidates.size(), false), EnoughGain{plan, below, kShare});
      ASSERT_EQ(found.has_value(), cheapest.has_value()) << "round " << round << ", change " << change;
      if (cheapest) {
        ASSERT_EQ(found->cost, PriceOfCover(problem, found->choices)) << "round " << round << ", change " << change;
        ASSERT_TRUE(FindCycle(problem, found->choices).empty()) << "round " << round << ", change " << change;
        ASSERT_LE(found->lower_bound, least) << "round " << round << ", change " << change;
        ASSERT_EQ(found->is_proven, found->lower_bound == found->cost);
        if (found->lower_bound >= below) {
          ++refused;
          ASSERT_GE(least, below) << "round " << round << ", change " << change;
        } else {
          ++gaining;
          const double rounding = 1e-12;
          ASSERT_GE((plan - found->cost).ToSeconds(), kShare * (plan - least).ToSeconds() - rounding) << "round " << round;
        }
      }
      ChangePrices(problem, random, GetParam());
    }
  }
  EXPECT_GT(gaining, Rounds(1000));
  EXPECT_GT(refused, Rounds(1000));
}

TEST_P(IncrementalSearchTest, EqualsAFreshSearchOfLargerGraphs) {
  std::mt19937_64 random(GetParam() ? 83 : 84);
  for (int round = 0; round < 6; ++round) {
    SearchProblem problem = RepeatedBlocks(random, 4, GetParam());
    IncrementalSearch again(kBounded);
    for (int change = 0; change < 8; ++change) {
      // As it always was: no bounds, no segments.
      const SearchResult expected = SearchShortestPath(problem, ShortestPathOptions{.easy_states = 4096, .reuse_segments = false}).value();
      const SearchResult found = again.Search(problem).value();
      ASSERT_EQ(found.cost, expected.cost) << "round " << round << ", change " << change;
      ASSERT_EQ(found.choices, expected.choices) << "round " << round << ", change " << change;
      ASSERT_EQ(found.lower_bound, expected.lower_bound) << "round " << round << ", change " << change;
      for (SearchCandidate& candidate : problem.candidates) {
        for (SearchVariant& variant : candidate.variants) {
          if (random() % 40 == 0) variant.cost = Cost::Microseconds(GetParam() ? random() % 3 : static_cast<double>(random() % 1000) / 7.0);
        }
      }
    }
  }
}

TEST(IncrementalSearchTest, AProblemOfAnotherStructureBeginsAnew) {
  std::mt19937_64 random(85);
  IncrementalSearch search(kBounded, std::make_shared<SharedCoverGraph>());
  for (int round = 0; round < 100; ++round) {
    const SearchProblem problem = RandomProblem(random, false);
    const auto expected = BruteForce(problem);
    const Result<SearchResult> found = search.Search(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (expected) {
      ASSERT_EQ(found->choices, *expected) << "round " << round;
    }
  }
}

/// The same candidates over the same nodes, and something else that is no price.
TEST(IncrementalSearchTest, AProblemThatDiffersInAnythingButPricesBeginsAnew) {
  std::mt19937_64 random(93);
  IncrementalSearch search(kBounded);
  const auto expect_found = [&](const SearchProblem& problem, const char* what, size_t round) {
    const auto expected = BruteForce(problem);
    const Result<SearchResult> found = search.Search(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << what << ", round " << round;
    if (expected) {
      ASSERT_EQ(found->choices, *expected) << what << ", round " << round;
    }
  };
  for (size_t round = 0; round < Rounds(300); ++round) {
    const SearchProblem problem = RandomProblem(random, false);
    const auto changed = [&](const char* what, const auto& change) {
      ASSERT_NO_FATAL_FAILURE(expect_found(problem, "as it was", round));
      SearchProblem other = problem;
      change(other);
      ASSERT_NO_FATAL_FAILURE(expect_found(other, what, round));
    };
    changed("layouts", [&](SearchProblem& other) {
      for (SearchCandidate& candidate : other.candidates) {
        for (SearchVariant& variant : candidate.variants) {
          for (size_t& layout : variant.output_layouts) layout = random() % problem.layout_count;
        }
      }
    });
    changed("a backend more", [&](SearchProblem& other) {
      ++other.backend_count;
      for (std::vector<Cost>& row : other.transition) row.push_back(Cost::Microseconds(1));
      other.transition.emplace_back(other.backend_count, Cost::Microseconds(2));
    });
    changed("partitions", [&](SearchProblem& other) {
      for (SearchCandidate& candidate : other.candidates) candidate.is_partition = !candidate.is_partition;
    });
    changed("results", [&](SearchProblem& other) {
      for (SearchTensor& tensor : other.tensors) tensor.is_result = tensor.producer != SearchTensor::kOutside;
    });
    if (HasFatalFailure()) return;
  }
}

TEST(IncrementalSearchTest, WhatIsForbiddenIsNotChosen) {
  std::mt19937_64 random(86);
  for (int round = 0; round < 200; ++round) {
    SearchProblem problem = RandomProblem(random, false);
    IncrementalSearch search(kBounded);
    for (int change = 0; change < 4; ++change) {
      std::vector<bool> forbidden;
      SearchProblem without = problem;
      for (SearchCandidate& candidate : without.candidates) {
        forbidden.push_back(random() % 5 == 0);
        for (SearchVariant& variant : candidate.variants) variant.cost = forbidden.back() ? Cost::Invalid() : variant.cost;
      }
      const auto expected = BruteForce(without);
      const Result<SearchResult> found = search.Search(problem, forbidden);
      ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
      if (expected) {
        ASSERT_EQ(found->choices, *expected) << "round " << round;
      }
    }
  }
}

/// An incumbent changes nothing but the time: neither one that is dear nor the optimum itself.
TEST_P(IncrementalSearchTest, AnIncumbentChangesNothing) {
  std::mt19937_64 random(GetParam() ? 87 : 88);
  for (size_t round = 0; round < Rounds(300); ++round) {
    SearchProblem problem = RandomProblem(random, GetParam());
    const auto some = BruteForce(problem);
    if (!some) continue;
    SearchResult incumbent;
    incumbent.choices = *some;
    if (round % 2 == 0) ChangePrices(problem, random, GetParam());
    const auto expected = BruteForce(problem);
    ShortestPathOptions options = kBounded;
    options.incumbent = &incumbent;
    const Result<SearchResult> found = SearchShortestPath(problem, options);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (expected) {
      ASSERT_EQ(found->choices, *expected) << "round " << round;
    }
  }
}

void ForEachCover(const SearchProblem& problem, const std::function<void(const std::vector<SearchChoice>&)>& visit) {
  std::vector<SearchChoice> chosen;
  const std::function<void(IndexSet)> extend = [&](const IndexSet& covered) {
    size_t next = 0;
    while (next < problem.node_count && covered.Contains(next)) ++next;
    if (next == problem.node_count) return visit(chosen);
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
}

/// No cover, and no cover with a variant, costs less than the relaxation says.
TEST_P(IncrementalSearchTest, TheRelaxationIsALowerBound) {
  std::mt19937_64 random(GetParam() ? 91 : 92);
  size_t tight = 0;
  size_t solved = 0;
  for (size_t round = 0; round < Rounds(600); ++round) {
    const SearchProblem problem = RandomProblem(random, GetParam());
    const SearchTables tables(problem, std::vector<bool>(problem.candidates.size(), false));
    const std::optional<CoverGraph> graph = CoverGraph::Build(problem, SIZE_MAX);
    ASSERT_TRUE(graph.has_value());
    Relaxation relaxation(tables, *graph);
    if (round % 3 != 0) relaxation.Start();
    std::vector<std::vector<Cost>> least_with;
    for (const SearchCandidate& candidate : problem.candidates) least_with.emplace_back(candidate.variants.size(), Cost::Invalid());
    Cost optimum = Cost::Invalid();
    ForEachCover(problem, [&](const std::vector<SearchChoice>& choices) {
      const Cost cost = PriceOfCover(problem, choices);
      optimum = std::min(optimum, cost);
      for (const auto& [c, v] : choices) least_with[c][v] = std::min(least_with[c][v], cost);
    });
    const Cost bound = relaxation.Improve(round % 40, Cost(), [&](const std::vector<SearchChoice>&) {
      return Relaxation::Target{optimum, optimum};
    });
    relaxation.FindLeastWith();
    ASSERT_LE(bound, optimum) << "round " << round;
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      for (size_t v = 0; v < least_with[c].size(); ++v)
        ASSERT_LE(relaxation.LeastWith(c, v), least_with[c][v]) << "round " << round << ", variant " << v << " of " << c;
    }
    if (!optimum.IsKnown()) continue;
    ++solved;
    tight += bound == optimum ? 1 : 0;
  }
  EXPECT_GT(2 * tight, solved);
}

/// Whatever few states and covered sets a sweep keeps: what it finds is a cover, and its bound is one.
TEST_P(IncrementalSearchTest, ANarrowSweepGivesACoverAndABound) {
  std::mt19937_64 random(GetParam() ? 93 : 94);
  size_t found = 0;
  for (int round = 0; round < 40; ++round) {
    const SearchProblem problem = RepeatedBlocks(random, 3, GetParam());
    const Cost optimum = SearchShortestPath(problem, ShortestPathOptions{.easy_states = 4096}).value().cost;
    const SearchTables tables(problem, std::vector<bool>(problem.candidates.size(), false));
    const std::optional<CoverGraph> graph = CoverGraph::Build(problem, SIZE_MAX);
    ASSERT_TRUE(graph.has_value());
    Relaxation relaxation(tables, *graph);
    relaxation.Start();
    relaxation.Improve(round, Cost(), [&](const std::vector<SearchChoice>&) { return Relaxation::Target{optimum, optimum}; });
    const SweepBound bound{relaxation, *graph, Cost::Invalid()};
    const SweepLimits narrow{1 + static_cast<size_t>(round % 3), 1 + static_cast<size_t>(round % 4)};
    const SweepAnswer answer = Sweep(tables, narrow, false, &bound);
    if (!answer.found) continue;
    ++found;
    ASSERT_EQ(answer.found->cost, PriceOfCover(problem, answer.found->choices)) << "round " << round;
    ASSERT_GE(answer.found->cost, optimum) << "round " << round;
    ASSERT_LE(answer.found->lower_bound, optimum) << "round " << round;
  }
  EXPECT_GT(found, 20u);
}

// As in an HRNet, where what comes first may take along what comes much later: more covered sets have the same first uncovered node than a
// sweep without bounds keeps.
TEST(IncrementalSearchOfManySets, IsProven) {
  constexpr size_t kFirst = 13;
  std::mt19937_64 random(95);
  SearchProblem problem;
  problem.node_count = 2 * kFirst;
  problem.backend_count = 1;
  const auto add = [&](const std::vector<size_t>& inside) {
    const Cost cost = Cost::Microseconds(1 + static_cast<double>(random() % 1000) / 7.0);
    problem.candidates.push_back({IndexSet(inside), 0, {}, {}, {{cost, {}, {}}}});
  };
  for (size_t node = 0; node < problem.node_count; ++node) add({node});
  for (size_t node = 0; node < kFirst; ++node) {
    add({node, kFirst + node});
    add({node, kFirst + (node + 1) % kFirst});
  }
  const SearchResult found = SearchShortestPath(problem).value();
  EXPECT_TRUE(found.is_proven);
  EXPECT_NEAR(found.cost.ToSeconds(), SearchExactly(problem).value().cost.ToSeconds(), 1e-5 * found.cost.ToSeconds());
}

INSTANTIATE_TEST_SUITE_P(FineAndTiedPrices, IncrementalSearchTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& has_ties) { return has_ties.param ? "tied" : "fine"; });

}  // namespace
}  // namespace collage
