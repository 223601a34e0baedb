#include "collage/dataflow/tensor_source.h"

namespace collage {

TensorSource ResolveTensor(const DataflowGraph& graph, TensorSource tensor, const IndexSet* inside) {
  while (true) {
    const DataflowGraph::Node& node = graph[tensor.node];
    if (const Tuple* tuple = node.expr->As<Tuple>()) {
      const ValuePlace place = FindValue(*node.expr->type().AsTuple(), tensor.field);
      tensor = {graph.IndexOf(tuple->fields[place.field]), place.value};
    } else if (const TupleGetItem* item = node.expr->As<TupleGetItem>()) {
      tensor.field += FirstValue(*item->tuple->type().AsTuple(), item->index);
      tensor.node = graph.IndexOf(item->tuple);
    } else if (node.expr->As<Var>() && inside && inside->Contains(tensor.node) && !node.inputs.empty() &&
               inside->Contains(node.inputs.front())) {
      tensor.node = node.inputs.front();
    } else {
      return tensor;
    }
  }
}

std::vector<TensorSource> ResolveTensors(const DataflowGraph& graph, PostDfsIndex node, const IndexSet* inside) {
  std::vector<TensorSource> tensors(ValueCount(graph[node].expr->type()));
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = ResolveTensor(graph, {node, i}, inside);
  return tensors;
}

}  // namespace collage
