#pragma once

#include <memory>

#include "collage/search/shortest_path.h"

namespace collage {

/// Searches one problem again and again while its prices change. What does not depend on prices is found once; the promises of the
/// relaxation and the best cover are kept, and tell how little can have changed.
class IncrementalSearch {
 public:
  explicit IncrementalSearch(const ShortestPathOptions& options = {});
  IncrementalSearch(IncrementalSearch&&) noexcept;
  IncrementalSearch& operator=(IncrementalSearch&&) noexcept;
  ~IncrementalSearch();

  /// What SearchShortestPath answers. Between calls prices may change, of variants, conversions and transitions; where more than that has
  /// changed it begins anew.
  Result<SearchResult> Search(const SearchProblem& problem, const std::vector<bool>& forbidden);
  Result<SearchResult> Search(const SearchProblem& problem);

 private:
  class State;
  ShortestPathOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace collage
