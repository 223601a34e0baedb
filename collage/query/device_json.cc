#include "collage/query/device_json.h"

#include "collage/ir/visit.h"
#include "collage/op/table.h"

namespace collage {
namespace {

Result<std::optional<VirtualDevice>> OptionalDevice(const JsonReader& reader, const std::string& field) {
  if (!reader.Has(field)) return std::optional<VirtualDevice>();
  const JsonReader device = COLLAGE_TRY(reader.At(field));
  return std::optional<VirtualDevice>(COLLAGE_TRY(VirtualDeviceFrom(device)));
}

Result<ListedDevice> ListedDeviceFrom(const std::string& name, const JsonReader& targets) {
  const Result<VirtualDevice> place = VirtualDevice::Parse(name);
  if (!place || !place->device_type || !place->virtual_device_id || !(place->ToString() == name) || !place->memory_scope.empty() ||
      place->target) {
    return targets.Wrong("\"" + name + "\" is no device, expected a type and an id such as cpu:0");
  }
  ListedDevice device{*place->device_type, *place->virtual_device_id, {}};
  for (const JsonReader& item : COLLAGE_TRY(targets.Items())) {
    Result<Target> target = Target::Parse(COLLAGE_TRY(item.String()));
    if (!target) return item.Wrong(target.error().message);
    device.targets.push_back(*std::move(target));
  }
  return device;
}

Result<DeviceUse> DeviceUseFrom(const JsonReader& reader) {
  if (reader.IsText("same")) return DeviceUse::kSame;
  if (reader.IsText("host")) return DeviceUse::kHost;
  if (reader.IsText("any")) return DeviceUse::kAny;
  return reader.Expected("\"same\", \"host\" or \"any\"");
}

/// The fields of a value on the way to one of its tensors, as projections.
std::string FieldPath(const Type& type, uint32_t leaf) {
  std::string path;
  const Type* at = &type;
  while (const TupleType* tuple = at->AsTuple()) {
    size_t index = 0;
    for (size_t count = 0; leaf >= (count = CountDeviceTensors(tuple->fields[index])); leaf -= static_cast<uint32_t>(count)) ++index;
    path += "." + std::to_string(index);
    at = &tuple->fields[index];
  }
  return path;
}

}  // namespace

Result<VirtualDevice> VirtualDeviceFrom(const JsonReader& reader) {
  const Result<VirtualDevice> device = VirtualDevice::Parse(COLLAGE_TRY(reader.String()));
  return device ? device : Result<VirtualDevice>(reader.Wrong(device.error().message));
}

Result<DeviceConfiguration> DevicesFrom(const JsonReader& reader) {
  COLLAGE_TRY_STATUS(reader.OnlyFields({"targets", "host", "default", "copies", "choose"}));
  std::vector<ListedDevice> devices;
  const JsonReader targets = COLLAGE_TRY(reader.At("targets"));
  for (const auto& [name, list] : COLLAGE_TRY(targets.Fields())) devices.push_back(COLLAGE_TRY(ListedDeviceFrom(name, list)));
  Result<DeviceConfiguration> configuration = DeviceConfiguration::Create(std::move(devices), COLLAGE_TRY(OptionalDevice(reader, "host")),
                                                                          COLLAGE_TRY(OptionalDevice(reader, "default")));
  if (!configuration) return reader.Wrong(configuration.error().message);
  return configuration;
}

Result<DeviceRecords> DeviceRecordsFrom(const JsonReader& reader) {
  DeviceRecords records;
  for (const auto& [name, uses] : COLLAGE_TRY(reader.Fields())) {
    const OpDef* op = Operators().Find(name);
    if (!op) return uses.Wrong("there is no operator \"" + name + "\"");
    DeviceRecord record;
    for (const JsonReader& use : COLLAGE_TRY(uses.Items())) record.arguments.push_back(COLLAGE_TRY(DeviceUseFrom(use)));
    const size_t expected = op->argument_names.size() + 1;
    if (record.arguments.size() != expected) {
      return uses.Expected(std::to_string(expected) + " entries: one for each argument of " + name + ", then its result");
    }
    record.result = record.arguments.back();
    record.arguments.pop_back();
    records.emplace(name, std::move(record));
  }
  return records;
}

std::string PlanNames::Of(const Expr& expr, size_t function) const {
  const NamedFunction& named = Function(function);
  PostDfsIndex node = named.graph().Find(expr);
  while (node != DataflowGraph::kNone && node + 1 < named.graph().size()) {
    if (!named.NameOf(node).empty()) return named.NameOf(node);
    if (named.graph()[node].outputs.empty()) break;
    node = named.graph()[node].outputs[0];
  }
  return "@" + named.name();
}

std::string PlanNames::OfTensor(uint32_t maker, uint32_t field) const {
  const TensorMaker& made = plan_.flow().makers[maker];
  return Of(made.expr, made.function) + FieldPath(made.expr->type(), field);
}

std::string PlanNames::OfBlock(size_t block, size_t function) const {
  const DataflowGraph& graph = Function(function).graph();
  const DataflowGraph::BlockOwner owner = graph.OwnerOf(block);
  const std::string name = Of(graph[owner.node].expr, function);
  if (!graph[owner.node].Is<If>()) return name;
  return name + (owner.part == 0 ? " then" : " else");
}

std::string PlanNames::Of(const DeviceStatement& statement) const {
  for (const auto& [name, function] : plan_.module().functions()) {
    if (function == statement.by) return "@" + name;
  }
  return Of(statement.by, statement.function);
}

std::vector<std::unique_ptr<NamedFunction>> NamedAfterPlan(const QueryProgram& program, const PlannedProgram& planned,
                                                           const PlanNames& names, const DevicePlan& plan) {
  const ParsedModule& text = program.text();
  std::vector<TextBlock> blocks;
  for (const TextBlock& block : text.blocks) {
    const auto owner = planned.written.find(block.owner);
    blocks.push_back({owner == planned.written.end() ? nullptr : owner->second.get(), block.part});
  }
  const size_t nowhere = blocks.size();
  std::vector<std::unique_ptr<NamedFunction>> functions;
  for (const auto& [name, function] : planned.module.functions()) {
    if (IsAtomicFunction(function)) continue;
    BindingList bindings;
    NameTable preferred;
    for (const Binding& binding : text.bindings.at(name)) {
      const auto written = planned.written.find(binding.expr.get());
      if (written == planned.written.end()) continue;
      bindings.push_back({binding.name, written->second, binding.block});
      preferred.emplace(binding.name, written->second);
    }
    PostOrder(function, [&](const Expr& expr) {
      const auto inserted = planned.inserted_copies.find(expr.get());
      if (inserted == planned.inserted_copies.end()) return;
      const PlannedCopy& copy = plan.copies()[inserted->second];
      bindings.push_back({names.OfTensor(copy.maker, copy.field).substr(1), expr, nowhere});
    });
    functions.push_back(
        std::make_unique<NamedFunction>(name, function, NamedFunction::Origin{bindings, blocks, preferred, text.constants}));
  }
  return functions;
}

Json ErrorsToJson(const DevicePlan& plan, const PlanNames& names) {
  Json errors = Json::array();
  for (const DeviceError& error : plan.errors()) {
    Json from = Json::array();
    for (const DeviceStatement* statement : error.from) from.push_back(names.Of(*statement));
    errors.push_back({{"kind", Name(error.kind)},
                      {"devices", error.devices},
                      {"from", std::move(from)},
                      {"message", Describe(error, [&](const DeviceStatement& statement) { return names.Of(statement); })}});
  }
  return {{"errors", std::move(errors)}};
}

Json CopyToJson(const PlannedCopy& copy, const PlanNames& names) {
  return {{"of", names.OfTensor(copy.maker, copy.field)}, {"from", copy.from.ToString()}, {"to", copy.to.ToString()}};
}

}  // namespace collage
