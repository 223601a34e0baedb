#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "collage/candidate/rules.h"
#include "collage/dataflow/dataflow_graph.h"

namespace collage {

/// What ReleaseConstantsRule makes of one sub-graph: constants are in no candidate, since several may want to copy one. Nothing where all
/// is constant.
std::optional<SubGraph> WithoutConstants(const DataflowGraph& graph, SubGraph sub_graph);

/// A set of nodes and who owns it.
struct Region {
  size_t owner = 0;
  IndexSet nodes;

  friend bool operator==(const Region&, const Region&) = default;
};

/// Joins touching parts of one owner and one basic block, earliest first, as far as no cycle appears among all regions: no path
/// that leaves a region comes back to it, not through other regions either. With `take_tuples`, tuples and projections whose
/// neighbours all end up in one region belong to it; the others are in none. Parts must be disjoint; one that is not convex by
/// itself is left out. Ascending by first node.
std::vector<Region> MergeRegions(const DataflowGraph& graph, const std::vector<Region>& parts, bool take_tuples);

/// Pieces of a region: see RegionCutsRule. The region itself comes first.
std::vector<IndexSet> CutRegion(const DataflowGraph& graph, const IndexSet& region, const RegionCutLimits& limits);

/// The groups of operator fusion by kind, as Relay's fusion pass makes them: every operator looks at the node through which all
/// its uses go (its dominator), and is fused with all that lies between when the kinds allow. `accepted` tells which calls may
/// be in a group.
std::vector<IndexSet> FusionGroups(const DataflowGraph& graph, const std::vector<bool>& accepted, size_t max_operators);
/// Beside them those that are made where out-elementwise-fusable operators (convolutions, matmuls) stay in groups of their own. In order,
/// each once.
std::vector<IndexSet> FusionGroupsWithAndWithoutAnchors(const DataflowGraph& graph, const std::vector<bool>& accepted,
                                                        size_t max_operators);

}  // namespace collage
