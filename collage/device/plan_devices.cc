#include "collage/device/plan_devices.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "collage/dataflow/dataflow_graph.h"
#include "collage/support/check.h"

namespace collage {

std::string_view Name(DeviceError::Kind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"conflict", "unknown-device", "unknown-target"};
  return kNames[static_cast<size_t>(kind)];
}

Result<DevicePlan> DevicePlan::Begin(const IRModule& module, const DeviceConfiguration& configuration, DeviceRecords records) {
  DevicePlan plan;
  plan.module_ = &module;
  plan.configuration_ = &configuration;
  plan.records_ = std::make_shared<const DeviceRecords>(std::move(records));
  plan.flow_ = std::make_shared<TensorFlow>(COLLAGE_TRY(TensorFlow::Read(module, configuration, *plan.records_)));
  plan.TakeStatements();
  return plan;
}

Result<DevicePlan> DevicePlan::CreateOpen(const IRModule& module, const DeviceConfiguration& configuration) {
  DevicePlan plan = COLLAGE_TRY(Begin(module, configuration, {}));
  if (plan.errors_.empty()) plan.CheckDevices();
  return plan;
}

Result<DevicePlan> DevicePlan::Create(const IRModule& module, const DeviceConfiguration& configuration, DeviceRecords records) {
  DevicePlan plan = COLLAGE_TRY(Begin(module, configuration, std::move(records)));
  if (!plan.errors_.empty()) return plan;
  TensorFlow& flow = *plan.flow_;
  for (const auto* pairs : {&flow.crossings, &flow.branch_crossings}) {
    for (const auto& [a, b] : *pairs) flow.classes.Cross(a, b);
  }
  for (const uint32_t tensor : flow.read_by_host) flow.classes.MarkReadByHost(tensor);
  flow.classes.ApplyDefaults(configuration);
  plan.CheckDevices();
  if (!plan.errors_.empty()) return plan;
  plan.JoinScopes();
  plan.DropCopiesWithinOnePlace();
  plan.FindCopies();
  plan.FindKeptStatements();
  return plan;
}

void DevicePlan::AddError(DeviceError error) {
  const bool known = std::any_of(errors_.begin(), errors_.end(), [&](const DeviceError& other) {
    return other.kind == error.kind && other.devices == error.devices &&
           std::equal(other.from.begin(), other.from.end(), error.from.begin(), error.from.end(),
                      [](const DeviceStatement* a, const DeviceStatement* b) { return a->by == b->by; });
  });
  if (!known) errors_.push_back(std::move(error));
}

void DevicePlan::TakeStatements() {
  for (const DeviceStatement& compiler : flow_->unknown_compilers)
    AddError({DeviceError::Kind::kUnknownTarget, {compiler.text}, {&compiler}});
  for (const auto& [tensor, statement] : flow_->stated) {
    const DeviceStatement& stated = flow_->statements[statement];
    const std::optional<size_t> other = flow_->classes.State(tensor, configuration_->Resolve(stated.device), statement);
    if (!other) continue;
    const DeviceStatement& earlier = flow_->statements[*other];
    AddError({DeviceError::Kind::kConflict, {earlier.device.ToString(), stated.device.ToString()}, {&earlier, &stated}});
  }
}

/// Only what is stated can be unknown: hosts and defaults are listed. What is open is known where some device fits.
void DevicePlan::CheckDevices() {
  std::map<std::pair<size_t, DeviceError::Kind>, DeviceError> found;  // in the order of statements
  for (size_t tensor = 0; tensor < flow_->classes.size(); ++tensor) {
    const VirtualDevice device = flow_->classes.Of(tensor);
    const std::vector<const ListedDevice*> fitting = configuration_->Fitting(device);
    const auto has_target = [&](const ListedDevice* listed) { return listed->Has(*device.target); };
    const bool listed = !fitting.empty();
    if (listed && (!device.target || std::any_of(fitting.begin(), fitting.end(), has_target))) continue;
    const size_t who = listed ? flow_->classes.WhoStatedTarget(tensor) : flow_->classes.WhoStatedDevice(tensor);
    COLLAGE_CHECK(who != TensorClasses::kNobody);
    const DeviceStatement& by = flow_->statements[who];
    const DeviceError::Kind kind = listed ? DeviceError::Kind::kUnknownTarget : DeviceError::Kind::kUnknownDevice;
    found.try_emplace({who, kind}, DeviceError{kind, {by.device.ToString()}, {&by}});
  }
  for (auto& [key, error] : found) AddError(std::move(error));
}

