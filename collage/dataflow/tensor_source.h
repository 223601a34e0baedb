#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"

namespace collage {

/// One tensor of a program: field `field` of the flattened value of a node.
struct TensorSource {
  PostDfsIndex node = DataflowGraph::kNone;
  size_t field = 0;

  friend auto operator<=>(const TensorSource&, const TensorSource&) = default;
};

/// The call, parameter, variable or constant that defines a tensor: looks through tuples and projections. With `inside`, also
/// through a variable that a let binds when variable and value are both inside.
TensorSource ResolveTensor(const DataflowGraph& graph, TensorSource tensor, const IndexSet* inside = nullptr);
/// All tensors of a node, resolved.
std::vector<TensorSource> ResolveTensors(const DataflowGraph& graph, PostDfsIndex node, const IndexSet* inside = nullptr);

}  // namespace collage
