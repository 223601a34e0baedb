#pragma once

#include <vector>

#include "collage/dataflow/sub_graph.h"
#include "collage/ir/module.h"

namespace collage {

struct FuseOptions {
  /// As in Relay: 0 gives every operator a group of its own, 1 and above fuse.
  int level = 1;
  /// Operators of a group; fewer where a device limits the arguments of a kernel.
  size_t max_operators = 256;
  /// Constants that enter a group are copied into its function; otherwise they are arguments (scalars are always copied).
  bool bind_constants = false;
};

/// The groups of operator fusion, disjoint, by first node (FusionGroups of candidate/regions.h). Opaque operators, and calls of
/// functions, are in none. A group's kind is its anchor's, or that of its last node.
std::vector<IndexSet> FindFusionGroups(const DataflowGraph& graph, const FuseOptions& options = {});

/// The groups among the operators for which `may_fuse` holds; the others stay as they are.
std::vector<IndexSet> FindFusionGroups(const DataflowGraph& graph, const std::vector<bool>& may_fuse, const FuseOptions& options);

/// Every group as a call of a Primitive function without Compiler. Its constants come in as arguments, as in Relay, so that kernels
/// of one shape are equal functions; `bind_constants` copies them in.
/// before: nn.relu(nn.bias_add(nn.conv2d(%x, w), b))   after: fn (%v0, %v1, %v2, Primitive=1) { .. }(%x, w, b)
/// Kernels, Primitive and Composite functions, are left alone. Runs over all other functions of the module, through let, if and
/// function literals; no group crosses a basic block or a let.
Result<IRModule> FuseOperators(const IRModule& module, const FuseOptions& options = {});

}  // namespace collage
