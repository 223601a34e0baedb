#include "collage/search/tables.h"

#include <algorithm>

namespace collage {
namespace {

/// The part of an ascending list that lies between the first and the last of a set.
auto Within(const std::vector<size_t>& nodes, const IndexSet& set) {
  return std::pair{std::lower_bound(nodes.begin(), nodes.end(), set.First()), std::upper_bound(nodes.begin(), nodes.end(), set.Last())};
}

}  // namespace

SearchTables::SearchTables(const SearchProblem& problem, const std::vector<bool>& forbidden) : problem_(problem) {
  produced_by_.resize(problem.node_count);
  consumed_by_.resize(problem.node_count);
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    consumers_.push_back(problem.tensors[t].consumers);
    std::sort(consumers_[t].begin(), consumers_[t].end());
    if (problem.tensors[t].producer != SearchTensor::kOutside) produced_by_[problem.tensors[t].producer].push_back(t);
  }
  AddReaders();
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    for (const size_t consumer : consumers_[t]) consumed_by_[consumer].push_back(t);
  }
  NumberLayouts();
  conversions_.resize(problem.tensors.size());
  VariantMask left_out;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    first_variant_.push_back(left_out.size());
    left_out.resize(left_out.size() + problem.candidates[c].variants.size(), forbidden[c]);
  }
  first_variant_.push_back(left_out.size());
  by_first_.resize(problem.node_count);
  for (const std::vector<size_t>& consumers : consumers_) wishes_.emplace_back(consumers.size());
  Reprice(left_out);
}

/// An input that none of a candidate's nodes is said to read counts as read by the last of them.
void SearchTables::AddReaders() {
  for (const SearchCandidate& candidate : problem_.candidates) {
    if (candidate.inside.Empty()) continue;
    for (const size_t t : candidate.inputs) {
      const auto [begin, end] = Within(consumers_[t], candidate.inside);
      if (std::any_of(begin, end, [&](size_t node) { return candidate.inside.Contains(node); })) continue;
      const size_t last = candidate.inside.Last();
      consumers_[t].insert(std::upper_bound(consumers_[t].begin(), consumers_[t].end(), last), last);
    }
  }
}

void SearchTables::NumberLayouts() {
  layouts_.assign(problem_.tensors.size(), {0});
  variants_.resize(problem_.candidates.size());
  const auto for_each_list = [&](const auto& visit) {
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      variants_[c].resize(candidate.variants.size());
      for (size_t v = 0; v < candidate.variants.size(); ++v) {
        visit(candidate.inputs, candidate.variants[v].input_layouts, variants_[c][v], &Variant::input_layouts);
        visit(candidate.outputs, candidate.variants[v].output_layouts, variants_[c][v], &Variant::output_layouts);
      }
    }
  };
  for_each_list([&](const std::vector<size_t>& tensors, const std::vector<size_t>& layouts, Variant&, auto) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<size_t>& known = layouts_[tensors[i]];
      if (std::find(known.begin(), known.end(), layouts[i]) == known.end()) known.push_back(layouts[i]);
    }
  });
  // In the order of the problem's numbers, so that tensors that are alike are numbered alike.
  for (std::vector<size_t>& layouts : layouts_) {
    std::sort(layouts.begin(), layouts.end());
    if (layouts.size() > kMostLayouts) layouts.resize(kMostLayouts);
  }
  for_each_list([&](const std::vector<size_t>& tensors, const std::vector<size_t>& layouts, Variant& numbered, auto numbers) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::vector<size_t>& known = layouts_[tensors[i]];
      const auto at = std::lower_bound(known.begin(), known.end(), layouts[i]);
      const bool is_numbered = at != known.end() && *at == layouts[i];
      (numbered.*numbers).push_back(is_numbered ? static_cast<uint8_t>(at - known.begin()) : 0);
      numbered.has_numbers = numbered.has_numbers && is_numbered;
    }
  });
}

Cost SearchTables::RefreshConversions() {
  Cost fallen;
  for (size_t t = 0; t < conversions_.size(); ++t) {
    const std::vector<size_t>& layouts = layouts_[t];
    for (size_t i = 0; i < conversions_[t].size(); ++i) {
      Cost& cost = conversions_[t][i];
      if (cost.IsUnknown()) continue;
      const Cost now = problem_.conversion ? problem_.conversion(t, layouts[i / layouts.size()], layouts[i % layouts.size()]) : Cost();
      if (now < cost) fallen += cost.IsKnown() ? cost - now : Cost::Invalid();
      cost = now;
    }
  }
  return fallen;
}

