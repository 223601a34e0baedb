#include "collage/search/lazy.h"

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

void UpdateCosts(SearchProblem& problem, const VariantPrices& prices, bool only_priced) {
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    std::vector<SearchVariant>& variants = problem.candidates[c].variants;
    for (size_t v = 0; v < variants.size(); ++v) {
      variants[v].cost = only_priced && !prices.IsPriced(c, v) ? Cost::Unknown() : prices.PriceOrBound(c, v);
    }
  }
}

void Count(const SearchProblem& problem, const VariantPrices& prices, LazySearchResult& result) {
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v) ++(prices.IsPriced(c, v) ? result.priced : result.unpriced);
  }
}

}  // namespace

Result<LazySearchResult> SearchLazily(SearchProblem& problem, VariantPrices& prices, const Progress& progress) {
  LazySearchResult result;
  while (true) {
    ++result.rounds;
    UpdateCosts(problem, prices, /*only_priced=*/false);
    result.result = COLLAGE_TRY(SearchShortestPath(problem));
    bool all_priced = true;
    for (const SearchChoice& choice : result.result.choices) {
      if (prices.IsPriced(choice.candidate, choice.variant)) continue;
      all_priced = false;
      if (progress.ShouldStop()) break;
      COLLAGE_TRY_STATUS(prices.Price(choice.candidate, choice.variant));
    }
    if (all_priced) break;
    if (!progress.ShouldStop()) continue;
    const Cost lower_bound = result.result.cost;
    UpdateCosts(problem, prices, /*only_priced=*/true);
    result.result = COLLAGE_TRY(SearchShortestPath(problem));
    result.result.lower_bound = lower_bound;
    result.is_complete = false;
    break;
  }
  Count(problem, prices, result);
  return result;
}

}  // namespace collage
