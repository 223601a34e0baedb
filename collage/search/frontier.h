#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collage/search/tables.h"

namespace collage {

/// A partial cover that was kept; the path to it is a chain of parents.
struct PathNode {
  Cost cost;
  uint32_t parent;
  uint32_t candidate;
  uint32_t variant;
  uint32_t partitions;
  uint32_t set = 0;  ///< numbers the covered sets; 0: not known
};

/// All partial covers of one covered set. They differ in the layouts of the tensors that are open (read on both sides) and in
/// the backend that ran last; which tensors are open follows from the covered set.
class Frontier {
 public:
  /// What is known of one open tensor in one state: the layouts in which it exists (or is demanded, before it is produced) and
  /// the one in which its producer gives it.
  struct TensorState {
    LayoutMask layouts = 0;
    uint16_t produced = kUnproduced;
    friend bool operator==(const TensorState&, const TensorState&) = default;
  };
  static constexpr uint16_t kUnproduced = SearchTables::kMostLayouts;
  static constexpr uint16_t kAnywhere =
      kUnproduced + 1;  ///< exists in all layouts that are still wanted: where it came from does not matter

  struct State {
    Cost cost;
    uint32_t parent;
    uint32_t candidate;
    uint32_t variant;
    uint32_t partitions;
    uint32_t last_backend;
    uint32_t id;          ///< position among the states as they came; its tensors are at id * open().size()
    Cost least = Cost();  ///< of covers that begin with it, where KeepWithin found it
  };

  /// `open` ascending.
  Frontier(const SearchTables& tables, Covered covered, std::vector<size_t> open);

  [[nodiscard]] const Covered& covered() const { return covered_; }
  [[nodiscard]] const std::vector<size_t>& open() const { return open_; }
  [[nodiscard]] const TensorState* TensorsOf(const State& state) const { return tensors_.data() + state.id * open_.size(); }
  [[nodiscard]] Cost least_to_go() const { return least_to_go_; }
  [[nodiscard]] Cost cheapest() const { return cheapest_; }

  /// False when a state of this cost is so much dearer than another that whatever follows cannot make up for it.
  [[nodiscard]] bool MayMatter(Cost cost) const { return states_.empty() || cost <= cheapest_ + spread_; }
  /// Adds a state; `tensors` has one entry for each open tensor. Of states that differ in nothing but the way to them only the best by
  /// `precedes` is kept.
  template <class Precedes>
  void Add(State state, const TensorState* tensors, const Precedes& precedes) {
    cheapest_ = std::min(cheapest_, state.cost);
    const auto [alike, is_new] = FindOrAppend(state, tensors);
    state.id = alike->id;
    if (!is_new && precedes(state, *alike)) *alike = state;
  }
  /// Drops the states with which a cover costs more than `cutoff`, by what `least_of` says of each. No more than `most` are kept, those
  /// with the lowest bounds; the lowest of those that fell to this limit is left in `cut` where it is smaller.
  template <class LeastOf>
  void KeepWithin(Cost cutoff, size_t most, Cost& cut, const LeastOf& least_of) {
    std::erase_if(states_, [&](State& state) {
      state.least = least_of(state);
      return state.least > cutoff;
    });
    KeepMostPromising(states_, most, cut);
  }
  /// The states that no other dominates, best first by `precedes`. No more than `most` are kept; the cost of the cheapest that
  /// fell to this limit is left in `cut` where it is smaller.
  template <class Precedes>
  std::vector<State> TakeBest(const Precedes& precedes, size_t most, Cost& cut) {
    std::sort(states_.begin(), states_.end(), precedes);
    return KeepUndominated(most, cut);
  }
  /// The same after KeepWithin, but what the limit leaves are those with the lowest bounds.
  template <class Precedes>
  std::vector<State> TakeMostPromising(const Precedes& precedes, size_t most, Cost& cut) {
    Cost none = Cost::Invalid();
    std::vector<State> kept = TakeBest(precedes, states_.size(), none);
    if (KeepMostPromising(kept, most, cut)) std::sort(kept.begin(), kept.end(), precedes);
    return kept;
  }

 private:
  class Comparison;
  /// True where some were too many.
  static bool KeepMostPromising(std::vector<State>& states, size_t most, Cost& cut);
  std::vector<State> KeepUndominated(size_t most, Cost& cut);
  /// The state that has these tensors and ran the same backend last, and whether it is this one.
  std::pair<State*, bool> FindOrAppend(const State& state, const TensorState* tensors);
  void GrowIndex();
  [[nodiscard]] uint64_t Signature(uint32_t last_backend, const TensorState* tensors) const;

  const SearchTables& tables_;
  Covered covered_;
  std::vector<size_t> open_;
  std::vector<LayoutMask> wanted_;
  Cost least_to_go_;
  Cost spread_;
  Cost cheapest_ = Cost::Invalid();
  std::vector<State> states_;
  std::vector<TensorState> tensors_;
  std::vector<uint32_t> index_;  // states by signature, open addressing; a power of two
};

}  // namespace collage