void SearchTables::Reprice(const VariantMask& left_out) {
  for (std::vector<size_t>& starting : by_first_) starting.clear();
  all_wishes_.assign(problem_.tensors.size(), 0);
  made_.assign(problem_.tensors.size(), LayoutBit(0));
  for (std::vector<LayoutMask>& wishes : wishes_) std::fill(wishes.begin(), wishes.end(), 0);
  is_whole_ = true;
  for (size_t c = 0; c < problem_.candidates.size(); ++c) {
    const SearchCandidate& candidate = problem_.candidates[c];
    bool usable = false;
    for (size_t v = 0; v < candidate.variants.size(); ++v) {
      Variant& variant = variants_[c][v];
      const bool may_be_chosen = candidate.variants[v].cost.IsKnown() && !left_out[VariantAt(c, v)] && !candidate.inside.Empty();
      variant.is_usable = may_be_chosen && variant.has_numbers;
      is_whole_ = is_whole_ && variant.is_usable == may_be_chosen;
      usable = usable || variant.is_usable;
    }
    if (!usable) continue;
    by_first_[candidate.inside.First()].push_back(c);
    AddWishes(c);
  }
  FindTransitionSlack();
  FindShares(left_out);
}

void SearchTables::AddWishes(size_t c) {
  const SearchCandidate& candidate = problem_.candidates[c];
  for (const Variant& variant : variants_[c]) {
    if (!variant.is_usable) continue;
    for (size_t i = 0; i < candidate.outputs.size(); ++i) made_[candidate.outputs[i]] |= LayoutBit(variant.output_layouts[i]);
  }
  for (size_t i = 0; i < candidate.inputs.size(); ++i) {
    LayoutMask wanted = 0;
    for (const Variant& variant : variants_[c]) {
      if (variant.is_usable) wanted |= LayoutBit(variant.input_layouts[i]);
    }
    const size_t t = candidate.inputs[i];
    all_wishes_[t] |= wanted;
    const auto [begin, end] = Within(consumers_[t], candidate.inside);
    for (auto consumer = begin; consumer != end; ++consumer) {
      if (candidate.inside.Contains(*consumer)) wishes_[t][static_cast<size_t>(consumer - consumers_[t].begin())] |= wanted;
    }
  }
}

void SearchTables::FindTransitionSlack() {
  const size_t backends = problem_.backend_count + 1;
  transition_slack_.assign(backends * backends, Cost());
  for (size_t a = 0; a < problem_.backend_count && !problem_.transition.empty(); ++a) {
    for (size_t b = 0; b < backends; ++b) {
      for (size_t to = 0; to < problem_.backend_count; ++to) {
        const Cost mine = problem_.transition[a][to];
        const Cost other = b == problem_.backend_count ? Cost() : problem_.transition[b][to];
        if (mine > other) transition_slack_[a * backends + b] = std::max(transition_slack_[a * backends + b], mine - other);
      }
    }
  }
}

/// Of all that may be chosen, with numbers for its layouts or without.
void SearchTables::FindShares(const VariantMask& left_out) {
  const Cost none = Cost::Invalid();
  share_.assign(problem_.node_count, none);
  for (size_t c = 0; c < problem_.candidates.size(); ++c) {
    const SearchCandidate& candidate = problem_.candidates[c];
    Cost cheapest = none;
    for (size_t v = 0; v < candidate.variants.size(); ++v) {
      if (!left_out[VariantAt(c, v)]) cheapest = std::min(cheapest, candidate.variants[v].cost);
    }
    if (!cheapest.IsKnown() || candidate.inside.Empty()) continue;
    const auto count = static_cast<int64_t>(candidate.inside.Count());
    // Rounded down: a bound must not exceed what it bounds.
    const Cost share = Cost::Seconds(std::max(0.0, cheapest.ToSeconds() / static_cast<double>(count) - 1e-12));
    candidate.inside.ForEach([&](size_t node) { share_[node] = std::min(share_[node], share); });
  }
  const auto uncovered = std::find_if(share_.begin(), share_.end(), [](Cost share) { return !share.IsKnown(); });
  first_uncovered_ = uncovered == share_.end() ? std::nullopt : std::optional<size_t>(uncovered - share_.begin());
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
  const size_t count = layouts_[tensor].size();
  std::vector<Cost>& table = conversions_[tensor];
  if (table.empty()) table.assign(count * count, Cost::Unknown());
  Cost& cost = table[from * count + to];
  if (cost.IsUnknown()) cost = problem_.conversion(tensor, layouts_[tensor][from], layouts_[tensor][to]);
  return cost;
}

Cost SearchTables::WorstConversion(size_t tensor, size_t to) const {
  Cost worst;
  for (unsigned made = made_[tensor]; made != 0; made &= made - 1)
    worst = std::max(worst, Conversion(tensor, static_cast<size_t>(__builtin_ctz(made)), to));
  return worst;
}

}  // namespace collage
