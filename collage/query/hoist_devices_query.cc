#include <algorithm>

#include "collage/ir/print.h"
#include "collage/ir/verify.h"
#include "collage/op/table.h"
#include "collage/partition/hoist_devices.h"
#include "collage/query/device_json.h"
#include "collage/query/queries.h"
#include "collage/query/sub_graph_json.h"

namespace collage {
namespace {

Result<VirtualDeviceField> FieldFrom(const JsonReader& reader) {
  for (const VirtualDeviceField field : HoistOptions().by) {
    if (reader.IsText(Name(field))) return field;
  }
  return reader.Expected("device_type, virtual_device_id, target or memory_scope");
}

/// What no device is could keep nothing.
Result<VirtualDevice> KeptFrom(const JsonReader& reader, const DeviceConfiguration& configuration) {
  VirtualDevice keep = COLLAGE_TRY(VirtualDeviceFrom(reader));
  const std::vector<const ListedDevice*> fitting = configuration.Fitting(keep);
  const bool is_there =
      std::any_of(fitting.begin(), fitting.end(), [&](const ListedDevice* device) { return !keep.target || device->Has(*keep.target); });
  if (!is_there) return reader.Wrong("\"" + keep.ToString() + "\" is none of the devices");
  return keep;
}

Result<HoistOptions> OptionsFrom(const JsonReader& asked, const DeviceConfiguration& configuration) {
  COLLAGE_TRY_STATUS(asked.OnlyFields({"by", "keep"}));
  HoistOptions options;
  if (asked.Has("by")) {
    options.by.clear();
    for (const JsonReader& item : COLLAGE_TRY(asked.At("by")).ItemsOrSelf()) options.by.push_back(COLLAGE_TRY(FieldFrom(item)));
  }
  if (!asked.Has("keep")) {
    options.keep = {configuration.host()};
    return options;
  }
  for (const JsonReader& item : COLLAGE_TRY(asked.At("keep")).ItemsOrSelf())
    options.keep.push_back(COLLAGE_TRY(KeptFrom(item, configuration)));
  return options;
}

Json DevicesToJson(const std::vector<VirtualDevice>& devices) {
  if (devices.size() == 1) return devices.front().ToString();
  Json list = Json::array();
  for (const VirtualDevice& device : devices) list.push_back(device.ToString());
  return list;
}

Json RegionToJson(const NamedFunction& function, const PlannedProgram& planned, const DeviceRegion& region) {
  const DataflowGraph& graph = function.graph();
  IndexSet members = region.nodes;
  region.nodes.ForEach([&](PostDfsIndex node) {
    if (planned.inserted_copies.contains(graph[node].expr.get())) members.Remove(node);
  });
  const Json partition = PartitionToJson(function, SubGraph(graph, region.nodes));
  Json operators = Json::array();
  for (const Json& name : partition["operators"]) {
    if (name != "on_device") operators.push_back(name);
  }
  return function.Tagged({{"device", DevicesToJson(region.devices)},
                          {"members", function.NamesOf(members)},
                          {"operators", std::move(operators)},
                          {"inputs", partition["inputs"]},
                          {"outputs", partition["outputs"]}});
}

Json LeftInPlace(const NamedFunction& function, const PlannedProgram& planned, const std::vector<DeviceRegion>& regions) {
  IndexSet taken;
  for (const DeviceRegion& region : regions) taken |= region.nodes;
  std::vector<PostDfsIndex> left;
  for (PostDfsIndex node = 0; node < function.graph().size(); ++node) {
    const Expr& expr = function.graph()[node].expr;
    if (expr->As<Call>() && !taken.Contains(node) && !planned.inserted_copies.contains(expr.get())) left.push_back(node);
  }
  return function.NamesOf(std::span<const PostDfsIndex>(left));
}

}  // namespace

Result<Json> AnswerHoistDevices(const QueryProgram& program, const JsonReader& query) {
  const DeviceConfiguration configuration = COLLAGE_TRY(DevicesFrom(COLLAGE_TRY(query.At("devices"))));
  const HoistOptions options = COLLAGE_TRY(OptionsFrom(COLLAGE_TRY(query.At("hoist-devices")), configuration));
  const DevicePlan plan = COLLAGE_TRY(DevicePlan::Create(program.module(), configuration));
  const PlanNames names(program, plan);
  if (!plan.errors().empty()) return ErrorsToJson(plan, names);
  const PlannedProgram planned = COLLAGE_TRY(ApplyDevicePlan(plan, Operators()));
  Json functions = Json::array();
  Json left = Json::array();
  std::vector<const DataflowGraph*> graphs;
  std::vector<std::vector<DeviceRegion>> regions;
  const std::vector<std::unique_ptr<NamedFunction>> named = NamedAfterPlan(program, planned, names, plan);
  for (const auto& function : named) {
    graphs.push_back(&function->graph());
    regions.push_back(FindDeviceRegions(plan, planned, function->graph(), options));
    for (const DeviceRegion& region : regions.back()) functions.push_back(RegionToJson(*function, planned, region));
    for (const Json& name : LeftInPlace(*function, planned, regions.back())) left.push_back(name);
  }
  const IRModule hoisted = COLLAGE_TRY(HoistRegions(plan, planned, graphs, regions, Operators()));
  COLLAGE_TRY_STATUS(Verify(hoisted));
  return Json{
      {"count", functions.size()}, {"functions", std::move(functions)}, {"left_in_place", std::move(left)}, {"program", Print(hoisted)}};
}

}  // namespace collage
