#include "collage/query/sub_graph_json.h"

#include <algorithm>

#include "collage/ir/visit.h"

namespace collage {
namespace {

void CollectComposites(const NamedFunction& function, std::span<const NestedSubGraph> nested, Json& composites) {
  for (const NestedSubGraph& one : nested) {
    const AttributeValue* label = one.attributes.Find("Composite");
    if (!label || !label->AsString()) {
      CollectComposites(function, one.sub_graph.nested(), composites);
      continue;
    }
    composites.push_back({{"label", *label->AsString()},
                          {"members", function.NamesOf(one.sub_graph.inside())},
                          {"operators", OperatorsToJson(function, one.sub_graph.inside())},
                          {"inputs", InputsToJson(function, one.sub_graph)},
                          {"output", OneOrAll(function.NamesOf(one.sub_graph.exit()))}});
  }
}

Json BoundConstants(const NamedFunction& function, const Expr& extracted) {
  IndexSet constants;
  PostOrder(extracted, [&](const Expr& expr) {
    const PostDfsIndex node = expr->As<Constant>() ? function.graph().Find(expr) : DataflowGraph::kNone;
    if (node != DataflowGraph::kNone) constants.Add(node);
  });
  return function.NamesOf(constants);
}

}  // namespace

Json InputsToJson(const NamedFunction& function, const SubGraph& sub_graph) {
  const DataflowGraph& graph = function.graph();
  const IndexSet& inside = sub_graph.inside();
  IndexSet inputs(std::vector<size_t>(sub_graph.input().begin(), sub_graph.input().end()));
  const auto add_captured = [&](PostDfsIndex literal) {
    if (!graph[literal].Is<Function>() || literal + 1 == graph.size() || IsAtomicFunction(graph[literal].expr)) return;
    const size_t body = graph.BodyBlock(literal);
    for (PostDfsIndex node = 0; node < literal; ++node) {
      if (!graph.BlockEncloses(body, graph[node].block)) continue;
      for (const PostDfsIndex input : graph[node].inputs) {
        const bool is_outside = !graph.BlockEncloses(body, graph[input].block) && !inside.Contains(input);
        if (is_outside && !graph[input].inlined) inputs.Add(input);
      }
    }
  };
  inside.ForEach([&](PostDfsIndex node) {
    add_captured(node);
    for (const PostDfsIndex input : graph[node].inputs) add_captured(input);
  });
  return function.NamesOf(inputs);
}

Json OneOrAll(Json names) { return names.size() == 1 ? std::move(names.front()) : std::move(names); }

Json WithWhatStandsBeside(const JsonReader& below, const JsonReader& query) {
  if (!below.IsList() || (!query.Has("nested") && !query.Has("attributes"))) return below.value();
  Json fields = {{"inside", below.value()}};
  for (const char* field : {"nested", "attributes"}) {
    if (query.Has(field)) fields[field] = query.value()[field];
  }
  return fields;
}

Result<SubGraph> SubGraphFrom(const NamedFunction& function, const JsonReader& reader) {
  const JsonReader names = reader.IsList() ? reader : COLLAGE_TRY(reader.At("inside"));
  IndexSet inside = COLLAGE_TRY(function.Nodes(names));
  if (inside.Empty()) return names.Expected("the name of at least one expression");
  std::vector<NestedSubGraph> nested;
  if (reader.Has("nested") && !reader.value()["nested"].is_null()) {
    for (const JsonReader& item : COLLAGE_TRY(COLLAGE_TRY(reader.At("nested")).Items())) {
      COLLAGE_TRY_STATUS(item.OnlyFields({"inside", "nested", "attributes"}));
      const JsonReader inner_names = COLLAGE_TRY(item.At("inside"));
      IndexSet inner = COLLAGE_TRY(function.Nodes(inner_names));
      if (inner.Empty()) return inner_names.Expected("the name of at least one expression");
      Attributes attributes;
      if (item.Has("attributes")) attributes = COLLAGE_TRY(AttributesFrom(COLLAGE_TRY(item.At("attributes"))));
      SubGraph sub_graph(function.graph(), std::move(inner));
      if (item.Has("nested")) {
        // Read as a sub-graph without attributes of its own: those belong to the function around it.
        Json flat = item.value();
        flat.erase("attributes");
        sub_graph = COLLAGE_TRY(SubGraphFrom(function, JsonReader(flat, item.place())));
      }
      nested.push_back({std::move(sub_graph), std::move(attributes)});
    }
  }
  SubGraph sub_graph(function.graph(), std::move(inside), std::move(nested));
  if (!reader.Has("attributes") || reader.value()["attributes"].empty()) return sub_graph;
  return sub_graph.WithAttributes(function.graph(), COLLAGE_TRY(AttributesFrom(COLLAGE_TRY(reader.At("attributes")))));
}

Json NestedToJson(const NamedFunction& function, std::span<const NestedSubGraph> nested) {
  Json list = Json::array();
  for (const NestedSubGraph& one : nested) {
    Json entry = {{"inside", function.NamesOf(one.sub_graph.inside())}, {"attributes", ToJson(one.attributes)}};
    if (!one.sub_graph.nested().empty()) entry["nested"] = NestedToJson(function, one.sub_graph.nested());
    list.push_back(std::move(entry));
  }
  return list;
}

std::string BackendOf(const SubGraph& sub_graph) {
  for (const NestedSubGraph& nested : sub_graph.nested()) {
    const AttributeValue* compiler = nested.attributes.Find("Compiler");
    if (compiler && compiler->AsString() && nested.sub_graph.inside() == sub_graph.inside()) return *compiler->AsString();
  }
  return "native";
}

Json OperatorsToJson(const NamedFunction& function, const IndexSet& inside) {
  std::vector<std::string> names;
  inside.ForEach([&](PostDfsIndex node) {
    if (const OpDef* op = CalledOp(function.graph()[node].expr)) names.push_back(op->name);
  });
  std::sort(names.begin(), names.end());
  return names;
}

Json CompositesToJson(const NamedFunction& function, std::span<const NestedSubGraph> nested) {
  Json composites = Json::array();
  CollectComposites(function, nested, composites);
  return composites;
}

Json PartitionToJson(const NamedFunction& function, const SubGraph& sub_graph) {
  return {{"backend", BackendOf(sub_graph)},
          {"members", function.NamesOf(sub_graph.inside())},
          {"operators", OperatorsToJson(function, sub_graph.inside())},
          {"inputs", InputsToJson(function, sub_graph)},
          {"outputs", function.NamesOf(sub_graph.exit())},
          {"composites", CompositesToJson(function, sub_graph.nested())}};
}

Json FunctionToJson(const NamedFunction& function, const SubGraph& sub_graph, const ExtractedFunction& extracted) {
  Json partition = PartitionToJson(function, sub_graph);
  partition["parameters"] = extracted.inputs.size();
  partition["results"] = extracted.outputs.size();
  partition["parameter_values"] = function.NamesOf(extracted.inputs, sub_graph.inside(), false);
  partition["result_values"] = function.NamesOf(extracted.outputs, sub_graph.inside(), true);
  partition["bound_constants"] = BoundConstants(function, extracted.function);
  return partition;
}

}  // namespace collage
