#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "collage/search/covered.h"
#include "collage/search/search.h"

namespace collage {

/// A set of layouts of one tensor, by their numbers among those that this tensor may be given or wanted in; bit 0 is plain.
using LayoutMask = uint32_t;
inline LayoutMask LayoutBit(size_t layout) { return LayoutMask{1} << layout; }

/// A search problem indexed the way in which it is walked: which candidates start at a node, which tensors a node touches, who
/// may still want a tensor in which layout.
class SearchTables {
 public:
  /// Marks variants, by VariantAt.
  using VariantMask = std::vector<bool>;
  [[nodiscard]] size_t VariantAt(size_t candidate, size_t variant) const { return first_variant_[candidate] + variant; }
  [[nodiscard]] size_t variant_count() const { return first_variant_.back(); }

  /// The problem must outlive the tables; `forbidden` marks candidates to leave out, by position.
  SearchTables(const SearchProblem& problem, const std::vector<bool>& forbidden);
  /// Reads the problem's prices again, leaving out what is marked. What is not priced cannot be chosen.
  void Reprice(const VariantMask& left_out);
  /// Asks again for the prices of conversions that were asked for before. By how much they have fallen, all together; Invalid where one had
  /// no price and has one now.
  Cost RefreshConversions();

  [[nodiscard]] const SearchProblem& problem() const { return problem_; }
  /// Layouts are numbered tensor by tensor, so their number in the whole problem does not matter: of one tensor, few are ever made or
  /// wanted. A variant that needs more than a tensor's first kMostLayouts cannot be chosen; then IsWhole is false.
  static constexpr size_t kMostLayouts = 32;
  [[nodiscard]] bool IsWhole() const { return is_whole_; }
  /// The layouts of one tensor, as the problem numbers them.
  [[nodiscard]] const std::vector<size_t>& LayoutsOf(size_t tensor) const { return layouts_[tensor]; }
  /// A variant with its layouts numbered tensor by tensor.
  struct Variant {
    bool has_numbers = true;
    bool is_usable = false;  ///< its price is known, its layouts have numbers, and it is not left out
    std::vector<uint8_t> input_layouts;
    std::vector<uint8_t> output_layouts;
  };
  [[nodiscard]] const std::vector<Variant>& VariantsOf(size_t candidate) const { return variants_[candidate]; }

  /// Candidates with a usable variant whose first node is this one.
  [[nodiscard]] const std::vector<size_t>& StartingAt(size_t node) const { return by_first_[node]; }
  [[nodiscard]] const std::vector<size_t>& ProducedBy(size_t node) const { return produced_by_[node]; }
  [[nodiscard]] const std::vector<size_t>& ConsumedBy(size_t node) const { return consumed_by_[node]; }
  /// Nodes that may read the tensor, ascending.
  [[nodiscard]] const std::vector<size_t>& ConsumersOf(size_t tensor) const { return consumers_[tensor]; }
  /// Layouts in which the i-th of these may want it.
  [[nodiscard]] LayoutMask WishOf(size_t tensor, size_t i) const { return wishes_[tensor][i]; }

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

  /// The first node that nothing which may be chosen holds; nothing where all are held.
  [[nodiscard]] std::optional<size_t> FirstUncovered() const { return first_uncovered_; }
  /// A lower bound of what covering all nodes from this one on costs: each node's share of the cheapest candidate over it.
  [[nodiscard]] Cost LeastFrom(size_t node) const { return least_from_[node]; }
  /// The same of a set of nodes.
  [[nodiscard]] Cost LeastOf(const IndexSet& nodes) const;

 private:
  void AddReaders();
  void NumberLayouts();
  void AddWishes(size_t candidate);
  void FindTransitionSlack();
  void FindShares(const VariantMask& left_out);

  const SearchProblem& problem_;
  bool is_whole_ = true;
  std::vector<std::vector<size_t>> layouts_;    // by tensor; plain first
  std::vector<std::vector<Variant>> variants_;  // by candidate
  std::vector<size_t> first_variant_;           // by candidate, and an end
  std::vector<std::vector<size_t>> by_first_;
  std::vector<std::vector<size_t>> consumers_;   // by tensor, ascending
  std::vector<std::vector<LayoutMask>> wishes_;  // of each consumer
  std::vector<LayoutMask> all_wishes_;
  std::vector<LayoutMask> made_;
  std::vector<std::vector<size_t>> produced_by_;
  std::vector<std::vector<size_t>> consumed_by_;
  mutable std::vector<std::vector<Cost>> conversions_;  // by tensor, filled when first asked
  std::vector<Cost> transition_slack_;
  std::optional<size_t> first_uncovered_;
  std::vector<Cost> share_;
  std::vector<Cost> least_from_;
};

}  // namespace collage
