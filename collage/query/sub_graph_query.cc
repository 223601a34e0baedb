#include "collage/query/queries.h"
#include "collage/query/rule_json.h"
#include "collage/query/sub_graph_json.h"

namespace collage {

Result<Json> AnswerSubGraph(const QueryProgram& program, const JsonReader& query) {
  // The fields stand below "subgraph", or beside it.
  const JsonReader below = COLLAGE_TRY(query.At("subgraph"));
  if (below.IsObject()) {
    COLLAGE_TRY_STATUS(query.OnlyFields({"subgraph", "config", "function"}));
    COLLAGE_TRY_STATUS(below.OnlyFields({"inside", "nested", "attributes", "config"}));
  } else {
    COLLAGE_TRY_STATUS(query.OnlyFields({"subgraph", "inside", "nested", "attributes", "config", "function"}));
  }
  const Json own_fields = WithWhatStandsBeside(below, query);
  const JsonReader fields = below.IsObject() || below.IsList() ? JsonReader(own_fields, below.place()) : query;
  const JsonReader names = fields.IsList() ? fields : COLLAGE_TRY(fields.At("inside"));
  const NamedFunction& function = *COLLAGE_TRY(program.FunctionOf(query, names));
  const SubGraph sub_graph = COLLAGE_TRY(SubGraphFrom(function, fields));
  const SubGraphConfig config = COLLAGE_TRY(OptionalConfig(fields.Has("config") ? fields : query));
  const DataflowGraph& graph = function.graph();
  Json violates = Json::array();
  for (const Violation violation : sub_graph.Violations(graph, config)) violates.push_back(Name(violation));
  const bool valid = violates.empty();
  Json answer = {{"valid", valid},
                 {"violates", std::move(violates)},
                 {"entry", function.NamesOf(sub_graph.entry())},
                 {"exit", function.NamesOf(sub_graph.exit())},
                 {"input", InputsToJson(function, sub_graph)},
                 {"output", function.NamesOf(sub_graph.output())},
                 {"depth", sub_graph.depth()},
                 {"kind", Name(sub_graph.kind())}};
  if (valid) {
    const ExtractedFunction extracted = COLLAGE_TRY(ExtractFunction(graph, sub_graph));
    answer["extracted"] = FunctionToJson(function, sub_graph, extracted);
    answer["left_outside"] = function.CallsOutside(sub_graph.inside());
  }
  return function.Tagged(std::move(answer));
}

}  // namespace collage
