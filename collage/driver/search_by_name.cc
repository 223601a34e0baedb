#include "collage/driver/search_by_name.h"

namespace collage {

SearchProblem ProblemAt(const Placement& placement, const std::vector<Cost>& costs, const std::vector<bool>& allowed) {
  SearchProblem problem = placement.built.problem;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v) {
      const size_t kernel = placement.arms.kernel_of[c][v];
      const bool is_allowed = allowed.empty() || allowed[c];
      problem.candidates[c].variants[v].cost = !is_allowed ? Cost::Invalid() : kernel == Arms::kNoKernel ? Cost() : costs[kernel];
    }
  }
  problem.conversion = [&placement, &costs](size_t tensor, size_t from, size_t to) {
    const size_t kernel = from == to ? Arms::kNoKernel : placement.arms.conversion_kernel(tensor, from, to);
    return kernel == Arms::kNoKernel ? Cost() : costs[kernel];
  };
  return problem;
}

Result<SearchResult> SearchByName(const std::string& name, const Placement& placement, const std::vector<Cost>& costs,
                                  const PlanTime& measure, const Progress& progress) {
  SearcherOptions options;
  for (const PlacementTarget& target : placement.targets)
    options.is_graph_backend.push_back(target.rules.style == BackendRules::Style::kPredicate);
  options.measure = measure;
  options.progress = progress;
  const Searcher searcher = COLLAGE_TRY(FindSearcher(name, options));
  Result<SearchResult> found = searcher.search(ProblemAt(placement, costs, placement.Competing()));
  if (!found) found = searcher.search(ProblemAt(placement, costs, {}));
  return found ? found : Fail(placement.NameNode(found.error().message));
}

}  // namespace collage
