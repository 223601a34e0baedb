#include <nlohmann/json.hpp>

#include "collage/partition/cover.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

using json = nlohmann::ordered_json;  // attributes keep their order

/// Tells programs apart by their operators and edges; weights do not matter to a plan.
std::string Fingerprint(const DataflowGraph& graph) {
  uint64_t hash = HashCombine(0, graph.size());
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    const OpDef* op = graph[node].op;
    hash = HashCombine(hash, HashBytes(op ? op->name : "value"));
    hash = HashCombine(hash, HashBytes(ToString(graph[node].expr->type())));
    for (const PostDfsIndex input : graph[node].inputs) hash = HashCombine(hash, input);
  }
  return std::to_string(hash);
}

json ToJson(const Attributes& attributes) {
  json object = json::object();
  for (const auto& [name, value] : attributes.entries()) {
    if (value.AsString()) object[name] = *value.AsString();
    if (value.AsInt()) object[name] = *value.AsInt();
    if (value.AsBool()) object[name] = *value.AsBool();
    if (value.AsDouble()) object[name] = *value.AsDouble();
  }
  return object;
}

Attributes AttributesFrom(const json& object) {
  Attributes attributes;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) attributes.Set(name, value.get<std::string>());
    if (value.is_boolean()) attributes.Set(name, value.get<bool>());
    if (value.is_number_integer()) attributes.Set(name, value.get<int64_t>());
    if (value.is_number_float()) attributes.Set(name, value.get<double>());
  }
  return attributes;
}

json ToJson(const SubGraph& sub_graph) {
  json nested = json::array();
  for (const NestedSubGraph& one : sub_graph.nested()) {
    nested.push_back(ToJson(one.sub_graph));
    nested.back()["attributes"] = ToJson(one.attributes);
  }
  return {{"inside", sub_graph.inside().ToVector()}, {"nested", std::move(nested)}};
}

Result<SubGraph> SubGraphFrom(const DataflowGraph& graph, const json& object) {
  IndexSet inside;
  for (const json& node : object.at("inside")) {
    if (node.get<int64_t>() < 0 || node.get<size_t>() >= graph.size()) return Fail("node " + node.dump() + " is not in the program");
    inside.Add(node.get<size_t>());
  }
  if (inside.Empty()) return Fail("a partition has no inside nodes");
  std::vector<NestedSubGraph> nested;
  for (const json& one : object.at("nested")) {
    SubGraph inner = COLLAGE_TRY(SubGraphFrom(graph, one));
    nested.push_back({std::move(inner), AttributesFrom(one.at("attributes"))});
  }
  return SubGraph(graph, std::move(inside), std::move(nested));
}

Result<Cover> CoverFrom(const DataflowGraph& graph, const json& plan) {
  if (plan.at("format") != "collage-plan-1") return Fail("has format " + plan.at("format").dump() + ", expected \"collage-plan-1\"");
  if (plan.at("program") != Fingerprint(graph)) return Fail("was made for another program");
  Cover cover;
  for (const json& entry : plan.at("partitions")) {
    PartitionSpec spec;
    spec.name = entry.at("backend").get<std::string>();
    spec.targets = {COLLAGE_TRY(Target::Parse(entry.at("target").get<std::string>()))};
    SubGraph sub_graph = COLLAGE_TRY(SubGraphFrom(graph, entry));
    cover.push_back(
        {{std::move(sub_graph), std::make_shared<const PartitionSpec>(std::move(spec))}, AttributesFrom(entry.at("attributes"))});
  }
  return cover;
}

}  // namespace

std::string SavePlan(const DataflowGraph& graph, const Cover& cover) {
  json partitions = json::array();
  for (const ChosenPartition& chosen : cover) {
    if (chosen.candidate.sub_graph.nested().empty()) continue;  // stays with the host
    json entry = ToJson(chosen.candidate.sub_graph);
    entry["backend"] = chosen.candidate.spec->name;
    entry["target"] = chosen.candidate.spec->targets.at(0).ToString();
    entry["attributes"] = ToJson(chosen.attributes);
    partitions.push_back(std::move(entry));
  }
  return json{{"format", "collage-plan-1"}, {"program", Fingerprint(graph)}, {"partitions", std::move(partitions)}}.dump(1);
}

Result<Cover> LoadPlan(const DataflowGraph& graph, const std::string& text) {
  // The library reports a missing or ill-typed entry by an exception, which must not leave this function.
  try {
    Result<Cover> cover = CoverFrom(graph, json::parse(text));
    return cover ? std::move(cover) : Fail(cover.error().At("plan"));
  } catch (const json::exception& error) {
    return Fail(std::string("plan: ") + error.what());
  }
}

}  // namespace collage
