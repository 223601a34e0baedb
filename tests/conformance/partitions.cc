#include "tests/conformance/partitions.h"

#include <stdexcept>

#include "collage/dataflow/extraction.h"
#include "tests/conformance/find_sub_graphs.h"
#include "tests/conformance/reference.h"

namespace collage::conformance {
namespace {

Partition Extract(const DataflowGraph& graph, const SubGraph& sub_graph) {
  auto extracted = ExtractFunction(graph, sub_graph.WithAttributes(graph, {{"Primitive", 1}}));
  if (!extracted) throw std::runtime_error(extracted.error().message);
  Partition partition{sub_graph.Label(graph) + " " + sub_graph.inside().ToString(), extracted->function, {}};
  for (const TensorSource& source : extracted->inputs) partition.arguments.push_back({graph[source.node].expr, source.field});
  return partition;
}

}  // namespace

Partitions PartitionsOf(const Program& program, const Backend& backend, const Device& device) {
  const DataflowGraph graph(program.function);
  const BackendRules rules = backend.Rules();
  FoundSubGraphs found;
  if (rules.style == BackendRules::Style::kPattern) {
    found = FindMatches(graph, rules);
  } else if (rules.style == BackendRules::Style::kPredicate) {
    // A graph compiler must run any region of what it supports.
    found = FindRegions(graph, rules, [](const SubGraph&) { return true; });
  } else {
    // A code generator chooses what it fuses.
    found = FindRegions(graph, rules, [&](const SubGraph& sub_graph) {
      return !backend.Variants(*Extract(graph, sub_graph).function->As<Function>(), device).empty();
    });
  }
  Partitions partitions{{}, found.reason};
  for (const SubGraph& sub_graph : found.sub_graphs) partitions.taken.push_back(Extract(graph, sub_graph));
  return partitions;
}

Sample MakeSample(const Program& program, const Partition& partition, uint64_t seed) {
  const ReferenceRun whole(program.Get(), program.RandomInputs(seed));
  Sample sample;
  for (const TensorOf& argument : partition.arguments) sample.inputs.push_back(whole.Of(argument.expr).at(argument.field));
  sample.expected = ReferenceRun(*partition.function->As<Function>(), sample.inputs).Results();
  return sample;
}

}  // namespace collage::conformance
