#include "collage/driver/device_statements.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "collage/device/plan_devices.h"
#include "collage/ir/call_names.h"
#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/support/log.h"

namespace collage {
namespace {

/// A node that must run on a device.
struct DevicePin {
  std::string name;
  std::string device;
  std::string flag;
};

Target WithoutLibraries(const Target& target) {
  Target plain = target;
  std::erase_if(plain.attributes, [](const auto& attribute) { return attribute.first != "compiler"; });
  return plain;
}

bool SaysNothing(const Expr& function) {
  bool nothing = !function->As<Function>()->attributes.Has("virtual_device");
  PostOrder(function, [&](const Expr& expr) {
    const Var* variable = expr->As<Var>();
    if (IsCallOf(expr, "on_device") || IsCallOf(expr, "device_copy") || (variable && !variable->virtual_device.empty())) nothing = false;
  });
  return nothing;
}

class StatementReader {
 public:
  StatementReader(const std::vector<PlacementTarget>& targets, const Device& host, bool choose)
      : targets_(targets), host_(host), devices_(DevicesOf(targets, host)), choose_(choose) {}

  Result<DeviceConstraints> Read(const Expr& function, const UserConstraints& said) {
    DeviceConstraints result{function, {}, said};
    const std::vector<DevicePin> pins = COLLAGE_TRY(TakePins(result.constraints));
    if (devices_.size() == 1 && pins.empty() && SaysNothing(function)) return result;
    const IRModule module = IRModule::FromMain(COLLAGE_TRY(State(function, pins)));
    const DeviceConfiguration configuration = COLLAGE_TRY(Configuration());
    const DevicePlan plan =
        COLLAGE_TRY(choose_ ? DevicePlan::CreateOpen(module, configuration) : DevicePlan::Create(module, configuration));
    if (!plan.errors().empty()) return Fail(Describe(plan.errors().front(), [](const DeviceStatement& by) { return NameOf(by); }));
    const PlannedProgram bare = COLLAGE_TRY(RemoveStatements(plan, Operators()));
    result.function = bare.module.MainExpr();
    result.may_take.resize(targets_.size());
    PostOrder(result.function, [&](const Expr& expr) {
      const auto before = bare.origin.find(expr.get());
      if (!CalledOp(expr) || before == bare.origin.end()) return;
      for (size_t target = 0; target < targets_.size(); ++target) {
        if (MayTake(plan, before->second, target)) result.may_take[target].push_back(expr);
      }
    });
    for (size_t target = 0; target < targets_.size(); ++target) {
      if (result.may_take[target].empty() && targets_[target].device)
        spdlog::warn(
            "target '{}' takes nothing: no operator is annotated or pinned to {}, and its choice is not left to the search "
            "(--choose-devices)",
            targets_[target].target, ToString(*targets_[target].device));
    }
    return result;
  }

 private:
  static std::string NameOf(const DeviceStatement& statement) {
    const OpDef* op = CalledOp(statement.by);
    const std::vector<std::string> nodes = statement.by->origin().OnnxNodes();
    if (!nodes.empty()) return nodes.front();
    if (const Var* variable = statement.by->As<Var>()) return "%" + variable->name;
    return op ? op->name : "the function's result";
  }

  /// A device's own target comes first, and its others refine it.
  Result<DeviceConfiguration> Configuration() const {
    std::vector<ListedDevice> listed;
    for (const Device& device : devices_) {
      ListedDevice& entry = listed.emplace_back(ListedDevice{device.kind, device.id, {Target{device.kind, {}}}});
      for (const PlacementTarget& target : targets_) {
        if (target.device.value_or(host_) != device) continue;
        const Target plain = WithoutLibraries(COLLAGE_TRY(Target::Parse(target.target)));
        if (!entry.Has(plain)) entry.targets.push_back(plain);
      }
    }
    const VirtualDevice host{host_.kind, host_.id, std::nullopt, ""};
    return DeviceConfiguration::Create(std::move(listed), host, host);
  }

  [[nodiscard]] const PlacementTarget* FindBackend(const std::string& name) const {
    const auto at = std::find_if(targets_.begin(), targets_.end(), [&](const auto& target) { return target.backend->Name() == name; });
    return at == targets_.end() ? nullptr : &*at;
  }

  /// A backend that runs on one device only pins to that device too.
  Result<std::vector<DevicePin>> TakePins(UserConstraints& constraints) const {
    std::vector<DevicePin> pins;
    std::vector<std::string> others;
    for (const std::string& text : constraints.pin) {
      const size_t equals = text.rfind('=');
      const std::string where = equals == std::string::npos ? std::string() : text.substr(equals + 1);
      const PlacementTarget* backend = FindBackend(where);
      const bool is_device = !backend && DeviceKindFromName(where.substr(0, where.find(':')));
      if (!is_device || equals == 0) others.push_back(text);
      if (backend && backend->device) pins.push_back({text.substr(0, equals), ToString(*backend->device), "--pin " + text});
      if (!is_device) continue;
      const auto fits = [&](const Device& device) { return where == ToString(device) || where == Name(device.kind); };
      const auto device = std::find_if(devices_.begin(), devices_.end(), fits);
      if (device == devices_.end()) return Fail("--pin " + text + ": " + where + " is none of the targets' devices, " + DeviceNames());
      pins.push_back({text.substr(0, equals), ToString(*device), "--pin " + text});
    }
    constraints.pin = std::move(others);
    return pins;
  }

