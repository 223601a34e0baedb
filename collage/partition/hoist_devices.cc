#include "collage/partition/hoist_devices.h"

#include <algorithm>

#include "collage/candidate/regions.h"
#include "collage/dataflow/extraction.h"
#include "collage/ir/visit.h"
#include "collage/support/check.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

constexpr const char* kNumber = "hoisted";

/// A device with the target that compiles for it.
VirtualDevice WithTarget(const DeviceConfiguration& configuration, VirtualDevice device) {
  if (!device.target) device.target = configuration.Find(device)->targets.front();
  return device;
}

VirtualDevice Projected(const VirtualDevice& device, const std::vector<VirtualDeviceField>& by) {
  const auto counts = [&](VirtualDeviceField field) { return std::find(by.begin(), by.end(), field) != by.end(); };
  VirtualDevice projected;
  if (counts(VirtualDeviceField::kDeviceType)) projected.device_type = device.device_type;
  if (counts(VirtualDeviceField::kVirtualDeviceId)) projected.virtual_device_id = device.virtual_device_id;
  if (counts(VirtualDeviceField::kTarget)) projected.target = device.target;
  if (counts(VirtualDeviceField::kMemoryScope)) projected.memory_scope = device.memory_scope;
  return projected;
}

class Finder {
 public:
  Finder(const DevicePlan& plan, const PlannedProgram& planned, const DataflowGraph& graph, const HoistOptions& options)
      : plan_(plan), planned_(planned), graph_(graph), options_(options), devices_(graph.size()) {}

  std::vector<DeviceRegion> Find() {
    std::vector<Region> parts;
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      const std::optional<CallDevices> devices = DevicesOf(graph_[node].expr);
      if (!devices || (IsKept(devices->first) && IsKept(devices->last))) continue;
      const VirtualDevice projected = Projected(devices->first, options_.by);
      if (!(projected == Projected(devices->last, options_.by))) continue;
      devices_[node] = devices;
      parts.push_back({OwnerOf(projected), IndexSet({node})});
    }
    std::vector<DeviceRegion> regions;
    for (Region& region : MergeRegions(graph_, parts, true)) regions.push_back(Described(std::move(region.nodes)));
    return regions;
  }

 private:
  [[nodiscard]] std::optional<CallDevices> DevicesOf(const Expr& expr) const {
    if (const auto copy = planned_.inserted_copies.find(expr.get()); copy != planned_.inserted_copies.end()) {
      const PlannedCopy& inserted = plan_.copies()[copy->second];
      return CallDevices{Full(inserted.from), Full(inserted.to)};
    }
    const auto origin = planned_.origin.find(expr.get());
    const Call* call = expr->As<Call>();
    if (origin == planned_.origin.end() || !call) return std::nullopt;
    const Expr& before = origin->second;
    const Call* call_before = before->As<Call>();
    if (!call_before || (!CalledOp(before) && !plan_.flow().KernelOf(call_before->callee))) return std::nullopt;
    const std::vector<VirtualDevice> made = plan_.DevicesOf(before);
    if (made.empty()) return std::nullopt;
    if (!IsCallOf(expr, "device_copy")) return CallDevices{Full(made[0]), Full(made[0])};
    return CallDevices{Full(plan_.DeviceOf(plan_.flow().Of(call_before->args[0].get())[0].tensor)), Full(made[0])};
  }

  [[nodiscard]] VirtualDevice Full(VirtualDevice device) const { return WithTarget(plan_.configuration(), std::move(device)); }

  [[nodiscard]] bool IsKept(const VirtualDevice& device) const {
    return std::any_of(options_.keep.begin(), options_.keep.end(), [&](const VirtualDevice& keep) {
      const JoinedDevice joined = Join(device, keep);
      return !joined.conflict && joined.device == device;
    });
  }

  size_t OwnerOf(const VirtualDevice& projected) {
    const auto at = std::find(owners_.begin(), owners_.end(), projected);
    if (at != owners_.end()) return static_cast<size_t>(at - owners_.begin());
    owners_.push_back(projected);
    return owners_.size() - 1;
  }

  DeviceRegion Described(IndexSet nodes) const {
    DeviceRegion region{std::move(nodes), {}, {}};
    std::optional<Target> target;
    region.nodes.ForEach([&](PostDfsIndex node) {
      if (!devices_[node]) return;
      VirtualDevice device = devices_[node]->first;
      const Target& own = plan_.configuration().Find(device)->targets.front();
      // A region of several targets is compiled for what they have in common.
      if (target && !SameTarget(*target, *device.target)) target = own;
      if (!target) target = device.target;
      if (IsCallOf(graph_[node].expr, "device_copy")) return;
      if (SameTarget(*device.target, own)) device.target.reset();
      if (std::find(region.devices.begin(), region.devices.end(), device) == region.devices.end()) region.devices.push_back(device);
    });
    COLLAGE_CHECK(target.has_value());
    region.target = *std::move(target);
    return region;
  }

  const DevicePlan& plan_;
  const PlannedProgram& planned_;
  const DataflowGraph& graph_;
  const HoistOptions& options_;
  std::vector<std::optional<CallDevices>> devices_;
  std::vector<VirtualDevice> owners_;
};

