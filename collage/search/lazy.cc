#include "collage/search/lazy.h"

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

enum class Unpriced { kAtTheirBound, kLeftOut, kLastResort };

void UpdateCosts(SearchProblem& problem, const VariantPrices& prices, Unpriced unpriced) {
  // Dearer than any kernel, so that a cover takes as few of them as it can.
  const Cost last_resort = Cost::Seconds(1e3);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    std::vector<SearchVariant>& variants = problem.candidates[c].variants;
    for (size_t v = 0; v < variants.size(); ++v) {
      variants[v].cost = prices.PriceOrBound(c, v);
      if (unpriced == Unpriced::kAtTheirBound || prices.IsPriced(c, v)) continue;
      variants[v].cost = unpriced == Unpriced::kLeftOut ? Cost::Unknown() : variants[v].cost + last_resort;
    }
  }
}

/// Prices what `choices` uses; true when all of it was priced already.
Result<bool> PriceChoices(const std::vector<SearchChoice>& choices, VariantPrices& prices, const Progress* stop) {
  bool all_priced = true;
  for (const SearchChoice& choice : choices) {
    if (prices.IsPriced(choice.candidate, choice.variant)) continue;
    all_priced = false;
    if (stop && stop->ShouldStop()) break;
    COLLAGE_TRY_STATUS(prices.Price(choice.candidate, choice.variant));
  }
  return all_priced;
}

/// The cheapest cover of what is priced; where that covers not everything, as little as possible is priced in addition.
Result<SearchResult> SearchPriced(SearchProblem& problem, VariantPrices& prices, WhenStopped when_stopped) {
  while (true) {
    UpdateCosts(problem, prices, Unpriced::kLeftOut);
    Result<SearchResult> found = SearchShortestPath(problem);
    if (found || when_stopped == WhenStopped::kGiveUp) return found;
    UpdateCosts(problem, prices, Unpriced::kLastResort);
    found = COLLAGE_TRY(SearchShortestPath(problem));
    COLLAGE_TRY(PriceChoices(found->choices, prices, nullptr));
  }
}

void Count(const SearchProblem& problem, const VariantPrices& prices, LazySearchResult& result) {
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v) ++(prices.IsPriced(c, v) ? result.priced : result.unpriced);
  }
}

}  // namespace

Result<LazySearchResult> SearchLazily(SearchProblem& problem, VariantPrices& prices, const Progress& progress,
                                      const LazySearchOptions& options) {
  LazySearchResult result;
  while (true) {
    ++result.rounds;
    UpdateCosts(problem, prices, Unpriced::kAtTheirBound);
    result.result = COLLAGE_TRY(SearchShortestPath(problem));
    if (!options.only_priced) {
      if (COLLAGE_TRY(PriceChoices(result.result.choices, prices, &progress))) break;
      if (!progress.ShouldStop()) continue;
    }
    const Cost lower_bound = result.result.cost;
    result.result =
        COLLAGE_TRY(SearchPriced(problem, prices, progress.ShouldStop() ? options.when_stopped : WhenStopped::kPriceWhatIsNeeded));
    result.result.lower_bound = lower_bound;
    result.is_complete = false;
    break;
  }
  Count(problem, prices, result);
  return result;
}

}  // namespace collage
