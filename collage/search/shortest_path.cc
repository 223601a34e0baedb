#include "collage/search/shortest_path.h"

#include "collage/search/incremental.h"

namespace collage {

Result<SearchResult> SearchShortestPath(const SearchProblem& problem, const std::vector<bool>& forbidden,
                                        const ShortestPathOptions& options) {
  return IncrementalSearch(options).Search(problem, forbidden);
}

Result<SearchResult> SearchShortestPath(const SearchProblem& problem, const ShortestPathOptions& options) {
  return SearchShortestPath(problem, std::vector<bool>(problem.candidates.size(), false), options);
}

}  // namespace collage