void DevicePlan::JoinScopes() {
  for (const TensorUse& use : flow_->uses) {
    if (use.place == TensorUse::kOnHost) continue;
    flow_->classes.JoinOpenScopes(flow_->Of(flow_->makers[use.maker].expr.get())[use.field].tensor, use.place);
    if (IsCallOf(use.user, "device_copy")) flow_->classes.JoinOpenScopes(use.place, flow_->Of(use.user.get())[use.leaf].tensor);
  }
}

void DevicePlan::DropCopiesWithinOnePlace() {
  for (const Expr& copy : flow_->device_copies) {
    const std::span<const TensorLeaf> from = flow_->Of(copy->As<Call>()->args[0].get());
    const std::span<const TensorLeaf> to = flow_->Of(copy.get());
    const auto same = [&](const TensorLeaf& a, const TensorLeaf& b) {
      return flow_->classes.Of(a.tensor).Place() == flow_->classes.Of(b.tensor).Place();
    };
    if (!std::equal(from.begin(), from.end(), to.begin(), to.end(), same)) continue;
    within_one_place_.insert(copy.get());
    // The copies before it are dropped already, so each is looked through once.
    std::vector<TensorLeaf>& makers = maker_behind_[copy.get()];
    for (const TensorLeaf& leaf : from) makers.push_back(leaf.maker == TensorLeaf::kNoMaker ? leaf : MakerOf(leaf.maker, leaf.field));
  }
}

TensorLeaf DevicePlan::MakerOf(uint32_t maker, uint32_t field) const {
  const auto behind = maker_behind_.find(flow_->makers[maker].expr.get());
  if (behind != maker_behind_.end()) return behind->second[field];
  return {flow_->Of(flow_->makers[maker].expr.get())[field].tensor, maker, field};
}

VirtualDevice DevicePlan::PlaceOf(const TensorUse& use) const {
  return use.place == TensorUse::kOnHost ? configuration_->host() : flow_->classes.Of(use.place).Place();
}

void DevicePlan::FindCopies() {
  std::map<std::tuple<uint32_t, uint32_t, std::string>, size_t> copies;
  for (const TensorUse& use : flow_->uses) {
    const TensorLeaf made = MakerOf(use.maker, use.field);
    if (flow_->makers[made.maker].is_constant || within_one_place_.contains(use.user.get())) continue;
    const VirtualDevice to = PlaceOf(use);
    const VirtualDevice from = flow_->classes.Of(made.tensor).Place();
    if (!Join(from, to).conflict) continue;
    const auto [at, is_new] = copies.try_emplace({made.maker, made.field, to.ToString()}, copies_.size());
    if (is_new) copies_.push_back({made.maker, made.field, from, to, {}});
    copies_[at->second].uses.push_back(&use);
    copy_of_use_.emplace(&use, at->second);
  }
}

const PlannedCopy* DevicePlan::CopyFor(const TensorUse& use) const {
  const auto at = copy_of_use_.find(&use);
  return at == copy_of_use_.end() ? nullptr : &copies_[at->second];
}

VirtualDevice DevicePlan::DeviceOf(uint32_t tensor) const {
  VirtualDevice device = flow_->classes.Of(tensor);
  const ListedDevice* listed = configuration_->Find(device);
  if (device.target && SameTarget(*device.target, listed->targets.front())) device.target.reset();
  return device;
}

std::vector<VirtualDevice> DevicePlan::DevicesOf(std::span<const TensorLeaf> leaves) const {
  std::vector<VirtualDevice> devices;
  for (const TensorLeaf& leaf : leaves) {
    devices.push_back(DeviceOf(leaf.maker == TensorLeaf::kNoMaker ? leaf.tensor : MakerOf(leaf.maker, leaf.field).tensor));
  }
  return devices;
}

std::vector<VirtualDevice> DevicePlan::DevicesOf(const Expr& expr) const { return DevicesOf(flow_->Of(expr.get())); }

std::vector<VirtualDevice> DevicePlan::DevicesOfResult(const Expr& function) const { return DevicesOf(flow_->ResultOf(function.get())); }

