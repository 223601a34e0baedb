#pragma once

#include <unordered_map>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"

namespace collage {

/// All nodes in an order in which they can be evaluated: inputs first, and of the inputs of one node the deepest first. What is short then
/// stands right before its use, so that fewer values wait for theirs, and fewer candidates reach from what is done into what is not.
/// Where each layer of a chain adds to one sum, as in a WaveNet, the whole chain would come before the first addition so, and all its
/// values wait; in the order of the arguments each layer adds when it is done. That order is taken where values wait in less than half as
/// many sets. What `last` needs comes before all else. `also_before`: what else comes before a node, and does not need that node.
///
/// (Sethi and Ullman, "The generation of optimal code for arithmetic expressions", 1970, order the operands of trees by what waits.)
std::vector<PostDfsIndex> EvaluationOrder(const DataflowGraph& graph, PostDfsIndex last,
                                          const std::unordered_map<PostDfsIndex, std::vector<PostDfsIndex>>& also_before = {});

}  // namespace collage
