#pragma once

#include <memory>
#include <optional>

#include "collage/search/cover_graph.h"
#include "collage/search/shortest_path.h"

namespace collage {

/// What is asked where only gains on a known plan matter: whether any cover costs less than `below`, and if so one that gains at least a
/// share of the most that can be gained on `plan`.
struct EnoughGain {
  Cost plan;
  Cost below;    ///< no more than `plan`
  double share;  ///< less than 1
};

/// Searches one problem again and again while its prices change. What does not depend on prices is found once; the promises of the
/// relaxation and the best cover are kept, and tell how little can have changed.
class IncrementalSearch {
 public:
  /// Searches of one problem at different prices may share `covers`; a search that has its own shares with none.
  explicit IncrementalSearch(const ShortestPathOptions& options = {}, std::shared_ptr<SharedCoverGraph> covers = nullptr);
  IncrementalSearch(IncrementalSearch&&) noexcept;
  IncrementalSearch& operator=(IncrementalSearch&&) noexcept;
  ~IncrementalSearch();

  /// What SearchShortestPath answers. Between calls prices may change, of variants, conversions and transitions; where more than that has
  /// changed it begins anew. Where a cover that is good enough will do, `lower_bound` says what is told of the others.
  Result<SearchResult> Search(const SearchProblem& problem, const std::vector<bool>& forbidden,
                              const std::optional<EnoughGain>& enough = std::nullopt);
  Result<SearchResult> Search(const SearchProblem& problem);

 private:
  class State;
  ShortestPathOptions options_;
  std::shared_ptr<SharedCoverGraph> covers_;  // of the first problem
  std::unique_ptr<State> state_;
};

}  // namespace collage
