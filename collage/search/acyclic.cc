#include "collage/search/acyclic.h"

#include <algorithm>
#include <optional>

namespace collage {
namespace {

class BranchAndBound {
 public:
  BranchAndBound(const SearchProblem& problem, size_t most_solves, const CoverSolver& solve)
      : problem_(problem), solves_left_(most_solves), solve_(solve) {}

  Result<SearchResult> Run() {
    COLLAGE_TRY_STATUS(Begin());
    while (!branches_.empty()) {
      std::pop_heap(branches_.begin(), branches_.end(), Dearer{problem_});
      Branch branch = std::move(branches_.back());
      branches_.pop_back();
      const std::vector<SearchChoice> cycle = FindCycle(problem_, branch.result.choices);
      if (cycle.empty()) return Answer(std::move(branch.result), branch.result.lower_bound);
      if (solves_left_ < cycle.size()) return BestWithinLimit(branch);
      for (std::vector<bool>& forbidden : BranchesOf(branch.forbidden, cycle)) {
        if (std::optional<SearchResult> result = Solve(forbidden)) Add({std::move(forbidden), std::move(*result)});
      }
    }
    return Fail("every cover by the valid candidates is cyclic");
  }

 private:
  struct Branch {
    std::vector<bool> forbidden;
    SearchResult result;
  };
  struct Dearer {
    const SearchProblem& problem;
    bool operator()(const Branch& a, const Branch& b) const {
      if (a.result.cost != b.result.cost) return a.result.cost > b.result.cost;
      if (a.result.partitions != b.result.partitions) return a.result.partitions > b.result.partitions;
      return ComparePreference(problem, a.result.choices, b.result.choices) > 0;
    }
  };

  /// One for each member of the cycle: it is forbidden and those before it must be chosen, so that no cover is in two branches.
  [[nodiscard]] std::vector<std::vector<bool>> BranchesOf(std::vector<bool> forbidden, const std::vector<SearchChoice>& cycle) const {
    std::vector<std::vector<bool>> branches;
    for (const SearchChoice& member : cycle) {
      branches.push_back(forbidden);
      branches.back()[member.candidate] = true;
      const IndexSet& inside = problem_.candidates[member.candidate].inside;
      for (size_t c = 0; c < forbidden.size(); ++c) {
        if (c != member.candidate && problem_.candidates[c].inside.Intersects(inside)) forbidden[c] = true;
      }
    }
    return branches;
  }

  Status Begin() {
    std::vector<bool> none(problem_.candidates.size(), false);
    SearchResult first = COLLAGE_TRY(solve_(none));
    expanded_ = first.states_expanded;
    Add({std::move(none), std::move(first)});
    return {};
  }

  std::optional<SearchResult> Solve(const std::vector<bool>& forbidden) {
    if (solves_left_ > 0) --solves_left_;
    Result<SearchResult> result = solve_(forbidden);
    if (!result) return std::nullopt;
    expanded_ += result->states_expanded;
    return std::move(*result);
  }

  void Add(Branch branch) {
    branches_.push_back(std::move(branch));
    std::push_heap(branches_.begin(), branches_.end(), Dearer{problem_});
  }

  /// `result` with the bound of all branches that are left.
  SearchResult Answer(SearchResult result, Cost lower_bound) const {
    for (const Branch& other : branches_) lower_bound = std::min(lower_bound, other.result.lower_bound);
    result.lower_bound = std::min(lower_bound, result.cost);
    result.is_proven = result.lower_bound == result.cost;
    result.states_expanded = expanded_;
    return result;
  }

  /// When branches are too many. `cheapest` is cyclic.
  Result<SearchResult> BestWithinLimit(const Branch& cheapest) {
    std::optional<SearchResult> best;
    const auto take = [&](const SearchResult& result) {
      if (FindCycle(problem_, result.choices).empty() && (!best || result.cost < best->cost)) best = result;
    };
    for (const Branch& branch : branches_) take(branch.result);
    std::vector<bool> can_close = LeadToOneExit(problem_);
    can_close.flip();
    if (const std::optional<SearchResult> tame = Solve(can_close)) take(*tame);
    for (Branch at = cheapest; !best;) {  // down the cheapest branches: each forbids one candidate more
      std::optional<Branch> next;
      for (std::vector<bool>& forbidden : BranchesOf(at.forbidden, FindCycle(problem_, at.result.choices))) {
        std::optional<SearchResult> result = Solve(forbidden);
        if (result && (!next || result->cost < next->result.cost)) next = Branch{std::move(forbidden), std::move(*result)};
      }
      if (!next) break;
      take(next->result);
      at = std::move(*next);
    }
    if (best) return Answer(std::move(*best), cheapest.result.lower_bound);
    return Fail("no acyclic cover was found within the limit of the search");
  }

  const SearchProblem& problem_;
  size_t solves_left_;
  const CoverSolver& solve_;
  std::vector<Branch> branches_;
  size_t expanded_ = 0;
};

}  // namespace

std::vector<bool> LeadToOneExit(const SearchProblem& problem) {
  std::vector<std::vector<size_t>> consumers(problem.node_count);
  for (const SearchTensor& tensor : problem.tensors) {
    if (tensor.producer == SearchTensor::kOutside) continue;
    std::vector<size_t>& of = consumers[tensor.producer];
    of.insert(of.end(), tensor.consumers.begin(), tensor.consumers.end());
  }
  std::vector<bool> leads(problem.candidates.size());
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const IndexSet& inside = problem.candidates[c].inside;
    // A node is the exit or is read by a node inside, and those lead there already: dataflow goes to larger numbers.
    size_t exits = 0;
    inside.ForEach([&](size_t node) {
      const bool is_read_within =
          std::any_of(consumers[node].begin(), consumers[node].end(), [&](size_t at) { return inside.Contains(at); });
      const bool is_read_outside =
          std::any_of(consumers[node].begin(), consumers[node].end(), [&](size_t at) { return !inside.Contains(at); });
      exits += is_read_outside || !is_read_within ? 1 : 0;
    });
    leads[c] = exits <= 1;
  }
  return leads;
}

Result<SearchResult> CheapestAcyclic(const SearchProblem& problem, size_t most_solves, const CoverSolver& solve) {
  return BranchAndBound(problem, most_solves, solve).Run();
}

}  // namespace collage
