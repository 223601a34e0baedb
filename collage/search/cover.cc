#include <algorithm>
#include <vector>

#include "collage/search/search.h"
#include "collage/support/check.h"

namespace collage {
namespace {

// Index of the choice that covers each node.
std::vector<size_t> Owners(const SearchProblem& problem, const std::vector<SearchChoice>& choices) {
  std::vector<size_t> owner(problem.node_count, SearchTensor::kOutside);
  for (size_t i = 0; i < choices.size(); ++i) {
    problem.candidates[choices[i].candidate].inside.ForEach([&](size_t node) {
      COLLAGE_CHECK(owner[node] == SearchTensor::kOutside, "two chosen candidates overlap");
      owner[node] = i;
    });
  }
  return owner;
}

}  // namespace

std::vector<ConversionMade> ConversionsOf(const SearchProblem& problem, const std::vector<SearchChoice>& choices) {
  std::vector<size_t> produced(problem.tensors.size(), 0);
  std::vector<std::pair<size_t, size_t>> wanted;  // tensor and layout
  for (const SearchChoice& choice : choices) {
    const SearchCandidate& candidate = problem.candidates[choice.candidate];
    const SearchVariant& variant = candidate.variants[choice.variant];
    for (size_t i = 0; i < candidate.outputs.size(); ++i) produced[candidate.outputs[i]] = variant.output_layouts[i];
    for (size_t i = 0; i < candidate.inputs.size(); ++i) wanted.emplace_back(candidate.inputs[i], variant.input_layouts[i]);
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if (problem.tensors[t].is_result) wanted.emplace_back(t, 0);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<ConversionMade> made;
  for (const auto& [tensor, layout] : wanted) {
    if (layout != produced[tensor]) made.push_back({tensor, produced[tensor], layout});
  }
  return made;
}

Cost PriceOfCover(const SearchProblem& problem, const std::vector<SearchChoice>& choices) {
  Cost total;
  size_t last = SearchTensor::kOutside;
  for (const SearchChoice& choice : choices) {
    const SearchCandidate& candidate = problem.candidates[choice.candidate];
    total += candidate.variants[choice.variant].cost;
    if (!candidate.is_partition) continue;
    if (last != SearchTensor::kOutside && !problem.transition.empty()) total += problem.transition[last][candidate.backend];
    last = candidate.backend;
  }
  if (!problem.conversion) return total;
  for (const ConversionMade& made : ConversionsOf(problem, choices)) total += problem.conversion(made.tensor, made.from, made.to);
  return total;
}

std::strong_ordering ComparePreference(const SearchProblem& problem, const std::vector<SearchChoice>& a,
                                       const std::vector<SearchChoice>& b) {
  return PreferenceOf(problem, a, b).order;
}

Preference PreferenceOf(const SearchProblem& problem, std::span<const SearchChoice> a, std::span<const SearchChoice> b,
                        const Preference& before) {
  using Reason = Preference::Reason;
  // Asked for every tie of a sweep, so it copies nothing.
  const auto compare_partitions = [&](const auto& order_of) {
    const auto next = [&](std::span<const SearchChoice> choices, size_t at) {
      while (at < choices.size() && !problem.candidates[choices[at].candidate].is_partition) ++at;
      return at;
    };
    for (size_t i = next(a, 0), j = next(b, 0);; i = next(a, i + 1), j = next(b, j + 1)) {
      if (i == a.size() || j == b.size()) return (i < a.size()) <=> (j < b.size());
      if (const std::strong_ordering order = order_of(a[i], b[j]); order != 0) return order;
    }
  };
  const auto by_backend = [&](const SearchChoice& p, const SearchChoice& q) {
    return problem.candidates[p.candidate].backend <=> problem.candidates[q.candidate].backend;
  };
  const auto by_inside = [&](const SearchChoice& p, const SearchChoice& q) {
    if (p.candidate == q.candidate) return std::strong_ordering::equal;
    const IndexSet& left = problem.candidates[p.candidate].inside;
    const IndexSet& right = problem.candidates[q.candidate].inside;
    if (left == right) return std::strong_ordering::equal;
    return left < right ? std::strong_ordering::less : std::strong_ordering::greater;
  };
  const auto by_variant = [](const SearchChoice& p, const SearchChoice& q) { return p.variant <=> q.variant; };
  if (before.reason == Reason::kBackends) return before;
  if (const auto order = compare_partitions(by_backend); order != 0) return {Reason::kBackends, order};
  if (before.reason == Reason::kInsides) return before;
  if (const auto order = compare_partitions(by_inside); order != 0) return {Reason::kInsides, order};
  if (before.reason == Reason::kVariants) return before;
  if (const auto order = compare_partitions(by_variant); order != 0) return {Reason::kVariants, order};
  if (before.reason == Reason::kHost) return before;
  const std::strong_ordering order = std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  return {order == 0 ? Reason::kNone : Reason::kHost, order};
}

std::vector<SearchChoice> FindCycle(const SearchProblem& problem, const std::vector<SearchChoice>& choices) {
  const std::vector<size_t> owner = Owners(problem, choices);
  std::vector<std::vector<size_t>> successors(choices.size());
  std::vector<std::vector<size_t>> predecessors(choices.size());
  std::vector<size_t> pending(choices.size(), 0);
  // A node that is covered in favour of another form of it is not computed, and nobody waits for it: who waits follows from what is read.
  const auto reads = [&](size_t choice, size_t tensor) {
    const std::vector<size_t>& inputs = problem.candidates[choices[choice].candidate].inputs;
    return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
  };
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const SearchTensor& tensor = problem.tensors[t];
    if (tensor.producer == SearchTensor::kOutside) continue;
    for (size_t consumer : tensor.consumers) {
      const size_t from = owner[tensor.producer];
      const size_t to = owner[consumer];
      if (from == to || !reads(to, t)) continue;
      successors[from].push_back(to);
      predecessors[to].push_back(from);
      ++pending[to];
    }
  }
  std::vector<size_t> ready;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (pending[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const size_t at = ready.back();
    ready.pop_back();
    for (size_t next : successors[at]) {
      if (--pending[next] == 0) ready.push_back(next);
    }
  }
  const auto stuck = std::find_if(pending.begin(), pending.end(), [](size_t count) { return count > 0; });
  if (stuck == pending.end()) return {};
  // Whoever waits has a predecessor that waits: walking back must come round.
  std::vector<size_t> walk;
  std::vector<bool> seen(choices.size(), false);
  auto at = static_cast<size_t>(stuck - pending.begin());
  while (!seen[at]) {
    seen[at] = true;
    walk.push_back(at);
    at = *std::find_if(predecessors[at].begin(), predecessors[at].end(), [&](size_t p) { return pending[p] > 0; });
  }
  std::vector<SearchChoice> cycle;
  for (auto member = std::find(walk.begin(), walk.end(), at); member != walk.end(); ++member) cycle.push_back(choices[*member]);
  return cycle;
}

}  // namespace collage
