#pragma once

#include <functional>

#include "collage/search/search.h"
#include "collage/support/progress.h"

namespace collage {

struct LazySearchResult {
  SearchResult result;
  size_t rounds = 0;
  size_t priced = 0;        ///< variants whose price was asked for
  size_t unpriced = 0;      ///< variants whose lower bound alone kept them off every cheapest path
  bool is_complete = true;  ///< false when stopped early: then the unpriced variants were left out and the optimum is not proven
};

/// Prices of variants for a lazy search: what is known, what is bounded, and how to find out.
class VariantPrices {
 public:
  virtual ~VariantPrices() = default;
  /// The price where it is known (Invalid included), otherwise a lower bound of it.
  [[nodiscard]] virtual Cost PriceOrBound(size_t candidate, size_t variant) const = 0;
  [[nodiscard]] virtual bool IsPriced(size_t candidate, size_t variant) const = 0;
  /// Makes progress towards knowing this price: afterwards it is known, or some bound has risen, so that asking again ends.
  virtual Status Price(size_t candidate, size_t variant) = 0;
};

/// What a search that is asked to stop does where the priced variants alone are no cover.
enum class WhenStopped { kPriceWhatIsNeeded, kGiveUp };

struct LazySearchOptions {
  WhenStopped when_stopped = WhenStopped::kPriceWhatIsNeeded;
  /// The cheapest cover of what is priced already; only where that is no cover, what is needed is priced in addition.
  bool only_priced = false;
};

/// The cheapest cover, pricing only what lies on a path that could still be the cheapest: search with lower bounds, price what
/// the optimum uses, and repeat until all of it is priced (LazySP: Dellin and Srinivasa, ICAPS 2016). With admissible bounds the
/// optimum is that of eager pricing. Costs of `problem.candidates` are overwritten.
Result<LazySearchResult> SearchLazily(SearchProblem& problem, VariantPrices& prices, const Progress& progress,
                                      const LazySearchOptions& options = {});

}  // namespace collage
