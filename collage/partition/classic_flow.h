#pragma once

// The classic flow, stage by stage, greedy and without measuring:
//
//   FindComposites    which matches of a pattern table become one operator of a library
//   Annotate          what every backend could take; these sets may overlap
//   Deconflict        a disjoint choice: every call has exactly one target
//   MergeAssigned     largest regions per target without a cycle
//   PartitionRegions  every region a function
//
// What a backend supports is data beside the graph, not annotations in it: supported regions may overlap, and a graph full of
// begin and end markers would have to be cleaned up by whoever comes next. So all stages but the last speak of one graph.

#include <functional>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/dataflow/sub_graph.h"
#include "collage/ir/module.h"

namespace collage {

/// A backend as the flow sees it. The native backend, which supports everything, is always there and is not listed.
struct NamedRules {
  std::string name;
  const BackendRules* rules;
};

/// merge-composite: greedy, in table order, roots from the last to the first, larger matches of one root first. Matches are valid
/// sub-graphs of one exit that the rule's check accepts; they are disjoint and form no cycle. By first node; each carries "Composite".
std::vector<NestedSubGraph> FindComposites(const DataflowGraph& graph, const std::vector<PatternRule>& table);
/// The function with every composite as a call of a function literal.
/// before: nn.relu(nn.conv2d(%x, w))   after: fn (%v, Composite="library.conv2d_relu") { .. }(%x)
Result<Expr> MergeComposite(const Expr& function, const std::vector<PatternRule>& table);

/// What one backend could take, or takes, as a whole; `backend` is a position in the list of backends, or its length for native.
struct SupportedRegion {
  size_t backend = 0;
  IndexSet nodes;
  Attributes composite;  ///< the label of a match of a pattern
};

/// Of every backend: each match of a pattern, each call of an operator that its predicate accepts, each composite (a call in the
/// program, or one of `composites`) whose label begins with its name and a dot. Of native: every call, and every composite. What is
/// inside a composite is not asked for by itself. Backends in order, native last.
std::vector<SupportedRegion> Annotate(const DataflowGraph& graph, const std::vector<NamedRules>& backends,
                                      const std::vector<NestedSubGraph>& composites = {});

/// Which of several regions that share nodes wins. Default: backends in the order given, larger ones first, earlier ones first.
using PreferRegion = std::function<bool(const SupportedRegion& a, const SupportedRegion& b)>;
/// A disjoint choice, by first node: every call lies in exactly one region. One that would close a cycle by itself is left out.
/// What no backend was given is native, even where `supported` says nothing of native.
std::vector<SupportedRegion> Deconflict(const DataflowGraph& graph, std::vector<SupportedRegion> supported, size_t native,
                                        const PreferRegion& prefer = {});
/// The order that a list of priorities gives: backends that it does not name come behind those that it does, native last of all
/// unless it names it.
PreferRegion PreferInOrder(const std::vector<std::string>& priority, const std::vector<NamedRules>& backends);

/// A region of one backend, and the labelled matches inside.
struct BackendRegion {
  size_t backend = 0;
  IndexSet nodes;
  std::vector<NestedSubGraph> composites;
};
/// Largest regions per backend without a cycle (MergeRegions), by first node. Native regions are none: they are left in place for
/// operator fusion, and so cannot close a cycle.
std::vector<BackendRegion> MergeAssigned(const DataflowGraph& graph, const std::vector<SupportedRegion>& assigned, size_t native);

struct PartitionOptions {
  /// Constants that enter a region are copied into its function; otherwise they are arguments (scalars are always copied).
  bool bind_constants = true;
};
/// Regions of one function of a module.
struct FunctionRegions {
  std::string function;  ///< its name
  const DataflowGraph* graph;
  std::vector<BackendRegion> regions;
};
/// Every region becomes a call of a Primitive function with Compiler and a global_symbol that is unique in the module. Several
/// outputs are a tuple; what enters or leaves more than once does so once. Errors on regions that overlap or form a cycle.
Result<IRModule> PartitionRegions(const IRModule& module, const std::vector<FunctionRegions>& regions,
                                  const std::vector<std::string>& backends, const PartitionOptions& options = {});

/// Each backend's own pass over its own partitions, where it has one (BackendRules::on_partition). Errors name the backend and the
/// partition; a partition must keep its type.
Result<IRModule> RunPartitionPasses(const IRModule& module, const std::vector<NamedRules>& backends);

/// All stages for these backends, in order of priority, over every function of the module that is no kernel itself: merge-composite
/// with their tables, then the regions. For one backend this is partition_for_<backend>.
Result<IRModule> PartitionClassic(const IRModule& module, const std::vector<NamedRules>& backends, const PartitionOptions& options = {});

/// The names of the functions that the flow works on: all but those that are kernels ("Primitive") themselves.
std::vector<std::string> OrdinaryFunctions(const IRModule& module);

}  // namespace collage
