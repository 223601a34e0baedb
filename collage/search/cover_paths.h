#pragma once

#include <algorithm>
#include <vector>

#include "collage/search/cover_graph.h"
#include "collage/search/picoseconds.h"
#include "collage/search/price_rows.h"

namespace collage {

/// Shortest paths through a cover graph: each edge costs what its candidate is said to cost, and the transition from the backend that ran
/// last. Only candidates that may be used count, and covered sets that they can reach.
///
/// Candidates of the same nodes lead from a covered set to the same one, so they are one step there. What a step costs is a row of prices,
/// the cheapest of each backend, and so is what is to pay behind it: rows are added and compared as vectors.
class CoverPaths {
 public:
  /// Both must outlive it.
  CoverPaths(const SearchProblem& problem, const CoverGraph& graph);

  /// Which candidates may be used from now on. Reads the transitions again.
  void Use(const std::vector<bool>& may_be_used);

  /// Covered sets that can be reached: positions of the graph, ascending.
  [[nodiscard]] const std::vector<uint32_t>& sets() const { return sets_; }
  [[nodiscard]] std::span<const CoverGraph::Edge> EdgesOf(size_t set) const { return {edges_.data() + first_edge_[set], edges_of_[set]}; }

  /// Takes the prices of these candidates (kNever: none), which must be all of their nodes that may be used.
  template <class Candidates>
  void TakePrices(const Candidates& candidates, const std::vector<Picoseconds>& prices) {
    for (const size_t c : candidates) price_[price_at_[c]] = kNever;
    for (const size_t c : candidates) price_[price_at_[c]] = std::min(price_[price_at_[c]], prices[c]);
  }
  /// Finds what is still to pay after every covered set at the prices that were taken.
  void FindToGo();
  /// The same after one of them, once those that it leads to are found.
  void FindToGoAfter(size_t set);
  /// By the backend that ran last; the entry at places() - 1 for none.
  [[nodiscard]] const Picoseconds* ToGo(size_t set) const { return to_go_.data() + set * stride_; }
  [[nodiscard]] size_t places() const { return places_; }
  [[nodiscard]] Picoseconds Least() const { return to_go_[places_ - 1]; }

  /// After FindToGo: the candidates of a shortest path.
  [[nodiscard]] std::vector<uint32_t> Path(const std::vector<Picoseconds>& prices) const;
  /// After FindToGo: for each candidate the price of the shortest path with it, less its own price.
  [[nodiscard]] std::vector<Picoseconds> AroundEach();

 private:
  [[nodiscard]] PriceRows Rows() const { return {stride_, places_ - 1, price_.data(), transition_to_.data(), transition_from_.data()}; }
  [[nodiscard]] std::span<const PriceStep> StepsOf(size_t set) const { return {steps_.data() + first_step_[set], steps_of_[set]}; }
  /// Of a row of prices, for what stays with the host.
  [[nodiscard]] Picoseconds HostPrice(size_t row) const { return price_[row * stride_ + places_ - 1]; }

  const SearchProblem& problem_;
  const CoverGraph& graph_;
  size_t places_;  // backends, and none
  size_t stride_;  // of a row by place
  PriceRowLoops loops_;
  std::vector<Picoseconds> transition_to_;    // [to][from]
  std::vector<Picoseconds> transition_from_;  // [from][to]
  std::vector<uint32_t> sets_;                // that can be reached
  std::vector<CoverGraph::Edge> edges_;       // of those, by candidates that may be used
  std::vector<uint32_t> first_edge_;          // by set
  std::vector<uint32_t> edges_of_;            // how many
  std::vector<PriceStep> steps_;              // of those edges
  std::vector<uint32_t> first_step_;          // by set
  std::vector<uint32_t> steps_of_;            // how many
  std::vector<uint32_t> place_of_;            // by candidate: its backend; none's for what stays with the host
  std::vector<size_t> price_at_;              // by candidate
  std::vector<Picoseconds> price_;            // the least by nodes and place
  bool has_host_ = false;                     // among those that may be used
  std::vector<Picoseconds> to_go_;            // by set and place
  std::vector<Picoseconds> from_start_;       // the same
  std::vector<Picoseconds> around_;           // by nodes and place
};

}  // namespace collage
