#include "collage/dataflow/tensor_source.h"

namespace collage {

size_t ValueCount(const Type& type) {
  const TupleType* tuple = type.AsTuple();
  if (!tuple) return 1;
  size_t count = 0;
  for (const Type& field : tuple->fields) count += ValueCount(field);
  return count;
}

std::vector<Type> FlattenValues(const Type& type) {
  const TupleType* tuple = type.AsTuple();
  if (!tuple) return {type};
  std::vector<Type> values;
  for (const Type& field : tuple->fields) {
    std::vector<Type> inner = FlattenValues(field);
    values.insert(values.end(), inner.begin(), inner.end());
  }
  return values;
}

TensorSource ResolveTensor(const DataflowGraph& graph, TensorSource tensor, const IndexSet* inside) {
  while (true) {
    const DataflowGraph::Node& node = graph[tensor.node];
    if (const Tuple* tuple = node.expr->As<Tuple>()) {
      size_t field = 0;
      size_t offset = tensor.field;
      for (size_t count; offset >= (count = ValueCount(tuple->fields[field]->type())); ++field) offset -= count;
      tensor = {graph.IndexOf(tuple->fields[field]), offset};
    } else if (const TupleGetItem* item = node.expr->As<TupleGetItem>()) {
      const std::vector<Type>& fields = item->tuple->type().AsTuple()->fields;
      for (size_t i = 0; i < item->index; ++i) tensor.field += ValueCount(fields[i]);
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