/// Where planning the result again would put what is made by a call or an if, `uses` being what it reads: with the first tensor that
/// it takes and that says where it is, else on the default device; with the device's own target.
std::vector<VirtualDevice> DevicePlan::ExpectedDevices(const Expr& expr, const std::vector<const TensorUse*>& uses) const {
  const TensorFlow& flow = *flow_;
  std::vector<VirtualDevice> expected = DevicesOf(expr);
  const auto set_all = [&](const VirtualDevice& device) { std::fill(expected.begin(), expected.end(), device); };
  const auto drop_targets = [&] {
    for (VirtualDevice& device : expected) device.target.reset();
  };
  drop_targets();
  if (expr->As<If>()) {
    std::vector<bool> held(expected.size(), false);
    for (const TensorUse* use : uses) {
      if (use->part > 0) held[use->leaf] = true;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!held[i] && flow.Of(expr.get())[i].maker != TensorLeaf::kNoMaker) expected[i] = configuration_->default_device();
    }
    return expected;
  }
  const Call& call = *expr->As<Call>();
  if (const OpDef* op = CalledOp(expr)) {
    const DeviceRecord record = flow.RecordOf(*op);
    const bool is_shape = flow.makers[flow.Of(expr.get()).empty() ? 0 : flow.Of(expr.get())[0].maker].is_shape;
    const bool held = record.result == DeviceUse::kHost || std::any_of(uses.begin(), uses.end(), [&](const TensorUse* use) {
                        return use->place != TensorUse::kOnHost && (is_shape || !flow.makers[use->maker].is_shape);
                      });
    if (!held) set_all(configuration_->default_device());
    return expected;
  }
  // A kernel: scopes are those of its signature.
  const Function& kernel = *flow.KernelOf(call.callee)->As<Function>();
  const AttributeValue* compiler = kernel.attributes.Find("Compiler");
  const auto& devices = configuration_->devices();
  const auto has_compiler = [&](const ListedDevice& device) { return device.HasCompiler(*compiler->AsString()); };
  bool held = !uses.empty() || (compiler && compiler->AsString() && std::count_if(devices.begin(), devices.end(), has_compiler) == 1);
  const AttributeValue* text = kernel.attributes.Find("virtual_device");
  std::vector<VirtualDevice> signature(expected.size());
  if (text) signature = ParseDevices(*text->AsString(), kernel.result_type).value_or(signature);
  for (const VirtualDevice& device : signature) held = held || device.device_type;
  if (!held) set_all(configuration_->default_device());
  for (size_t i = 0; i < expected.size(); ++i) expected[i].memory_scope = signature[i].memory_scope;
  return expected;
}

void DevicePlan::FindKeptStatements() {
  std::unordered_map<const ExprNode*, std::vector<const TensorUse*>> uses_by;
  for (const TensorUse& use : flow_->uses) uses_by[use.user.get()].push_back(&use);
  for (const TensorMaker& maker : flow_->makers) {
    const Expr& expr = maker.expr;
    const bool runs = expr->As<If>() || (CalledOp(expr) && !IsCallOf(expr, "device_copy")) ||
                      (expr->As<Call>() && !CalledOp(expr) && flow_->KernelOf(expr->As<Call>()->callee));
    if (!runs) continue;
    const std::vector<VirtualDevice> planned = DevicesOf(expr);
    const auto uses = uses_by.find(expr.get());
    if (planned == ExpectedDevices(expr, uses == uses_by.end() ? std::vector<const TensorUse*>() : uses->second)) continue;
    kept_.push_back({expr, ToString(planned, expr->type())});
  }
}

std::string Describe(const DeviceError& error, const std::function<std::string(const DeviceStatement&)>& name_of) {
  if (error.kind == DeviceError::Kind::kConflict) {
    return name_of(*error.from[0]) + " is stated to be on " + error.devices[0] + ", but " + name_of(*error.from[1]) +
           ", which must be in the same place, on " + error.devices[1];
  }
  const bool device = error.kind == DeviceError::Kind::kUnknownDevice;
  return name_of(*error.from[0]) + " is stated to be on " + error.devices[0] + ", expected " +
         (device ? "one of the devices that are listed" : "a target that its device has");
}

}  // namespace collage
