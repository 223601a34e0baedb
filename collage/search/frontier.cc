#include "collage/search/frontier.h"

#include <algorithm>
#include <tuple>

namespace collage {
namespace {

// States are compared with the cheapest few that were kept: those dominate nearly all that is dominated, and comparing all
// pairs would be quadratic.
constexpr size_t kMostCompared = 48;
// In the index.
constexpr uint32_t kEmpty = static_cast<uint32_t>(-1);

using TensorState = Frontier::TensorState;

/// One term of the hash of a state. Terms are added, so that one does not wait for the other.
uint64_t HashOfTensor(size_t position, TensorState state) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // the golden ratio, as in Knuth's multiplicative hashing
  const uint64_t word = (state.layouts | static_cast<uint64_t>(state.produced) << 32) + (position << 40);
  return (word * kMultiplier) ^ ((word * kMultiplier) >> 29);
}

/// What one state of an open tensor may cost beyond another, whatever follows.
Cost TensorSlack(const SearchTables& tables, size_t tensor, LayoutMask wanted, TensorState a, TensorState b) {
  if (a == b) return {};
  Cost slack;
  if (a.produced == Frontier::kUnproduced) {
    for (unsigned extra = a.layouts & ~b.layouts; extra != 0; extra &= extra - 1)
      slack += tables.WorstConversion(tensor, static_cast<size_t>(__builtin_ctz(extra)));
    return slack;
  }
  for (unsigned missing = wanted & ~a.layouts; missing != 0; missing &= missing - 1) {
    const auto layout = static_cast<size_t>(__builtin_ctz(missing));
    const Cost mine = tables.Conversion(tensor, a.produced, layout);
    const Cost other = (b.layouts & LayoutBit(layout)) ? Cost() : tables.Conversion(tensor, b.produced, layout);
    if (mine > other) slack += mine - other;
  }
  return slack;
}

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
  for (uint32_t a = 0; a < tables.problem().backend_count; ++a) {
    worst_transition = std::max(worst_transition, tables.TransitionSlack(a, SearchTables::kNobody));
    for (uint32_t b = 0; b < tables.problem().backend_count; ++b)
      worst_transition = std::max(worst_transition, tables.TransitionSlack(a, b));
  }
  spread_ += worst_transition;
  least_to_go_ = tables.LeastFrom(covered_.next) - tables.LeastOf(covered_.tail);
}

std::pair<Frontier::State*, bool> Frontier::FindOrAppend(const State& state, const TensorState* tensors) {
  const size_t begin = tensors_.size();
  const size_t count = open_.size();
  tensors_.resize(begin + count);
  TensorState* const row = tensors_.data() + begin;
  for (size_t i = 0; i < count; ++i) {
    row[i] = tensors[i];
    if (row[i].produced == kUnproduced) continue;
    row[i].layouts &= wanted_[i];
    if (row[i].layouts == wanted_[i]) row[i].produced = kAnywhere;
  }
  if (2 * (states_.size() + 1) > index_.size()) GrowIndex();
  size_t slot = Signature(state.last_backend, row) & (index_.size() - 1);
  for (; index_[slot] != kEmpty; slot = (slot + 1) & (index_.size() - 1)) {
    State& other = states_[index_[slot]];
    if (other.last_backend != state.last_backend || !std::equal(row, row + count, TensorsOf(other))) continue;
    tensors_.resize(begin);
    return {&other, false};
  }
  index_[slot] = static_cast<uint32_t>(states_.size());
  State& added = states_.emplace_back(state);
  added.id = index_[slot];
  return {&added, true};
}

void Frontier::GrowIndex() {
  constexpr size_t kLeast = 64;
  index_.assign(std::max(kLeast, 4 * index_.size()), kEmpty);
  for (const State& state : states_) {
    size_t slot = Signature(state.last_backend, TensorsOf(state)) & (index_.size() - 1);
    while (index_[slot] != kEmpty) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = state.id;
  }
}

inline uint64_t Frontier::Signature(uint32_t last_backend, const TensorState* tensors) const {
  uint64_t hash = last_backend;
  for (size_t i = 0; i < open_.size(); ++i) hash += HashOfTensor(i, tensors[i]);
  return hash ^ (hash >> 32);
}

