#include "collage/search/greedy.h"

#include <algorithm>
#include <tuple>

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

class Greedy {
 public:
  Greedy(const SearchProblem& problem, const std::vector<size_t>& priority)
      : problem_(problem), given_up_(problem.candidates.size(), false) {
    std::vector<size_t> rank(problem.backend_count, priority.size());
    for (size_t i = priority.size(); i-- > 0;) {
      if (priority[i] < rank.size()) rank[priority[i]] = i;
    }
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem.candidates[c];
      const bool usable = std::any_of(candidate.variants.begin(), candidate.variants.end(), [](const auto& v) { return v.cost.IsKnown(); });
      if (usable && !candidate.inside.Empty()) order_.push_back(c);
    }
    const auto key = [&](size_t c) {
      const SearchCandidate& candidate = problem.candidates[c];
      return std::tuple(!candidate.is_partition, rank[candidate.backend], candidate.backend, problem.node_count - candidate.inside.Count(),
                        candidate.inside.First(), c);
    };
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    place_.resize(problem.candidates.size());
    for (size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
  }

  Result<SearchResult> Run() {
    for (size_t repairs = 0; repairs <= order_.size(); ++repairs) {
      Take();
      const size_t in_the_way = WhatIsInTheWay();
      if (in_the_way == kNobody) return CheapestVariants();
      if (in_the_way == problem_.candidates.size()) break;
      given_up_[in_the_way] = true;
    }
    Result<SearchResult> cheapest = SearchShortestPath(problem_);
    if (cheapest) cheapest->lower_bound = Cost();
    return cheapest;
  }

 private:
  void Take() {
    owner_.assign(problem_.node_count, kNobody);
    taken_.clear();
    for (const size_t c : order_) {
      if (given_up_[c]) continue;
      const IndexSet& inside = problem_.candidates[c].inside;
      bool is_free = true;
      for (size_t node = inside.First(); is_free && node != IndexSet::npos; node = inside.NextFrom(node + 1))
        is_free = owner_[node] == kNobody;
      if (!is_free) continue;
      inside.ForEach([&](size_t node) { owner_[node] = c; });
      taken_.push_back(c);
    }
  }

  /// kNobody when all is well; the number of candidates when nothing can be given up.
  [[nodiscard]] size_t WhatIsInTheWay() const {
    const auto less_preferred = [&](size_t a, size_t b) { return place_[a] < place_[b]; };  // a before b in the order
    const auto hole = std::find(owner_.begin(), owner_.end(), kNobody);
    if (hole != owner_.end()) {
      // Of the candidates that could cover it, the one at whose cost the least preferred is lost.
      const auto node = static_cast<size_t>(hole - owner_.begin());
      size_t given_up = problem_.candidates.size();
      for (const size_t c : order_) {
        if (given_up_[c] || !problem_.candidates[c].inside.Contains(node)) continue;
        size_t lost = kNobody;
        problem_.candidates[c].inside.ForEach([&](size_t inside) {
          if (owner_[inside] != kNobody && (lost == kNobody || less_preferred(owner_[inside], lost))) lost = owner_[inside];
        });
        if (lost != kNobody && (given_up == problem_.candidates.size() || less_preferred(given_up, lost))) given_up = lost;
      }
      return given_up;
    }
    std::vector<SearchChoice> choices;
    for (const size_t c : taken_) choices.push_back({c, 0});
    const std::vector<SearchChoice> cycle = FindCycle(problem_, choices);
    if (cycle.empty()) return kNobody;
    size_t last = cycle.front().candidate;
    for (const SearchChoice& member : cycle) last = std::max(last, member.candidate, less_preferred);
    return last;
  }

  [[nodiscard]] Result<SearchResult> CheapestVariants() const {
    std::vector<bool> forbidden(problem_.candidates.size(), true);
    for (const size_t c : taken_) forbidden[c] = false;
    SearchResult result = COLLAGE_TRY(SearchShortestPath(problem_, forbidden));
    result.lower_bound = Cost();
    return result;
  }

  const SearchProblem& problem_;
  std::vector<size_t> order_;  // most preferred first
  std::vector<size_t> place_;
  std::vector<bool> given_up_;
  std::vector<size_t> owner_;
  std::vector<size_t> taken_;
};

}  // namespace

Result<SearchResult> SearchGreedily(const SearchProblem& problem, const std::vector<size_t>& priority) {
  if (problem.node_count == 0) return SearchResult{};
  return Greedy(problem, priority).Run();
}

}  // namespace collage