  [[nodiscard]] std::string DeviceNames() const {
    std::string names;
    for (const Device& device : devices_) names += (names.empty() ? "" : ", ") + ToString(device);
    return names;
  }

  /// The function with pins as statements. A pin moves its call alone: what the call reads and gives crosses where that is elsewhere.
  Result<Expr> State(const Expr& function, const std::vector<DevicePin>& pins) const {
    const CallNames names(function);
    std::unordered_set<std::string> met;
    std::unordered_map<const ExprNode*, const DevicePin*> pinned;  // the statement around a call, by what it was made of
    Result<Expr> stated = Rewrite(function, [&](const Expr& original, const Expr& expr) -> Result<Expr> {
      const Call* call = expr->As<Call>();
      if (IsCallOf(expr, "device_copy")) {
        const std::string from = COLLAGE_TRY(call->attributes.String("src_virtual_device", "?"));
        const Expr source = COLLAGE_TRY(OnDevice(call->args[0], from, /*is_body=*/true));
        return OnDevice(source, COLLAGE_TRY(call->attributes.String("dst_virtual_device", "?")), /*is_body=*/false);
      }
      if (IsCallOf(expr, "on_device")) {
        // What is said around a pinned call is said of the call.
        const auto inner = pinned.find(original->As<Call>()->args[0].get());
        if (inner == pinned.end()) return expr;
        const Expr& body = call->args[0]->As<Call>()->args[0];
        return MakeCall(call->callee, {COLLAGE_TRY(OnDevice(body, inner->second->device, true, true))}, call->attributes, expr->origin());
      }
      const DevicePin* found = nullptr;
      for (const DevicePin& pin : pins) {
        if (!CalledOp(original) || !names.IsCalled(original, pin.name)) continue;
        met.insert(pin.flag);
        if (found && found->device != pin.device)
          return Fail(pin.flag + ": " + names.Describe(original) + " is pinned to " + found->device + " by " + found->flag);
        found = &pin;
      }
      if (!found) return expr;
      pinned.emplace(original.get(), found);
      return Alone(expr, found->device);
    });
    for (const DevicePin& pin : pins) {
      if (stated && !met.contains(pin.flag)) return Fail(pin.flag + ": the program has no node and calls no operator '" + pin.name + "'");
    }
    return stated;
  }

  static Result<Expr> OnDevice(const Expr& expr, const std::string& device, bool is_body) {
    return OnDevice(expr, device, is_body, !is_body);
  }
  static Result<Expr> OnDevice(const Expr& expr, const std::string& device, bool is_body, bool is_result) {
    return MakeCall(Operators().Find("on_device"), {expr},
                    {{"virtual_device", device}, {"constrain_body", is_body}, {"constrain_result", is_result}}, expr->origin());
  }

  static Result<Expr> Alone(const Expr& expr, const std::string& device) {
    const Call& call = *expr->As<Call>();
    std::vector<Expr> args;
    for (const Expr& arg : call.args) args.push_back(arg->As<Constant>() ? arg : COLLAGE_TRY(OnDevice(arg, device, /*is_body=*/false)));
    const Expr moved = COLLAGE_TRY(MakeCall(call.callee, std::move(args), call.attributes, expr->origin()));
    return OnDevice(moved, device, /*is_body=*/true);
  }

  [[nodiscard]] bool MayTake(const DevicePlan& plan, const Expr& call, size_t number) const {
    const PlacementTarget& target = targets_[number];
    const Device& device = target.device.value_or(host_);
    const Target own = WithoutLibraries(*Target::Parse(target.target));
    const std::span<const TensorLeaf> leaves = plan.flow().Of(call.get());
    return std::all_of(leaves.begin(), leaves.end(), [&](const TensorLeaf& leaf) {
      const VirtualDevice known = plan.flow().classes.Of(leaf.tensor);
      const bool is_there =
          known.device_type.value_or(device.kind) == device.kind && known.virtual_device_id.value_or(device.id) == device.id;
      return is_there && (!known.target || SameTarget(own, *known.target) || Refines(own, *known.target));
    });
  }

  const std::vector<PlacementTarget>& targets_;
  const Device& host_;
  std::vector<Device> devices_;
  bool choose_;
};

}  // namespace

std::vector<Device> DevicesOf(const std::vector<PlacementTarget>& targets, const Device& host) {
  std::vector<Device> devices = {host};
  for (const PlacementTarget& target : targets) {
    if (target.device && std::find(devices.begin(), devices.end(), *target.device) == devices.end()) devices.push_back(*target.device);
  }
  return devices;
}

Result<DeviceConstraints> ReadDeviceStatements(const Expr& function, const std::vector<PlacementTarget>& targets, const Device& host,
                                               const UserConstraints& constraints, bool choose) {
  return StatementReader(targets, host, choose).Read(function, constraints);
}

}  // namespace collage
