// Where a query may start in the middle of the classic flow.

#include <algorithm>

#include "collage/query/passes_json.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

bool IsStructural(const Expr& expr) { return expr->As<Tuple>() || expr->As<TupleGetItem>(); }

/// Whose all calls of a composite are; kNobody when they are not of one backend.
size_t OwnerOf(const DataflowGraph& graph, const IndexSet& members, const std::vector<size_t>& owner) {
  size_t common = kNobody;
  bool is_common = true;
  members.ForEach([&](PostDfsIndex node) {
    if (!graph[node].expr->As<Call>()) return;
    if (common == kNobody) common = owner[node];
    is_common = is_common && owner[node] == common;
  });
  return is_common ? common : kNobody;
}

/// Of a let's variable and its value, the value.
Result<IndexSet> MembersFrom(const NamedFunction& function, const JsonReader& list) {
  IndexSet members;
  for (const JsonReader& name : COLLAGE_TRY(list.Items())) members.Add(COLLAGE_TRY(function.Node(name)));
  if (members.Empty()) return list.Expected("the name of at least one expression");
  return members;
}

Result<BackendRegion> RegionFrom(const NamedFunction& function, const JsonReader& reader, const QueryBackends& backends) {
  COLLAGE_TRY_STATUS(reader.OnlyFields({"backend", "members", "composites", "function", "operators", "inputs", "outputs"}));
  const JsonReader backend = COLLAGE_TRY(reader.At("backend"));
  BackendRegion region;
  region.backend = COLLAGE_TRY(backends.PositionOf(COLLAGE_TRY(backend.String()), backend));
  region.nodes = COLLAGE_TRY(MembersFrom(function, COLLAGE_TRY(reader.At("members"))));
  if (!reader.Has("composites")) return region;
  for (const JsonReader& item : COLLAGE_TRY(COLLAGE_TRY(reader.At("composites")).Items())) {
    COLLAGE_TRY_STATUS(item.OnlyFields({"label", "members", "operators", "inputs", "output"}));
    const std::string label = COLLAGE_TRY(COLLAGE_TRY(item.At("label")).String());
    SubGraph members(function.graph(), COLLAGE_TRY(MembersFrom(function, COLLAGE_TRY(item.At("members")))));
    region.composites.push_back({std::move(members), {{"Composite", label}}});
  }
  return region;
}

}  // namespace

Result<const NamedFunction*> FunctionOfAssignment(const QueryProgram& program, const JsonReader& query) {
  const JsonReader assignment = COLLAGE_TRY(query.At("assignment"));
  Json all = Json::array();
  for (const auto& [backend, names] : COLLAGE_TRY(assignment.Fields())) {
    for (const JsonReader& name : COLLAGE_TRY(names.Items())) all.push_back(name.value());
  }
  return program.FunctionOf(query, JsonReader(all, assignment.place()));
}

Result<std::vector<SupportedRegion>> AssignmentFrom(const NamedFunction& function, const JsonReader& assignment,
                                                    const QueryBackends& backends, const std::vector<NestedSubGraph>& composites) {
  const DataflowGraph& graph = function.graph();
  std::vector<size_t> owner(graph.size(), kNobody);
  for (const auto& [backend, names] : COLLAGE_TRY(assignment.Fields())) {
    const size_t position = COLLAGE_TRY(backends.PositionOf(backend, names));
    for (const JsonReader& name : COLLAGE_TRY(names.Items())) {
      const PostDfsIndex node = COLLAGE_TRY(function.Node(name));
      const Expr& expr = graph[node].expr;
      // A constant goes with what uses it.
      if (IsStructural(expr) || expr->As<Constant>()) continue;
      if (!expr->As<Call>()) return name.Expected("a call: only calls are given to a backend");
      if (owner[node] != kNobody && owner[node] != position) {
        return name.Wrong(name.value().dump() + " is given to both \"" + backends.NameOf(owner[node]) + "\" and \"" + backend +
                          "\", expected one target for each node");
      }
      owner[node] = position;
    }
  }
  std::vector<SupportedRegion> assigned;
  for (const NestedSubGraph& composite : composites) {
    const IndexSet& members = composite.sub_graph.inside();
    const size_t whose = OwnerOf(graph, members, owner);
    if (whose == kNobody) continue;
    assigned.push_back({whose, members, composite.attributes});
    members.ForEach([&](PostDfsIndex node) { owner[node] = kNobody; });
  }
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (owner[node] != kNobody) assigned.push_back({owner[node], IndexSet({node}), {}});
  }
  return assigned;
}

Json RegionList(const JsonReader& regions) {
  if (!regions.IsObject()) return regions.value();
  Json list = Json::array();
  for (const auto& [backend, members] : regions.value().items()) {
    const bool is_several = members.is_array() && !members.empty() && members.front().is_array();
    for (const Json& one : is_several ? members : Json::array({members})) list.push_back({{"backend", backend}, {"members", one}});
  }
  return list;
}

Result<std::map<const NamedFunction*, std::vector<BackendRegion>>> RegionsFrom(const QueryProgram& program, const JsonReader& query,
                                                                               const QueryBackends& backends) {
  std::map<const NamedFunction*, std::vector<BackendRegion>> regions;
  const JsonReader field = COLLAGE_TRY(query.At("regions"));
  const Json list = RegionList(field);
  for (const JsonReader& item : COLLAGE_TRY(JsonReader(list, field.place()).Items())) {
    const JsonReader members = COLLAGE_TRY(item.At("members"));
    const NamedFunction& function = *COLLAGE_TRY(program.FunctionOf(item.Has("function") ? item : query, members));
    regions[&function].push_back(COLLAGE_TRY(RegionFrom(function, item, backends)));
  }
  return regions;
}

}  // namespace collage
