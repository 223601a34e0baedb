#pragma once

// The search problem of some arms at given prices of their kernels.

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "collage/decide/decide.h"
#include "collage/search/incremental.h"

namespace collage {

/// Sets the costs of a problem that is kept for searching again and again. The problem is copied, and its tables are made, by the first
/// search in which every operator has a candidate of a known cost: before, as for a backend of which nothing was measured, there is nothing
/// to search for.
class PricedProblem {
 public:
  using Searched = decltype(DecideOptions::searched);

  /// Candidates that are not `allowed` are not taken; empty: all are. `searched` is told of each search. `arms` must outlive it. Problems
  /// of the same arms may share `covers`.
  PricedProblem(const Arms& arms, const std::vector<bool>& allowed, Searched searched = {},
                std::shared_ptr<SharedCoverGraph> covers = nullptr);
  PricedProblem(const PricedProblem&) = delete;
  PricedProblem& operator=(const PricedProblem&) = delete;

  /// The cheapest cover at such a cost of each kernel, and `for_partition` for each partition. Unknown and Invalid ones are not taken.
  Result<SearchResult> Search(const std::vector<Cost>& costs, Cost for_partition = {}) {
    return Search(costs, for_partition, std::nullopt);
  }
  /// A cover whose gain on a plan of that price is good enough to look into it, or a `lower_bound` of at least `below`.
  Result<SearchResult> SearchBelow(const std::vector<Cost>& costs, Cost plan, Cost below);
  /// What no cover costs less than, save for a tenth of the most that can be gained on a plan of that price.
  Result<Cost> BoundBelow(const std::vector<Cost>& costs, Cost plan);
  /// What a cover costs, its conversions included.
  [[nodiscard]] Cost PriceOf(const std::vector<SearchChoice>& cover, const std::vector<Cost>& costs);

 private:
  Result<SearchResult> Search(const std::vector<Cost>& costs, Cost for_partition, const std::optional<EnoughGain>& enough);
  [[nodiscard]] Cost CostOf(size_t candidate, size_t variant, const std::vector<Cost>& costs) const;
  void SetCost(size_t candidate, size_t variant, const std::vector<Cost>& costs, Cost for_partition);
  [[nodiscard]] std::optional<size_t> FirstWithoutCost(const std::vector<Cost>& costs) const;
  void EnsureProblem();

  const Arms& arms_;
  std::optional<SearchProblem> problem_;
  std::vector<bool> forbidden_;
  Searched searched_;
  IncrementalSearch search_;
  const std::vector<Cost>* costs_ = nullptr;  // of the search that goes on
};

/// The cheapest cover at such a cost of each kernel. Candidates that are not `allowed` are not taken.
Result<SearchResult> SearchAt(const Arms& arms, const std::vector<Cost>& costs, const std::vector<bool>& allowed = {});

/// Views of prices for a search, by kernel.
std::vector<Cost> CostsByKernel(const std::vector<Price>& prices, Cost Price::*member);
std::vector<Cost> Centres(const std::vector<Price>& prices);
std::vector<Cost> Lows(const std::vector<Price>& prices);

/// The plan among those that are dearer than `best` by no more than `within` (a share of it) with the fewest partitions, as far as a charge
/// for each partition can find it: of what it gives up, each partition saves as much as any other could. `best` itself where that has no
/// more.
SearchResult WithFewerPartitions(PricedProblem& problem, const std::vector<Cost>& costs, const SearchResult& best, double within);

/// How often a cover runs each kernel, those of its conversions included.
std::map<size_t, int> UsesOf(const Arms& arms, const std::vector<SearchChoice>& cover);

}  // namespace collage