std::string NameFor(const DeviceRegion& region) {
  std::string name = "device";
  if (region.devices.size() != 1) return name;
  const VirtualDevice& device = region.devices.front();
  return name + "_" + std::string(Name(*device.device_type)) + "_" + std::to_string(*device.virtual_device_id);
}

}  // namespace

std::vector<DeviceRegion> FindDeviceRegions(const DevicePlan& plan, const PlannedProgram& planned, const DataflowGraph& graph,
                                            const HoistOptions& options) {
  return Finder(plan, planned, graph, options).Find();
}

Result<IRModule> HoistRegions(const DevicePlan& plan, const PlannedProgram& planned, const std::vector<const DataflowGraph*>& graphs,
                              const std::vector<std::vector<DeviceRegion>>& regions, const OpTable& ops) {
  NameSupply names;
  for (const auto& [name, function] : planned.module.functions()) names.Fresh(name);
  IRModule hoisted = planned.module;
  size_t at = 0;
  for (const auto& [name, function] : planned.module.functions()) {
    if (IsAtomicFunction(function)) continue;
    const std::vector<DeviceRegion>& found = regions[at];
    const DataflowGraph& graph = *graphs[at++];
    std::vector<NestedSubGraph> parts;
    for (size_t i = 0; i < found.size(); ++i) {
      parts.push_back({SubGraph(graph, found[i].nodes), {{kNumber, AttributeValue(static_cast<int64_t>(i))}}});
    }
    const Expr rewritten = COLLAGE_TRY(RewriteFunction(graph, parts));
    const auto is_region = [](const Expr& expr) { return expr->As<Function>() && expr->As<Function>()->attributes.Has(kNumber); };
    std::vector<std::pair<std::string, Expr>> functions;
    const auto lift = [&](const Expr&, const Expr& expr) -> Result<Expr> {
      if (!is_region(expr)) return expr;
      const Function& literal = *expr->As<Function>();
      const DeviceRegion& region = found[static_cast<size_t>(COLLAGE_TRY(literal.attributes.Int(kNumber, 0)))];
      const std::string symbol = names.Fresh(NameFor(region));
      functions.emplace_back(
          symbol, COLLAGE_TRY(MakeFunction(literal.parameters, literal.body, {{"target", region.target.ToString()}}, literal.result_type)));
      return MakeGlobalVar(symbol, expr->type());
    };
    hoisted.Set(name, COLLAGE_TRY(Rewrite(rewritten, lift, [&](const Expr& expr) { return !is_region(expr); })));
    for (auto& [symbol, literal] : functions) hoisted.Set(symbol, std::move(literal));
  }
  // Everything is in its place: planning again says so of the new functions.
  return PlanDevices(hoisted, plan.configuration(), ops);
}

Result<IRModule> HoistDevices(const IRModule& module, const DeviceConfiguration& configuration, HoistOptions options, const OpTable& ops) {
  const IRModule planned_module = COLLAGE_TRY(PlanDevices(module, configuration, ops));
  const DevicePlan plan = COLLAGE_TRY(DevicePlan::Create(planned_module, configuration));
  const PlannedProgram planned = COLLAGE_TRY(ApplyDevicePlan(plan, ops));
  if (options.keep.empty()) options.keep = {configuration.host()};
  std::vector<std::unique_ptr<DataflowGraph>> graphs;
  std::vector<const DataflowGraph*> pointers;
  std::vector<std::vector<DeviceRegion>> regions;
  for (const auto& [name, function] : planned.module.functions()) {
    if (IsAtomicFunction(function)) continue;
    graphs.push_back(std::make_unique<DataflowGraph>(function));
    pointers.push_back(graphs.back().get());
    regions.push_back(FindDeviceRegions(plan, planned, *graphs.back(), options));
  }
  return HoistRegions(plan, planned, pointers, regions, ops);
}

}  // namespace collage
