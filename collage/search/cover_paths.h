#pragma once

#include <vector>

#include "collage/search/cover_graph.h"
#include "collage/search/picoseconds.h"

namespace collage {

/// Shortest paths through a cover graph: each edge costs what its candidate is said to cost, and the transition from the backend that ran
/// last. Only candidates that may be used count, and covered sets that they can reach.
class CoverPaths {
 public:
  /// Both must outlive it.
  CoverPaths(const SearchProblem& problem, const CoverGraph& graph);

  /// Which candidates may be used from now on. Reads the transitions again.
  void Use(const std::vector<bool>& may_be_used);

  /// Covered sets that can be reached: positions of the graph, ascending.
  [[nodiscard]] const std::vector<uint32_t>& sets() const { return sets_; }
  [[nodiscard]] std::span<const CoverGraph::Edge> EdgesOf(size_t set) const { return {edges_.data() + first_edge_[set], edges_of_[set]}; }

  /// Finds what is still to pay after every covered set, for such a price of each candidate (kNever: none).
  void FindToGo(const std::vector<Picoseconds>& prices);
  /// The same after one of them, once those that it leads to are found.
  void FindToGoAfter(size_t set, const std::vector<Picoseconds>& prices);
  /// By the backend that ran last, the last entry for none.
  [[nodiscard]] const Picoseconds* ToGo(size_t set) const { return to_go_.data() + set * places_; }
  [[nodiscard]] size_t places() const { return places_; }
  [[nodiscard]] Picoseconds Least() const { return to_go_[places_ - 1]; }

  /// After FindToGo: the candidates of a shortest path.
  [[nodiscard]] std::vector<uint32_t> Path(const std::vector<Picoseconds>& prices) const;
  /// After FindToGo: for each candidate the price of the shortest path with it, less its own price.
  [[nodiscard]] std::vector<Picoseconds> AroundEach(const std::vector<Picoseconds>& prices);

 private:
  [[nodiscard]] Picoseconds Transition(size_t from, size_t to) const { return transition_[from * places_ + to]; }
  /// What costs more by its backend than this is never the least, whatever the transitions.
  [[nodiscard]] Picoseconds LeastWithWorst(const Picoseconds* by_backend, const std::vector<Picoseconds>& worst) const;

  const SearchProblem& problem_;
  const CoverGraph& graph_;
  size_t places_;                        // backends, and nobody
  std::vector<Picoseconds> transition_;  // [from][to]
  std::vector<Picoseconds> worst_to_;    // the dearest transition to each backend
  std::vector<Picoseconds> worst_from_;  // and from it
  std::vector<uint32_t> sets_;           // that can be reached
  std::vector<CoverGraph::Edge> edges_;  // of those, by candidates that may be used
  std::vector<uint32_t> first_edge_;     // by set
  std::vector<uint32_t> edges_of_;       // how many
  std::vector<uint32_t> place_of_;       // by candidate: its backend; `places_` for what stays with the host
  std::vector<Picoseconds> to_go_;       // by set and place
  std::vector<Picoseconds> from_start_;  // the same
  std::vector<Picoseconds> by_backend_;
};

}  // namespace collage
