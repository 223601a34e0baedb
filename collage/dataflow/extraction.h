#pragma once

// Two ideas are kept apart: extracting a sub-graph as a function of its own (to price it), and rewriting the function that it
// lies in (only for the winners, all at once).

#include <vector>

#include "collage/dataflow/sub_graph.h"
#include "collage/dataflow/tensor_source.h"
#include "collage/support/result.h"

namespace collage {

struct ExtractionOptions {
  /// Constants that enter are copied inside, whether or not they are in the inside set: backends pack their weights. When
  /// false they become parameters unless they are inside; scalars, operators and function literals are always copied.
  bool bind_constants = true;
};

/// A sub-graph as a function of tensors: tuple parameters are split into their fields, each tensor enters once; one result is
/// bare, several are a tuple.
struct ExtractedFunction {
  Expr function;
  /// For each parameter, the tensor of the graph that it stands for.
  std::vector<TensorSource> inputs;
  /// For each result. Only tensors that something outside uses, each once.
  std::vector<TensorSource> outputs;
};

/// `before:` %1 = nn.conv2d(%x, c); %2 = nn.relu(%1); %3 = add(%2, %y), with {%1, %2} inside, nested as Composite="conv_relu"
/// `after:`  fn (%FunctionVar_0) { fn (%FunctionVar_0, Composite="conv_relu") { nn.relu(nn.conv2d(..)) }(%FunctionVar_0) }
/// Where one nested sub-graph is the whole inside, the function is that one, with its attributes. Errors name what makes an
/// invalid sub-graph impossible to extract.
Result<ExtractedFunction> ExtractFunction(const DataflowGraph& graph, const SubGraph& sub_graph, const ExtractionOptions& options = {});

/// The function of the graph with every given nested sub-graph replaced by a call of a function literal that carries its
/// attributes; the rest stays as it is. Errors on sub-graphs that overlap or depend on each other in a cycle.
Result<Expr> RewriteFunction(const DataflowGraph& graph, std::span<const NestedSubGraph> partitions, const ExtractionOptions& options = {});

/// The tensors that a sub-graph must give: those of its exits that something outside uses, resolved, each once, in order.
std::vector<TensorSource> OutputTensors(const DataflowGraph& graph, const SubGraph& sub_graph);

}  // namespace collage
