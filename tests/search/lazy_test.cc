#include "collage/search/lazy.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/search/random_problem.h"

namespace collage {
namespace {

// True prices behind random admissible bounds; counts what is asked.
class HiddenPrices : public VariantPrices {
 public:
  HiddenPrices(const SearchProblem& truth, std::mt19937_64& random) : truth_(truth) {
    for (const SearchCandidate& candidate : truth.candidates) {
      std::vector<Cost> bounds;
      for (const SearchVariant& variant : candidate.variants) {
        const double share = static_cast<double>(random() % 101) / 100;
        bounds.push_back(variant.cost.IsKnown() ? std::min(variant.cost, Cost::Seconds(variant.cost.ToSeconds() * share)) : Cost());
      }
      bounds_.push_back(std::move(bounds));
    }
  }
  [[nodiscard]] Cost PriceOrBound(size_t c, size_t v) const override {
    return IsPriced(c, v) ? truth_.candidates[c].variants[v].cost : bounds_[c][v];
  }
  [[nodiscard]] bool IsPriced(size_t c, size_t v) const override { return priced_.contains({c, v}); }
  Status Price(size_t c, size_t v) override {
    EXPECT_TRUE(priced_.insert({c, v}).second) << "priced twice";
    return {};
  }

 private:
  const SearchProblem& truth_;
  std::vector<std::vector<Cost>> bounds_;
  std::set<std::pair<size_t, size_t>> priced_;
};

TEST(SearchLazilyTest, FindsTheOptimumOfEagerPricing) {
  std::mt19937_64 random(5);
  size_t left_unpriced = 0;
  for (int round = 0; round < 2000; ++round) {
    const SearchProblem truth = RandomProblem(random, false);
    const Result<SearchResult> eager = SearchDijkstra(truth);
    SearchProblem problem = truth;
    HiddenPrices prices(truth, random);
    const Result<LazySearchResult> lazy = SearchLazily(problem, prices, {});
    ASSERT_EQ(lazy.has_value(), eager.has_value()) << "round " << round;
    if (!eager) continue;
    ASSERT_EQ(lazy->result.cost, eager->cost) << "round " << round;
    EXPECT_EQ(lazy->result.choices, eager->choices) << "round " << round;
    left_unpriced += lazy->unpriced;
  }
  EXPECT_GT(left_unpriced, 1000u);
}

TEST(SearchLazilyTest, StoppedEarlyItUsesOnlyWhatIsPriced) {
  SearchProblem problem;
  problem.node_count = 1;
  problem.backend_count = 1;
  problem.tensors = {{0, {}, true}};
  problem.candidates.push_back({IndexSet({0}), 0, {}, {0}, {{Cost::Microseconds(5), {}, {0}}, {Cost::Microseconds(9), {}, {0}}}});
  const SearchProblem truth = problem;
  std::mt19937_64 random(1);
  HiddenPrices prices(truth, random);
  ASSERT_TRUE(prices.Price(0, 1));
  const std::atomic<bool> stop{true};
  const Result<LazySearchResult> result = SearchLazily(problem, prices, {nullptr, &stop});
  ASSERT_TRUE(result.has_value());
  EXPECT_FALSE(result->is_complete);
  EXPECT_EQ(result->result.choices[0].variant, 1u);
  EXPECT_LE(result->result.lower_bound, Cost::Microseconds(5));
}

TEST(SearchLazilyTest, StoppedAtOnceItMayGiveUp) {
  std::mt19937_64 random(6);
  const SearchProblem truth = RandomProblem(random, false);
  SearchProblem problem = truth;
  HiddenPrices prices(truth, random);
  const std::atomic<bool> stop{true};
  ASSERT_FALSE(SearchLazily(problem, prices, {nullptr, &stop}, {WhenStopped::kGiveUp}));
  for (size_t c = 0; c < truth.candidates.size(); ++c) {
    for (size_t v = 0; v < truth.candidates[c].variants.size(); ++v) EXPECT_FALSE(prices.IsPriced(c, v));
  }
}

// Wherever eager pricing finds a cover, so does a search that was stopped before it had priced anything.
TEST(SearchLazilyTest, StoppedAtOnceItPricesWhatACoverNeeds) {
  std::mt19937_64 random(6);
  size_t left_unpriced = 0;
  for (int round = 0; round < 500; ++round) {
    const SearchProblem truth = RandomProblem(random, false);
    const Result<SearchResult> eager = SearchDijkstra(truth);
    SearchProblem problem = truth;
    HiddenPrices prices(truth, random);
    const std::atomic<bool> stop{true};
    const Result<LazySearchResult> result = SearchLazily(problem, prices, {nullptr, &stop});
    ASSERT_EQ(result.has_value(), eager.has_value()) << "round " << round;
    if (!eager) continue;
    ASSERT_TRUE(result->result.cost.IsKnown()) << "round " << round;
    EXPECT_GE(result->result.cost, eager->cost);
    EXPECT_LE(result->result.lower_bound, eager->cost);
    for (const SearchChoice& choice : result->result.choices) EXPECT_TRUE(prices.IsPriced(choice.candidate, choice.variant));
    left_unpriced += result->unpriced;
  }
  EXPECT_GT(left_unpriced, 1000u);
}

TEST(SearchLazilyTest, OfWhatIsPricedItPricesWhatACoverNeeds) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    const SearchProblem truth = RandomProblem(random, false);
    const Result<SearchResult> eager = SearchDijkstra(truth);
    if (!eager) continue;
    SearchProblem problem = truth;
    HiddenPrices prices(truth, random);
    const size_t first = SearchLazily(problem, prices, {}, {WhenStopped::kGiveUp, true})->priced;
    EXPECT_GT(first, 0u);
    const LazySearchResult again = SearchLazily(problem, prices, {}, {WhenStopped::kGiveUp, true}).value();
    EXPECT_EQ(again.priced, first) << "now that is a cover";
    EXPECT_GE(again.result.cost, eager->cost);
    EXPECT_LE(again.result.lower_bound, eager->cost);
    for (const SearchChoice& choice : again.result.choices) EXPECT_TRUE(prices.IsPriced(choice.candidate, choice.variant));
  }
}

}  // namespace
}  // namespace collage