/// Compares the states of one frontier. An open tensor is in few different states there, its kinds; what one may cost beyond another is
/// found once, when first asked for.
class Frontier::Comparison {
 public:
  explicit Comparison(const Frontier& frontier) : frontier_(frontier), open_count_(frontier.open_.size()), kinds_(open_count_) {
    row_.resize(frontier.tensors_.size());
    column_.resize(frontier.tensors_.size());
    size_t entries = 0;
    for (size_t position = 0; position < open_count_; ++position) {
      for (size_t i = position; i < column_.size(); i += open_count_) column_[i] = KindOf(position, frontier.tensors_[i]);
      const size_t count = kinds_[position].size();
      const bool is_remembered = count <= kMostRemembered;
      for (size_t i = position; i < row_.size(); i += open_count_)
        row_[i] = static_cast<uint32_t>(entries + (is_remembered ? column_[i] * count : 0));
      entries += is_remembered ? count * count : count;
    }
    slacks_.assign(entries, Cost::Unknown());
  }

  /// Whether whatever follows `b` can follow `a` as well at no more cost, or is then less preferred.
  bool Dominates(const State& a, const State& b) {
    Cost reachable = a.cost + frontier_.tables_.TransitionSlack(a.last_backend, b.last_backend);
    const uint32_t* row = row_.data() + a.id * open_count_;
    const uint32_t* column = column_.data() + b.id * open_count_;
    for (size_t position = 0; position < open_count_ && reachable <= b.cost; ++position) {
      const Cost slack = slacks_[row[position] + column[position]];
      reachable += slack.IsUnknown() ? FindSlack(position, a, b) : slack;
    }
    if (reachable != b.cost) return reachable < b.cost;
    // An exact tie falls to the declared preference. Equal costs: `a` comes before `b`, so it is preferred. Otherwise only the
    // partition count tells without looking at what follows.
    return a.cost == b.cost || a.partitions < b.partitions;
  }

 private:
  // A table of so many kinds by as many.
  static constexpr size_t kMostRemembered = 128;

  uint32_t KindOf(size_t position, TensorState state) {
    std::vector<TensorState>& kinds = kinds_[position];
    const auto kind = static_cast<uint32_t>(std::find(kinds.begin(), kinds.end(), state) - kinds.begin());
    if (kind == kinds.size()) kinds.push_back(state);
    return kind;
  }

  Cost FindSlack(size_t position, const State& a, const State& b) {
    const Cost slack = TensorSlack(frontier_.tables_, frontier_.open_[position], frontier_.wanted_[position],
                                   frontier_.TensorsOf(a)[position], frontier_.TensorsOf(b)[position]);
    if (kinds_[position].size() <= kMostRemembered)
      slacks_[row_[a.id * open_count_ + position] + column_[b.id * open_count_ + position]] = slack;
    return slack;
  }

  const Frontier& frontier_;
  size_t open_count_;
  std::vector<std::vector<TensorState>> kinds_;  // by position
  // By state and position: where the slacks of its kind begin, and which of the slacks of another kind is for its own.
  std::vector<uint32_t> row_;
  std::vector<uint32_t> column_;
  std::vector<Cost> slacks_;  // Unknown until asked for
};

bool Frontier::KeepMostPromising(std::vector<State>& states, size_t most, Cost& cut) {
  if (states.size() <= most) return false;
  const auto end = states.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(states.begin(), end, states.end(),
                   [](const State& a, const State& b) { return std::tie(a.least, a.cost, a.id) < std::tie(b.least, b.cost, b.id); });
  cut = std::min(cut, end->least);
  states.erase(end, states.end());
  return true;
}

std::vector<Frontier::State> Frontier::KeepUndominated(size_t most, Cost& cut) {
  Comparison comparison(*this);
  std::vector<State> kept;
  size_t last_dominator = 0;  // neighbours in price are often dominated by the same state
  for (const State& state : states_) {
    const size_t compared = std::min(kept.size(), kMostCompared);
    if (last_dominator < compared && comparison.Dominates(kept[last_dominator], state)) continue;
    size_t dominator = 0;
    while (dominator < compared && !comparison.Dominates(kept[dominator], state)) ++dominator;
    if (dominator < compared) {
      last_dominator = dominator;
      continue;
    }
    if (kept.size() == most) {
      cut = std::min(cut, state.cost);
      break;
    }
    kept.push_back(state);
  }
  return kept;
}

}  // namespace collage
