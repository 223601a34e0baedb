#include "collage/search/tables.h"

#include <algorithm>

#include "collage/support/check.h"

namespace collage {
namespace {

/// The part of an ascending list that lies between the first and the last of a set.
auto Within(const std::vector<size_t>& nodes, const IndexSet& set) {
  return std::pair{std::lower_bound(nodes.begin(), nodes.end(), set.First()), std::upper_bound(nodes.begin(), nodes.end(), set.Last())};
}

}  // namespace

SearchTables::SearchTables(const SearchProblem& problem, const std::vector<bool>& forbidden) : problem_(problem) {
  COLLAGE_CHECK(problem.layout_count >= 1 && problem.layout_count <= 16);
  by_first_.resize(problem.node_count);
  produced_by_.resize(problem.node_count);
  consumed_by_.resize(problem.node_count);
  conversions_.resize(problem.tensors.size());
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    consumers_.push_back(problem.tensors[t].consumers);
    std::sort(consumers_[t].begin(), consumers_[t].end());
    if (problem.tensors[t].producer != SearchTensor::kOutside) produced_by_[problem.tensors[t].producer].push_back(t);
  }
  AddCandidates(forbidden);
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    for (const size_t consumer : consumers_[t]) consumed_by_[consumer].push_back(t);
  }
  const size_t backends = problem.backend_count + 1;
  transition_slack_.resize(backends * backends);
  for (size_t a = 0; a < problem.backend_count && !problem.transition.empty(); ++a) {
    for (size_t b = 0; b < backends; ++b) {
      for (size_t to = 0; to < problem.backend_count; ++to) {
        const Cost mine = problem.transition[a][to];
        const Cost other = b == problem.backend_count ? Cost() : problem.transition[b][to];
        if (mine > other) transition_slack_[a * backends + b] = std::max(transition_slack_[a * backends + b], mine - other);
      }
    }
  }
  FindShares();
}

void SearchTables::AddCandidates(const std::vector<bool>& forbidden) {
  for (size_t c = 0; c < problem_.candidates.size(); ++c) {
    const SearchCandidate& candidate = problem_.candidates[c];
    if (forbidden[c] || candidate.inside.Empty()) continue;
    const bool usable = std::any_of(candidate.variants.begin(), candidate.variants.end(), [](const auto& v) { return v.cost.IsKnown(); });
    if (!usable) continue;
    by_first_[candidate.inside.First()].push_back(c);
    for (const size_t t : candidate.inputs) {
      const auto [begin, end] = Within(consumers_[t], candidate.inside);
      const bool reads = std::any_of(begin, end, [&](size_t node) { return candidate.inside.Contains(node); });
      // An input that none of its nodes is said to read counts as read by the last of them.
      if (!reads)
        consumers_[t].insert(std::upper_bound(consumers_[t].begin(), consumers_[t].end(), candidate.inside.Last()),
                             candidate.inside.Last());
    }
  }
  all_wishes_.assign(problem_.tensors.size(), 0);
  made_.assign(problem_.tensors.size(), LayoutBit(0));
  for (const std::vector<size_t>& consumers : consumers_) wishes_.emplace_back(consumers.size(), LayoutMask{0});
  for (const std::vector<size_t>& starting : by_first_) {
    for (const size_t c : starting) AddWishes(c);
  }
}

void SearchTables::AddWishes(size_t c) {
  const SearchCandidate& candidate = problem_.candidates[c];
  for (const SearchVariant& variant : candidate.variants) {
    if (!variant.cost.IsKnown()) continue;
    for (size_t i = 0; i < candidate.outputs.size(); ++i) made_[candidate.outputs[i]] |= LayoutBit(variant.output_layouts[i]);
  }
  for (size_t i = 0; i < candidate.inputs.size(); ++i) {
    LayoutMask wanted = 0;
    for (const SearchVariant& variant : candidate.variants) {
      if (variant.cost.IsKnown()) wanted |= LayoutBit(variant.input_layouts[i]);
    }
    const size_t t = candidate.inputs[i];
    all_wishes_[t] |= wanted;
    const auto [begin, end] = Within(consumers_[t], candidate.inside);
    for (auto consumer = begin; consumer != end; ++consumer) {
      if (candidate.inside.Contains(*consumer)) wishes_[t][static_cast<size_t>(consumer - consumers_[t].begin())] |= wanted;
    }
  }
}

void SearchTables::FindShares() {
  const Cost none = Cost::Invalid();
  share_.assign(problem_.node_count, none);
  for (const std::vector<size_t>& starting : by_first_) {
    for (const size_t c : starting) {
      Cost cheapest = none;
      for (const SearchVariant& variant : problem_.candidates[c].variants) cheapest = std::min(cheapest, variant.cost);
      const auto count = static_cast<int64_t>(problem_.candidates[c].inside.Count());
      // Rounded down: a bound must not exceed what it bounds.
      const Cost share = Cost::Seconds(std::max(0.0, cheapest.ToSeconds() / static_cast<double>(count) - 1e-12));
      problem_.candidates[c].inside.ForEach([&](size_t node) { share_[node] = std::min(share_[node], share); });
    }
  }
  least_from_.assign(problem_.node_count + 1, Cost());
  for (size_t node = problem_.node_count; node-- > 0;) {
    if (!share_[node].IsKnown()) share_[node] = Cost();
    least_from_[node] = least_from_[node + 1] + share_[node];
  }
}

Cost SearchTables::LeastOf(const IndexSet& nodes) const {
  Cost least;
  nodes.ForEach([&](size_t node) { least += share_[node]; });
  return least;
}

bool SearchTables::IsProduced(size_t tensor, const Covered& covered) const {
  const size_t producer = problem_.tensors[tensor].producer;
  return producer == SearchTensor::kOutside || covered.Contains(producer);
}

bool SearchTables::IsOpen(size_t tensor, const Covered& covered) const {
  const std::vector<size_t>& consumers = consumers_[tensor];
  if (IsProduced(tensor, covered)) {
    return std::any_of(consumers.rbegin(), consumers.rend(), [&](size_t node) { return !covered.Contains(node); });
  }
  return std::any_of(consumers.begin(), consumers.end(), [&](size_t node) { return covered.Contains(node); });
}

LayoutMask SearchTables::StillWanted(size_t tensor, const Covered& covered) const {
  const std::vector<size_t>& consumers = consumers_[tensor];
  if (HasManyConsumers(tensor)) return all_wishes_[tensor];
  LayoutMask wanted = 0;
  for (size_t i = consumers.size(); i-- > 0;) {
    if (!covered.Contains(consumers[i])) wanted |= wishes_[tensor][i];
  }
  return wanted;
}

Cost SearchTables::Conversion(size_t tensor, size_t from, size_t to) const {
  if (from == to || !problem_.conversion) return {};
  const size_t layouts = problem_.layout_count;
  std::vector<Cost>& table = conversions_[tensor];
  if (table.empty()) table.assign(layouts * layouts, Cost::Unknown());
  Cost& cost = table[from * layouts + to];
  if (cost.IsUnknown()) cost = problem_.conversion(tensor, from, to);
  return cost;
}

Cost SearchTables::WorstConversion(size_t tensor, size_t to) const {
  Cost worst;
  for (unsigned made = made_[tensor]; made != 0; made &= made - 1)
    worst = std::max(worst, Conversion(tensor, static_cast<size_t>(__builtin_ctz(made)), to));
  return worst;
}

}  // namespace collage
