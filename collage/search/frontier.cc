#include "collage/search/frontier.h"

#include <algorithm>
#include <unordered_set>

namespace collage {
namespace {

// States are compared with the cheapest few that were kept: those dominate nearly all that is dominated, and comparing all
// pairs would be quadratic.
constexpr size_t kMostCompared = 48;

}  // namespace

Frontier::Frontier(const SearchTables& tables, Covered covered, std::vector<size_t> open)
    : tables_(tables), covered_(std::move(covered)), open_(std::move(open)) {
  for (const size_t tensor : open_) {
    wanted_.push_back(tables.StillWanted(tensor, covered_));
    const bool is_produced = tables.IsProduced(tensor, covered_);
    // Before a tensor is made, what was demanded is paid when it is; all that may ever be demanded counts.
    for (unsigned layouts = is_produced ? wanted_.back() : tables.AllWishes(tensor); layouts != 0; layouts &= layouts - 1)
      spread_ += tables.WorstConversion(tensor, static_cast<size_t>(__builtin_ctz(layouts)));
  }
  Cost worst_transition;
  for (size_t a = 0; a < tables.problem().backend_count; ++a) {
    worst_transition = std::max(worst_transition, tables.TransitionSlack(a, SearchTables::kNobody));
    for (size_t b = 0; b < tables.problem().backend_count; ++b) worst_transition = std::max(worst_transition, tables.TransitionSlack(a, b));
  }
  spread_ += worst_transition;
  least_to_go_ = tables.LeastFrom(covered_.next) - tables.LeastOf(covered_.tail);
}

Frontier::TensorState Frontier::Canonical(size_t position, TensorState state) const {
  if (state.produced == kUnproduced) return state;
  state.layouts &= wanted_[position];
  if (state.layouts == wanted_[position]) state.produced = kAnywhere;
  return state;
}

void Frontier::Add(State state, const TensorState* tensors) {
  state.id = states_.size();
  cheapest_ = std::min(cheapest_, state.cost);
  states_.push_back(state);
  for (size_t i = 0; i < open_.size(); ++i) tensors_.push_back(Canonical(i, tensors[i]));
}

Cost Frontier::TensorSlack(size_t position, TensorState a, TensorState b) const {
  if (a == b) return {};
  const size_t tensor = open_[position];
  Cost slack;
  if (a.produced == kUnproduced) {
    for (unsigned extra = a.layouts & ~b.layouts; extra != 0; extra &= extra - 1)
      slack += tables_.WorstConversion(tensor, static_cast<size_t>(__builtin_ctz(extra)));
    return slack;
  }
  for (unsigned missing = wanted_[position] & ~a.layouts; missing != 0; missing &= missing - 1) {
    const auto layout = static_cast<size_t>(__builtin_ctz(missing));
    const Cost mine = tables_.Conversion(tensor, a.produced, layout);
    const Cost other = (b.layouts & LayoutBit(layout)) ? Cost() : tables_.Conversion(tensor, b.produced, layout);
    if (mine > other) slack += mine - other;
  }
  return slack;
}

bool Frontier::Dominates(const State& a, const State& b) const {
  Cost reachable = a.cost + tables_.TransitionSlack(a.last_backend, b.last_backend);
  const TensorState* x = TensorsOf(a);
  const TensorState* y = TensorsOf(b);
  for (size_t i = 0; i < open_.size() && reachable <= b.cost; ++i) reachable += TensorSlack(i, x[i], y[i]);
  if (reachable != b.cost) return reachable < b.cost;
  // An exact tie falls to the declared preference. Equal costs: `a` comes before `b`, so it is preferred. Otherwise only the
  // partition count tells without looking at what follows.
  return a.cost == b.cost || a.partitions < b.partitions;
}

uint64_t Frontier::Signature(const State& state) const {
  uint64_t hash = state.last_backend;
  const TensorState* tensors = TensorsOf(state);
  for (size_t i = 0; i < open_.size(); ++i) hash = HashCombine(hash, tensors[i].layouts | static_cast<uint64_t>(tensors[i].produced) << 16);
  return hash;
}

std::vector<Frontier::State> Frontier::KeepUndominated(size_t most, Cost& cut) {
  std::vector<State> kept;
  const auto hash = [&](size_t i) { return Signature(kept[i]); };
  const auto equal = [&](size_t i, size_t j) {
    return kept[i].last_backend == kept[j].last_backend &&
           std::equal(TensorsOf(kept[i]), TensorsOf(kept[i]) + open_.size(), TensorsOf(kept[j]));
  };
  std::unordered_set<size_t, decltype(hash), decltype(equal)> signatures(0, hash, equal);
  for (const State& state : states_) {
    const size_t compared = std::min(kept.size(), kMostCompared);
    if (std::any_of(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(compared),
                    [&](const State& other) { return Dominates(other, state); }))
      continue;
    if (kept.size() == most) {
      cut = std::min(cut, state.cost);
      break;
    }
    kept.push_back(state);
    if (kept.size() > kMostCompared && !signatures.insert(kept.size() - 1).second) kept.pop_back();
    if (kept.size() == kMostCompared) {
      for (size_t i = 0; i < kept.size(); ++i) signatures.insert(i);
    }
  }
  return kept;
}

}  // namespace collage
