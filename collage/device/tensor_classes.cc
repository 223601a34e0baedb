#include "collage/device/tensor_classes.h"

#include <algorithm>
#include <utility>

namespace collage {

size_t TensorClasses::Add(bool is_scalar, bool is_operator_result) {
  const size_t tensor = devices_.size();
  devices_.push_back({.parent = tensor, .scalars_only = is_scalar, .has_operator_result = is_operator_result});
  targets_.push_back({.parent = tensor});
  scopes_.push_back({.parent = tensor});
  return tensor;
}

/// The smaller class goes into the larger one; false where they are one already.
template <class Class>
bool TensorClasses::Link(std::vector<Class>& classes, size_t& kept, size_t& gone) {
  kept = Root(classes, kept);
  gone = Root(classes, gone);
  if (kept == gone) return false;
  if (classes[kept].members < classes[gone].members) std::swap(kept, gone);
  classes[gone].parent = kept;
  classes[kept].members += classes[gone].members;
  return true;
}

bool TensorClasses::LinkDevices(size_t a, size_t b) {
  const Device& one = devices_[DeviceOf(a)];
  const Device& two = devices_[DeviceOf(b)];
  if (one.type && two.type && one.type != two.type) return false;
  if (one.id && two.id && one.id != two.id) return false;
  if (!Link(devices_, a, b)) return true;
  Device& kept = devices_[a];
  const Device& gone = devices_[b];
  // Where both are stated the earlier statement speaks for the class; nobody is the largest number.
  if (!kept.type) kept.type = gone.type;
  kept.type_by = std::min(kept.type_by, gone.type_by);
  if (!kept.id) kept.id = gone.id;
  kept.id_by = std::min(kept.id_by, gone.id_by);
  kept.scalars_only = kept.scalars_only && gone.scalars_only;
  kept.has_operator_result = kept.has_operator_result || gone.has_operator_result;
  kept.read_by_host = kept.read_by_host || gone.read_by_host;
  return true;
}

bool TensorClasses::LinkScopes(size_t a, size_t b) {
  const Scope& one = scopes_[ScopeOf(a)];
  const Scope& two = scopes_[ScopeOf(b)];
  if (!one.scope.empty() && !two.scope.empty() && one.scope != two.scope) return false;
  if (!Link(scopes_, a, b) || !scopes_[a].scope.empty()) return true;
  scopes_[a].scope = scopes_[b].scope;
  scopes_[a].by = scopes_[b].by;
  return true;
}

void TensorClasses::Unify(size_t a, size_t b) {
  LinkDevices(a, b);
  LinkScopes(a, b);
  Link(targets_, a, b);
}

void TensorClasses::UnifyDevices(size_t a, size_t b) { LinkDevices(a, b); }

std::optional<size_t> TensorClasses::State(size_t tensor, const VirtualDevice& device, size_t statement) {
  Device& place = devices_[DeviceOf(tensor)];
  TargetClass& target = targets_[TargetOf(tensor)];
  Scope& scope = scopes_[ScopeOf(tensor)];
  if (device.device_type && place.type && place.type != device.device_type) return place.type_by;
  if (device.virtual_device_id && place.id && place.id != device.virtual_device_id) return place.id_by;
  std::optional<Target> joined = device.target;
  if (device.target && target.target) {
    joined = JoinTargets(*target.target, *device.target);
    if (!joined) return target.by;
  }
  if (!device.memory_scope.empty() && !scope.scope.empty() && scope.scope != device.memory_scope) return scope.by;
  if (device.device_type && !place.type) {
    place.type = device.device_type;
    place.type_by = statement;
  }
  if (device.virtual_device_id && !place.id) {
    place.id = device.virtual_device_id;
    place.id_by = statement;
  }
  if (joined && (!target.target || !SameTarget(*joined, *target.target))) {
    target.target = std::move(joined);
    target.by = statement;
  }
  if (!device.memory_scope.empty() && scope.scope.empty()) {
    scope.scope = device.memory_scope;
    scope.by = statement;
  }
  return std::nullopt;
}

void TensorClasses::Cross(size_t a, size_t b) {
  if (LinkDevices(a, b)) LinkScopes(a, b);
}

void TensorClasses::JoinOpenScopes(size_t a, size_t b) {
  const Device& one = devices_[DeviceOf(a)];
  const Device& two = devices_[DeviceOf(b)];
  if (one.type == two.type && one.id == two.id) LinkScopes(a, b);
}

void TensorClasses::ApplyDefaults(const DeviceConfiguration& configuration) {
  const VirtualDevice& host = configuration.host();
  const VirtualDevice& default_device = configuration.default_device();
  for (size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    if (device.parent != i) continue;
    device.took_host = !device.type && device.read_by_host && (device.scalars_only || !device.has_operator_result);
    const VirtualDevice filled = Default({device.type, device.id, std::nullopt, ""}, device.took_host ? host : default_device);
    device.type = filled.device_type;
    device.id = filled.virtual_device_id;
    if (const ListedDevice* lowest = device.id ? nullptr : configuration.LowestOf(*device.type)) device.id = lowest->id;
  }
  for (size_t i = 0; i < scopes_.size(); ++i) {
    if (scopes_[i].parent != i || !scopes_[i].scope.empty()) continue;
    const Device& device = devices_[DeviceOf(i)];
    if (!device.took_host) scopes_[i].scope = Default({device.type, device.id, std::nullopt, ""}, default_device).memory_scope;
  }
}

VirtualDevice TensorClasses::Of(size_t tensor) const {
  const Device& device = devices_[DeviceOf(tensor)];
  return {device.type, device.id, targets_[TargetOf(tensor)].target, scopes_[ScopeOf(tensor)].scope};
}

bool TensorClasses::Contradict(size_t a, size_t b) const {
  const Device& one = devices_[DeviceOf(a)];
  const Device& two = devices_[DeviceOf(b)];
  if (one.type != two.type || one.id != two.id) return true;
  const std::string& scope = scopes_[ScopeOf(a)].scope;
  const std::string& other = scopes_[ScopeOf(b)].scope;
  return !scope.empty() && !other.empty() && scope != other;
}

size_t TensorClasses::WhoStatedDevice(size_t tensor) const {
  const Device& device = devices_[DeviceOf(tensor)];
  return device.id_by != kNobody ? device.id_by : device.type_by;
}

}  // namespace collage
