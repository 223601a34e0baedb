#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collage/search/covered.h"
#include "collage/search/search.h"

namespace collage {

/// A set of layouts; bit 0 is plain.
using LayoutMask = uint16_t;
inline LayoutMask LayoutBit(size_t layout) { return static_cast<LayoutMask>(1u << layout); }

/// A search problem indexed the way in which it is walked: which candidates start at a node, which tensors a node touches, who
/// may still want a tensor in which layout.
class SearchTables {
 public:
  /// Both must outlive the tables; `forbidden` marks candidates to leave out, by position.
  SearchTables(const SearchProblem& problem, const std::vector<bool>& forbidden);

  [[nodiscard]] const SearchProblem& problem() const { return problem_; }
  /// Candidates with a known price whose first node is this one.
  [[nodiscard]] const std::vector<size_t>& StartingAt(size_t node) const { return by_first_[node]; }
  [[nodiscard]] const std::vector<size_t>& ProducedBy(size_t node) const { return produced_by_[node]; }
  [[nodiscard]] const std::vector<size_t>& ConsumedBy(size_t node) const { return consumed_by_[node]; }

  /// True when somebody outside of the covered set reads what it has, or the other way round.
  [[nodiscard]] bool IsOpen(size_t tensor, const Covered& covered) const;
  [[nodiscard]] bool IsProduced(size_t tensor, const Covered& covered) const;
  /// Layouts in which nodes that are not covered may want the tensor. May say too many where it HasManyConsumers.
  [[nodiscard]] LayoutMask StillWanted(size_t tensor, const Covered& covered) const;

  /// Zero for equal layouts.
  [[nodiscard]] Cost Conversion(size_t tensor, size_t from, size_t to) const;
  [[nodiscard]] bool HasManyConsumers(size_t tensor) const { return consumers_[tensor].size() > 32; }
  /// Calls `visit(consumer, layouts)` for the consumers from `begin` on and before `end`, with the layouts in which they may want it.
  template <class Visit>
  void ForEachWish(size_t tensor, size_t begin, size_t end, const Visit& visit) const {
    const std::vector<size_t>& consumers = consumers_[tensor];
    for (auto at = std::lower_bound(consumers.begin(), consumers.end(), begin); at != consumers.end() && *at < end; ++at)
      visit(*at, wishes_[tensor][static_cast<size_t>(at - consumers.begin())]);
  }
  /// Layouts in which the tensor may be given; plain is always among them.
  [[nodiscard]] LayoutMask MadeIn(size_t tensor) const { return made_[tensor]; }
  [[nodiscard]] LayoutMask AllWishes(size_t tensor) const { return all_wishes_[tensor]; }
  /// The dearest way into a layout from one in which the tensor may be given. Conversions may have to be measured, so none is asked
  /// for that no cover can need.
  [[nodiscard]] Cost WorstConversion(size_t tensor, size_t to) const;
  /// What having run `a` last instead of `b` can cost in addition; kNobody for nothing run yet.
  [[nodiscard]] Cost TransitionSlack(uint32_t a, uint32_t b) const {
    if (a == kNobody || a == b) return {};
    const size_t backends = problem_.backend_count;
    return transition_slack_[a * (backends + 1) + (b == kNobody ? backends : b)];
  }
  static constexpr uint32_t kNobody = static_cast<uint32_t>(-1);

  /// A lower bound of what covering all nodes from this one on costs: each node's share of the cheapest candidate over it.
  [[nodiscard]] Cost LeastFrom(size_t node) const { return least_from_[node]; }
  /// The same of a set of nodes.
  [[nodiscard]] Cost LeastOf(const IndexSet& nodes) const;

 private:
  void AddCandidates(const std::vector<bool>& forbidden);
  void AddWishes(size_t candidate);
  void FindShares();

  const SearchProblem& problem_;
  std::vector<std::vector<size_t>> by_first_;
  std::vector<std::vector<size_t>> consumers_;   // by tensor, ascending
  std::vector<std::vector<LayoutMask>> wishes_;  // of each consumer
  std::vector<LayoutMask> all_wishes_;
  std::vector<LayoutMask> made_;
  std::vector<std::vector<size_t>> produced_by_;
  std::vector<std::vector<size_t>> consumed_by_;
  mutable std::vector<std::vector<Cost>> conversions_;  // by tensor, filled when first asked
  std::vector<Cost> transition_slack_;
  std::vector<Cost> share_;
  std::vector<Cost> least_from_;
};

}  // namespace collage
