#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "collage/search/cover_paths.h"
#include "collage/search/frontier.h"
#include "collage/search/tensor_side.h"

namespace collage {

/// A lower bound of covers, and of how partial covers can be completed, by Lagrangian decomposition: candidates agree with tensors about
/// layouts through prices instead of exactly. A candidate that reads a tensor in a layout pays a promise to the tensor; the tensor makes
/// conversions from what it is promised (TensorSide), and what is left is charged to whoever produces it. The covers are then shortest
/// paths in a graph without layouts. Whatever the promises, the shortest path is a lower bound; good promises make it a tight one, and
/// they stay good while prices change a little.
///
/// (Fisher, "The Lagrangian relaxation method for solving integer programming problems", 1981; the tensors are facility location
/// problems.)
class Relaxation {
 public:
  /// Both must outlive it.
  Relaxation(const SearchTables& tables, const CoverGraph& graph);

  /// To be called after the tables were repriced.
  void Reprice();
  /// Begins with the best of the promises there are: those at hand, those remembered and, where no bound by them comes near the price of a
  /// cover that is known, promises chosen anew, going backwards: each layout's promise is what wanting it saves its reader beside the
  /// dearest. `see` is told of the first two after each was evaluated. True where none had to be chosen anew.
  bool Start(Cost known = Cost::Invalid(), const std::function<void()>& see = {});
  /// Keeps the present promises for later starts: those that fit all that may be used change less than those of a part of it.
  void Remember() { remembered_ = promises_; }
  /// The lower bound under the tables' present prices; Invalid where there is no cover.
  Cost Evaluate();
  struct Target {
    Cost known;   ///< the price of the best cover known, which no bound exceeds
    Cost enough;  ///< the bound at which steps end
  };
  /// Improves promises by at most so many steps; the best are kept and evaluated. `visit` sees the cover of each step and answers what is
  /// aimed at. No cover costs less than `at_least`.
  Cost Improve(size_t most_steps, Cost at_least, const std::function<Target(const std::vector<SearchChoice>& path)>& visit);

  /// After FindLeastWith, which needs Evaluate: the least that a cover with this variant costs.
  [[nodiscard]] Cost LeastWith(size_t candidate, size_t variant) const { return ToCost(with_[tables_.VariantAt(candidate, variant)]); }
  void FindLeastWith();

  /// After Evaluate: the least that is still to pay after a covered set when `backend` ran last (kNobody: none), promises to tensors that
  /// are open included.
  [[nodiscard]] Picoseconds ToGo(size_t set, uint32_t backend) const {
    return paths_.ToGo(set)[backend == SearchTables::kNobody ? paths_.places() - 1 : backend];
  }
  /// The same whatever ran last.
  [[nodiscard]] Picoseconds LeastToGo(size_t set) const { return *std::min_element(paths_.ToGo(set), paths_.ToGo(set) + paths_.places()); }
  /// What may be used after a covered set.
  [[nodiscard]] std::span<const CoverGraph::Edge> EdgesOf(size_t set) const { return paths_.EdgesOf(set); }
  /// What the consumers of a tensor outside of a covered set promise.
  [[nodiscard]] TensorSide SideOf(size_t tensor, const Covered& covered) const;
  /// The least that consumers inside of a covered set have promised to a tensor that is not made yet, where these layouts are demanded.
  [[nodiscard]] Picoseconds PromisedBefore(size_t tensor, const Covered& covered, LayoutMask demanded) const;

 private:
  struct Read {
    uint32_t input;
    uint32_t tensor;
    uint32_t consumer;  ///< position among the tensor's consumers
  };
  struct Make {
    uint32_t group;
    int32_t output;  ///< -1: plain for want of a word
  };
  /// A tensor with the consumers that are not inside of whoever makes it.
  struct Group {
    uint32_t tensor;
    TensorSide side;
    std::vector<uint32_t> consumers;  ///< their positions
    LayoutMask made = 0;              ///< layouts in which some variant that may be used makes it
    size_t first_charge;              ///< among the terms; by layout in which it is made
  };
  /// A variant that may be used: it costs its own price and its terms, promises to what it reads and charges for what it makes.
  struct Priced {
    uint32_t variant;
    uint32_t first_term;
    Picoseconds own;
  };

  void AddTerms(size_t candidate);
  void Choose();
  uint32_t GroupOf(size_t tensor, std::vector<uint32_t> consumers);
  [[nodiscard]] std::vector<TensorSide::Consumer> Consumers(size_t tensor, const std::vector<uint32_t>& positions) const;
  [[nodiscard]] TensorSide SideOf(const Group& group) const;
  void ChargeGroup(Group& group);
  void PriceCandidate(size_t candidate);
  void AddPriced(size_t candidate);
  void PromiseAt(size_t node, std::span<const uint32_t> sets);
  [[nodiscard]] std::vector<SearchChoice> Path() const;
  /// Where readers and tensors disagree: the direction in which promises must change.
  void FindDirection(const std::vector<SearchChoice>& path, std::vector<double>& direction) const;
  static size_t LayoutOf(const Make& make, const SearchTables::Variant& variant) {
    return make.output < 0 ? 0 : variant.output_layouts[static_cast<size_t>(make.output)];
  }
  [[nodiscard]] size_t PlaceOf(size_t tensor, size_t consumer) const {
    return first_promise_[tensor] + consumer * tables_.LayoutsOf(tensor).size();
  }

  const SearchTables& tables_;
  const CoverGraph& graph_;
  CoverPaths paths_;
  std::vector<size_t> first_promise_;
  std::vector<Picoseconds> promises_;
  std::vector<Picoseconds> remembered_;
  std::vector<Picoseconds> charges_;
  std::vector<std::vector<bool>> may_skip_;  // by tensor and consumer
  std::vector<Group> groups_;
  std::map<std::pair<size_t, std::vector<uint32_t>>, uint32_t> group_of_;  // position + 1
  std::vector<uint32_t> outside_groups_;
  std::vector<std::vector<Read>> reads_;
  std::vector<std::vector<Make>> makes_;
  // Of what may be used, flat, for it is walked at every step.
  std::vector<uint32_t> used_groups_;
  std::vector<uint32_t> used_candidates_;
  std::vector<uint32_t> first_priced_;  // by candidate, and an end
  std::vector<Priced> priced_;          // and an end
  std::vector<uint32_t> terms_;         // promises; charges behind them
  std::vector<Picoseconds> price_;      // of variants, with promises and charges
  std::vector<Picoseconds> cheapest_;   // of candidates
  std::vector<uint32_t> cheapest_variant_;
  std::vector<Picoseconds> with_;
  Picoseconds constant_ = 0;
  double level_ = 0;  // by how much the next step is meant to raise the bound
};

}  // namespace collage
