#include "collage/explain/elsewhere.h"

#include <algorithm>
#include <set>

#include "collage/search/alternatives.h"
#include "collage/search/shortest_path.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

bool HasPrice(const SearchCandidate& candidate) {
  return std::any_of(candidate.variants.begin(), candidate.variants.end(), [](const SearchVariant& v) { return v.cost.IsKnown(); });
}

/// Alternatives want prices: what is not known takes no part.
class Searcher {
 public:
  explicit Searcher(const RecordedProblem& recorded)
      : problem_(recorded.problem),
        chosen_(recorded.chosen),
        alternatives_(problem_, recorded.chosen),
        is_chosen_(recorded.chosen.begin(), recorded.chosen.end()),
        owner_(problem_.node_count, kNobody),
        candidates_of_(problem_.node_count) {
    for (size_t i = 0; i < chosen_.size(); ++i)
      problem_.candidates[chosen_[i].candidate].inside.ForEach([&](size_t node) { owner_[node] = i; });
    for (size_t c = 0; c < problem_.candidates.size(); ++c)
      problem_.candidates[c].inside.ForEach([&](size_t node) { candidates_of_[node].push_back(c); });
  }

  std::vector<Elsewhere> Of(size_t node) {
    std::vector<Elsewhere> all;
    if (owner_[node] == kNobody) return all;
    const SearchCandidate& own = problem_.candidates[chosen_[owner_[node]].candidate];
    if (!own.is_partition) return all;
    for (size_t backend = 0; backend < problem_.backend_count; ++backend) {
      if (backend != own.backend) all.push_back(On(node, backend));
    }
    return all;
  }

 private:
  Elsewhere On(size_t node, size_t backend) {
    Elsewhere answer{backend, WhatIsKnown(node, backend), {}};
    if (answer.known != Elsewhere::Known::kPrice) return answer;
    const size_t i = owner_[node];
    if (!alternatives_.IsSearchable(i)) {
      answer.known = Elsewhere::Known::kNotSearched;
      return answer;
    }
    const auto is_other = [&](size_t c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      return candidate.inside.Contains(node) && (candidate.backend != backend || !candidate.is_partition);
    };
    const std::optional<Alternatives::Found> found = alternatives_.BestWithout(i, is_other);
    if (!found) {
      answer.known = Elsewhere::Known::kNoPlan;
      return answer;
    }
    answer.extra = found->extra;
    for (const SearchChoice& choice : found->choices) {
      if (problem_.candidates[choice.candidate].is_partition && !is_chosen_.contains(choice)) answer.choices.push_back(choice);
    }
    return answer;
  }

  [[nodiscard]] Elsewhere::Known WhatIsKnown(size_t node, size_t backend) const {
    Elsewhere::Known known = Elsewhere::Known::kNoCandidate;
    for (const size_t c : candidates_of_[node]) {
      const SearchCandidate& candidate = problem_.candidates[c];
      if (candidate.backend != backend || !candidate.is_partition) continue;
      if (HasPrice(candidate)) return Elsewhere::Known::kPrice;
      const bool all_refused =
          std::all_of(candidate.variants.begin(), candidate.variants.end(), [](const SearchVariant& v) { return v.cost.IsInvalid(); });
      if (!all_refused) known = Elsewhere::Known::kNotTimed;
      if (known == Elsewhere::Known::kNoCandidate) known = Elsewhere::Known::kRefused;
    }
    return known;
  }

  const SearchProblem& problem_;
  const std::vector<SearchChoice>& chosen_;
  Alternatives alternatives_;
  std::set<SearchChoice> is_chosen_;
  std::vector<size_t> owner_;                       // choice that holds each node
  std::vector<std::vector<size_t>> candidates_of_;  // by node
};

}  // namespace

std::vector<std::vector<Elsewhere>> FindElsewhere(const RecordedProblem& recorded) {
  if (recorded.chosen.empty()) return {};
  Searcher searcher(recorded);
  std::vector<std::vector<Elsewhere>> all;
  for (size_t node = 0; node < recorded.problem.node_count; ++node) all.push_back(searcher.Of(node));
  return all;
}

std::vector<AlonePlan> FindAlone(const RecordedProblem& recorded) {
  const SearchProblem& problem = recorded.problem;
  std::vector<AlonePlan> plans;
  for (size_t backend = 0; backend < problem.backend_count; ++backend) {
    IndexSet runs;
    for (const SearchCandidate& candidate : problem.candidates) {
      if (candidate.is_partition && candidate.backend == backend && HasPrice(candidate))
        candidate.inside.ForEach([&](size_t node) { runs.Add(node); });
    }
    if (runs.Empty()) continue;
    std::vector<bool> forbidden;
    for (const SearchCandidate& candidate : problem.candidates)
      forbidden.push_back(candidate.is_partition && candidate.backend != backend && candidate.inside.Intersects(runs));
    Result<SearchResult> plan = SearchShortestPath(problem, forbidden);
    if (!plan) continue;
    size_t left_to_others = 0;
    for (const SearchChoice& choice : plan->choices) {
      const SearchCandidate& candidate = problem.candidates[choice.candidate];
      left_to_others += candidate.is_partition && candidate.backend != backend ? 1 : 0;
    }
    plans.push_back({backend, std::move(*plan), left_to_others});
  }
  return plans;
}

}  // namespace collage
