#pragma once

#include <functional>
#include <map>
#include <vector>

#include "collage/search/cover_graph.h"
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
  /// Chooses promises anew, going backwards: each layout's promise is what wanting it saves its reader beside the dearest. Those from
  /// before stay where they give the better bound.
  void Start();
  /// The lower bound under the tables' present prices; Invalid where there is no cover.
  Cost Evaluate();
  /// Improves promises by at most so many steps, ending where the bound reaches its target; the best are kept and evaluated. `visit` sees
  /// the cover of each step and answers the target, the price of the best cover known. No cover costs less than `at_least`.
  Cost Improve(size_t most_steps, Cost at_least, const std::function<Cost(const std::vector<SearchChoice>& path)>& visit);

  /// After FindLeastWith, which needs Evaluate: the least that a cover with this variant costs.
  [[nodiscard]] Cost LeastWith(size_t candidate, size_t variant) const { return ToCost(with_[first_variant_[candidate] + variant]); }
  void FindLeastWith();

  /// After Evaluate: the least that is still to pay after a covered set when `backend` ran last (kNobody: none), promises to tensors that
  /// are open included.
  [[nodiscard]] Picoseconds ToGo(size_t set, uint32_t backend) const {
    return to_go_[set * places_ + (backend == SearchTables::kNobody ? places_ - 1 : backend)];
  }
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
    std::vector<Picoseconds> charge;  ///< by layout in which it is made
  };

  void AddTerms(size_t candidate);
  void Choose();
  uint32_t GroupOf(size_t tensor, std::vector<uint32_t> consumers);
  [[nodiscard]] std::vector<TensorSide::Consumer> Consumers(size_t tensor, const std::vector<uint32_t>& positions) const;
  [[nodiscard]] TensorSide SideOf(const Group& group) const;
  void ChargeGroup(Group& group);
  void PriceCandidate(size_t candidate);
  void PriceSet(size_t set);
  void PromiseAt(size_t node, size_t begin, size_t end);
  [[nodiscard]] std::vector<SearchChoice> Path() const;
  /// Where readers and tensors disagree: the direction in which promises must change.
  void FindDirection(const std::vector<SearchChoice>& path, std::vector<double>& direction) const;
  [[nodiscard]] size_t PlaceOf(size_t tensor, size_t consumer) const {
    return first_promise_[tensor] + consumer * tables_.LayoutsOf(tensor).size();
  }
  [[nodiscard]] Picoseconds Transition(size_t from, size_t to) const;

  const SearchTables& tables_;
  const CoverGraph& graph_;
  size_t places_;  // backends, and nobody
  std::vector<size_t> first_promise_;
  std::vector<Picoseconds> promises_;
  std::vector<std::vector<bool>> may_skip_;  // by tensor and consumer
  std::vector<Group> groups_;
  std::map<std::pair<size_t, std::vector<uint32_t>>, uint32_t> group_of_;  // position + 1
  std::vector<uint32_t> outside_groups_;
  std::vector<std::vector<Read>> reads_;
  std::vector<std::vector<Make>> makes_;
  std::vector<size_t> first_variant_;
  std::vector<Picoseconds> price_;     // of variants, with promises and charges
  std::vector<Picoseconds> cheapest_;  // of candidates
  std::vector<uint32_t> cheapest_variant_;
  std::vector<Picoseconds> to_go_;  // by covered set and backend that ran last
  std::vector<Picoseconds> from_start_;
  std::vector<Picoseconds> with_;
  std::vector<Picoseconds> scratch_;
  Picoseconds constant_ = 0;
  double level_ = 0;  // by how much the next step is meant to raise the bound
};

}  // namespace collage
