#include "collage/search/lazy.h"

#include <algorithm>

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

// A price raises bounds of others, so one is found out at a time; but of large problems, which take longer to search, several. On recorded
// prices of ResNet-50 a tenth less was asked for than with all that a cover uses at once, and dearest first was best.
constexpr size_t kNodesForAPrice = 500;

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

/// Prices what `choices` uses, the dearest first, but no more than `most`; true when all of it was priced already.
Result<bool> PriceChoices(const std::vector<SearchChoice>& choices, VariantPrices& prices, size_t most, const Progress* stop) {
  std::vector<SearchChoice> wanted;
  for (const SearchChoice& choice : choices) {
    if (!prices.IsPriced(choice.candidate, choice.variant)) wanted.push_back(choice);
  }
  const bool all_priced = wanted.empty();
  std::stable_sort(wanted.begin(), wanted.end(), [&](const SearchChoice& a, const SearchChoice& b) {
    return prices.PriceOrBound(a.candidate, a.variant) > prices.PriceOrBound(b.candidate, b.variant);
  });
  size_t priced = 0;
  for (const SearchChoice& choice : wanted) {
    if (priced++ == most || (stop && stop->ShouldStop())) break;
    if (!prices.IsPriced(choice.candidate, choice.variant)) COLLAGE_TRY_STATUS(prices.Price(choice.candidate, choice.variant));
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
    COLLAGE_TRY(PriceChoices(found->choices, prices, SIZE_MAX, nullptr));
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
      if (COLLAGE_TRY(PriceChoices(result.result.choices, prices, 1 + problem.node_count / kNodesForAPrice, &progress))) break;
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
