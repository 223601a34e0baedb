#include "collage/search/acyclic.h"

#include <algorithm>

namespace collage {

Result<SearchResult> CheapestAcyclic(const SearchProblem& problem, const CoverSolver& solve) {
  struct Branch {
    std::vector<bool> forbidden;
    SearchResult result;
  };
  const auto dearer = [&](const Branch& a, const Branch& b) {
    if (a.result.cost != b.result.cost) return a.result.cost > b.result.cost;
    if (a.result.partitions != b.result.partitions) return a.result.partitions > b.result.partitions;
    return ComparePreference(problem, a.result.choices, b.result.choices) > 0;
  };
  std::vector<Branch> branches;
  std::vector<bool> none(problem.candidates.size(), false);
  SearchResult first = COLLAGE_TRY(solve(none));
  size_t expanded = first.states_expanded;
  branches.push_back({std::move(none), std::move(first)});
  while (!branches.empty()) {
    std::pop_heap(branches.begin(), branches.end(), dearer);
    Branch branch = std::move(branches.back());
    branches.pop_back();
    const std::vector<SearchChoice> cycle = FindCycle(problem, branch.result.choices);
    if (cycle.empty()) {
      for (const Branch& other : branches) branch.result.lower_bound = std::min(branch.result.lower_bound, other.result.lower_bound);
      branch.result.states_expanded = expanded;
      return std::move(branch.result);
    }
    for (const SearchChoice& member : cycle) {
      std::vector<bool> forbidden = branch.forbidden;
      forbidden[member.candidate] = true;
      Result<SearchResult> result = solve(forbidden);
      if (!result) continue;
      expanded += result->states_expanded;
      branches.push_back({std::move(forbidden), std::move(*result)});
      std::push_heap(branches.begin(), branches.end(), dearer);
    }
  }
  return Fail("every cover by the valid candidates is cyclic");
}

}  // namespace collage
