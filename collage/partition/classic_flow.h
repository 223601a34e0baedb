#pragma once

// The classic flow, stage by stage, greedy and without measuring. What a backend supports is data beside the graph, not
// annotations in it: supported regions may overlap, and a graph full of begin and end markers would have to be cleaned up by
// whoever comes next.

#include <functional>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/candidate/regions.h"
#include "collage/partition/cover.h"

namespace collage {

/// Greedy and in table order, roots from the last to the first: every valid match becomes a call of a Composite function.
/// before: nn.relu(nn.conv2d(%x, w))   after: fn (%v, Composite="library.conv2d_relu") { .. }(%x)
Result<Expr> MergeComposite(const Expr& function, const std::vector<PatternRule>& table);

struct NamedRules {
  std::string name;
  const BackendRules* rules;
};
/// What one backend could take as a whole; `backend` is a position in the list given to Annotate.
struct SupportedRegion {
  size_t backend = 0;
  IndexSet nodes;
  Attributes composite;  ///< the label of a match of a pattern
};
/// Every operator that a predicate accepts, every match of a pattern, and every composite whose label begins with a backend's name.
std::vector<SupportedRegion> Annotate(const DataflowGraph& graph, const std::vector<NamedRules>& backends);

/// Which of several regions that share nodes wins; default: backends in the order given, larger ones first, earlier ones first.
using PreferRegion = std::function<bool(const SupportedRegion& a, const SupportedRegion& b)>;
/// A disjoint choice: every node in at most one region; nodes in none are native.
std::vector<SupportedRegion> Deconflict(const DataflowGraph& graph, std::vector<SupportedRegion> supported,
                                        const PreferRegion& prefer = {});

/// Largest regions per backend without a cycle (MergeRegions), labelled matches inside as composites; as a plan.
Cover MergeSupported(const DataflowGraph& graph, const std::vector<SupportedRegion>& assigned, const std::vector<NamedRules>& backends);

/// All stages for these backends, in order of priority.
Result<IRModule> PartitionClassic(const IRModule& module, const std::vector<NamedRules>& backends);

}  // namespace collage
