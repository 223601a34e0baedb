#pragma once

#include "collage/dataflow/extraction.h"
#include "collage/dataflow/sub_graph.h"
#include "collage/query/program.h"

namespace collage {

/// What stands under a query's field, where a list of names may have "nested" and "attributes" of the sub-graph beside it: then both
/// as one object.
Json WithWhatStandsBeside(const JsonReader& below, const JsonReader& query);

/// {"inside": [names], "nested": [{"inside", "attributes", ..}], "attributes": {..}}; with attributes the whole becomes one function.
Result<SubGraph> SubGraphFrom(const NamedFunction& function, const JsonReader& reader);

/// What enters from outside, what function literals that are called inside see of it included.
Json InputsToJson(const NamedFunction& function, const SubGraph& sub_graph);
/// A name where the list has one, else the list: what an operator or a function gives.
Json OneOrAll(Json names);

/// What "nested" says of a sub-graph: a list of {"inside", "attributes"} and, where there is more inside, "nested".
Json NestedToJson(const NamedFunction& function, std::span<const NestedSubGraph> nested);

/// The backend whose function a sub-graph becomes: its "Compiler", else "native".
std::string BackendOf(const SubGraph& sub_graph);

/// A partition or region: backend, members, operators, inputs, outputs, composites.
Json PartitionToJson(const NamedFunction& function, const SubGraph& sub_graph);
/// The same as a function: parameters and results (how many tensors), parameter_values, result_values, bound_constants beside it.
Json FunctionToJson(const NamedFunction& function, const SubGraph& sub_graph, const ExtractedFunction& extracted);

/// Names of operators called inside, as often as they are called, in alphabetic order.
Json OperatorsToJson(const NamedFunction& function, const IndexSet& inside);
/// "composites" of a partition: label, members, operators, inputs and output of each labelled sub-graph.
Json CompositesToJson(const NamedFunction& function, std::span<const NestedSubGraph> nested);

}  // namespace collage
