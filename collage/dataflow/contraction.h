#pragma once

#include <cstddef>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"

namespace collage {

/// True when no cycle appears once each of these pairwise disjoint sets is contracted to one node. Linear in the stretch of
/// the graph between the smallest and the largest member. (One set alone: true exactly when it is convex.)
bool ContractionIsAcyclic(const DataflowGraph& graph, const std::vector<const IndexSet*>& sets);

/// A dataflow graph whose nodes are joined into groups while the graph of groups stays acyclic.
///
/// It keeps a topological order of the groups; a merge looks only at the stretch of the order between the groups concerned
/// and repairs the order there (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007).
/// Keeping for every group the set of groups it must not join, as the historical merging pass does, is quadratic in memory
/// and misses dependencies that a group acquires after its successors were looked at.
///
/// Sources (constants, parameters) cannot lie on a cycle while they are alone, so the order leaves them out until they are
/// merged: a region of thousands of layers would otherwise look through all its weights at each merge.
class ContractedGraph {
 public:
  explicit ContractedGraph(const DataflowGraph& graph);

  /// Number of the group that holds a node; changes when groups are merged.
  [[nodiscard]] size_t GroupOf(PostDfsIndex node) const;
  /// Joins the groups of these nodes into one unless that closes a cycle; true when they are one group now.
  bool TryMerge(const std::vector<PostDfsIndex>& nodes);
  /// Groups on paths that leave the groups of these nodes and come back: whoever joins the nodes must join these as well.
  [[nodiscard]] std::vector<size_t> Between(const std::vector<PostDfsIndex>& nodes);
  /// Members of a group, unordered.
  [[nodiscard]] const std::vector<PostDfsIndex>& Members(size_t group) const { return members_[group]; }

 private:
  [[nodiscard]] std::vector<size_t> GroupsOf(const std::vector<PostDfsIndex>& nodes) const;
  template <class Visitor>
  void ForEachNeighbour(size_t group, bool forward, Visitor&& visit);
  /// Groups reached from `merged` within the stretch; false when a path comes back into them.
  bool Reach(const std::vector<size_t>& merged, bool forward, size_t limit, std::vector<size_t>& reached);
  void Reorder(const std::vector<size_t>& before, const std::vector<size_t>& merged, const std::vector<size_t>& after);
  void Join(const std::vector<size_t>& merged);
  /// From now on the order holds for what these nodes feed, where they are sources.
  void BindSources(const std::vector<PostDfsIndex>& nodes);

  mutable std::vector<size_t> parent_;
  std::vector<size_t> position_;
  std::vector<std::vector<PostDfsIndex>> members_;
  /// Neighbours by node, those inside the group pruned when met.
  std::vector<std::vector<PostDfsIndex>> inputs_;
  std::vector<std::vector<PostDfsIndex>> outputs_;
  std::vector<bool> is_free_source_;
};

}  // namespace collage
