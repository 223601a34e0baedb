#include "collage/device/configuration.h"

#include <algorithm>

namespace collage {
namespace {

/// The -host= of these targets, where there is one.
Result<std::optional<VirtualDevice>> HostOfTargets(const std::vector<ListedDevice>& devices) {
  std::optional<VirtualDevice> host;
  for (const ListedDevice& device : devices) {
    for (const Target& target : device.targets) {
      const std::string text = target.Attribute("host");
      if (text.empty()) continue;
      const VirtualDevice stated = COLLAGE_TRY(VirtualDevice::Parse(text));
      if (host && !(*host == stated)) {
        return Fail("target '" + target.ToString() + "' has the host " + text + ", another one " + host->ToString() +
                    ", expected one host");
      }
      host = stated;
    }
  }
  return host;
}

Status CheckTargets(const ListedDevice& device) {
  const std::string name = device.Place().ToString();
  if (device.targets.empty()) return Fail("device " + name + " has no target, expected at least its own");
  const Target& own = device.targets.front();
  for (size_t i = 0; i < device.targets.size(); ++i) {
    const Target& target = device.targets[i];
    if (target.kind != device.type) return Fail("target '" + target.ToString() + "' is not one of the device " + name);
    if (i > 0 && !Refines(target, own)) {
      return Fail("target '" + target.ToString() + "' does not refine '" + own.ToString() + "', the own target of " + name);
    }
    const auto before = device.targets.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(device.targets.begin(), before, [&](const Target& other) { return SameTarget(other, target); })) {
      return Fail("device " + name + " has the target '" + target.ToString() + "' twice");
    }
  }
  return {};
}

}  // namespace

Result<ListedDevice> ParseListedDevice(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const size_t first = text.find_first_not_of(' ', at);
    if (first < end) parts.push_back(text.substr(first, text.find_last_not_of(' ', end - 1) + 1 - first));
    at = end + 1;
  }
  const Result<VirtualDevice> place = VirtualDevice::Parse(parts.empty() ? text : parts.front());
  if (!place) return Fail(place.error());
  if (!place->device_type || !place->virtual_device_id || place->target || !place->memory_scope.empty()) {
    return Fail("device '" + text + "': expected a type and an id, such as cuda:0, then targets behind ';'");
  }
  ListedDevice device{*place->device_type, *place->virtual_device_id, {}};
  for (size_t i = 1; i < parts.size(); ++i) device.targets.push_back(COLLAGE_TRY(Target::Parse(parts[i])));
  if (device.targets.empty()) device.targets.push_back({device.type, {}});
  return device;
}

bool ListedDevice::Has(const Target& target) const {
  return std::any_of(targets.begin(), targets.end(), [&](const Target& own) { return SameTarget(own, target); });
}

bool ListedDevice::HasCompiler(const std::string& compiler) const {
  return std::any_of(targets.begin(), targets.end(), [&](const Target& own) { return own.Attribute("compiler") == compiler; });
}

const ListedDevice* DeviceConfiguration::Find(DeviceKind type, int64_t id) const {
  for (const ListedDevice& device : devices_) {
    if (device.type == type && device.id == id) return &device;
  }
  return nullptr;
}

std::vector<const ListedDevice*> DeviceConfiguration::Fitting(const VirtualDevice& device) const {
  std::vector<const ListedDevice*> fitting;
  for (const ListedDevice& listed : devices_) {
    if (device.device_type && device.device_type != listed.type) continue;
    if (device.virtual_device_id && device.virtual_device_id != listed.id) continue;
    fitting.push_back(&listed);
  }
  return fitting;
}

const ListedDevice* DeviceConfiguration::LowestOf(DeviceKind type) const {
  const ListedDevice* lowest = nullptr;
  for (const ListedDevice& device : devices_) {
    if (device.type == type && (!lowest || device.id < lowest->id)) lowest = &device;
  }
  return lowest;
}

VirtualDevice DeviceConfiguration::Resolve(const VirtualDevice& stated) const {
  if (!stated.target || stated.virtual_device_id) return stated;
  const ListedDevice* only = nullptr;
  for (const ListedDevice& device : devices_) {
    if (!device.Has(*stated.target)) continue;
    if (only) return stated;
    only = &device;
  }
  VirtualDevice resolved = stated;
  if (only) resolved.virtual_device_id = only->id;
  return resolved;
}

Status DeviceConfiguration::SetHost(std::optional<VirtualDevice> host) {
  if (!host) host = COLLAGE_TRY(HostOfTargets(devices_));
  host_ = host.value_or(VirtualDevice{DeviceKind::kCpu, std::nullopt, std::nullopt, ""});
  if (!host_.device_type || host_.target || !host_.memory_scope.empty()) {
    return Fail("the host is '" + host_.ToString() + "', expected the type and id of a device");
  }
  if (!host_.virtual_device_id) {
    const ListedDevice* lowest = LowestOf(*host_.device_type);
    host_.virtual_device_id = lowest ? lowest->id : 0;
  }
  if (Find(host_)) return {};
  if (*host_.device_type != DeviceKind::kCpu) return Fail("the host '" + host_.ToString() + "' is none of the devices");
  devices_.push_back({DeviceKind::kCpu, *host_.virtual_device_id, {Target{DeviceKind::kCpu, {}}}});
  return {};
}

Status DeviceConfiguration::SetDefault(std::optional<VirtualDevice> default_device, size_t listed) {
  if (default_device) {
    default_ = *default_device;
    if (!default_.device_type || default_.target) {
      return Fail("the default is '" + default_.ToString() + "', expected the type and id of a device, and perhaps a scope");
    }
    const ListedDevice* lowest = LowestOf(*default_.device_type);
    if (!default_.virtual_device_id && lowest) default_.virtual_device_id = lowest->id;
    if (default_.virtual_device_id && Find(default_)) return {};
    return Fail("the default '" + default_.ToString() + "' is none of the devices");
  }
  const ListedDevice* found = listed == 1 ? &devices_.front() : nullptr;
  for (size_t i = 0; listed > 1 && i < listed; ++i) {
    if (devices_[i].type == DeviceKind::kCpu && (!found || devices_[i].id < found->id)) found = &devices_[i];
  }
  if (!found) return Fail("there is no default device: none is given, and several devices are listed without a CPU among them");
  default_ = found->Place();
  return {};
}

Result<DeviceConfiguration> DeviceConfiguration::Create(std::vector<ListedDevice> devices, std::optional<VirtualDevice> host,
                                                        std::optional<VirtualDevice> default_device) {
  DeviceConfiguration configuration;
  configuration.devices_ = std::move(devices);
  const std::vector<ListedDevice>& all = configuration.devices_;
  for (size_t i = 0; i < all.size(); ++i) {
    COLLAGE_TRY_STATUS(CheckTargets(all[i]));
    for (size_t j = 0; j < i; ++j) {
      if (all[j].Place() == all[i].Place()) return Fail("device " + all[i].Place().ToString() + " is listed twice");
    }
  }
  const size_t listed = all.size();
  COLLAGE_TRY_STATUS(configuration.SetHost(std::move(host)));
  COLLAGE_TRY_STATUS(configuration.SetDefault(std::move(default_device), listed));
  return configuration;
}

}  // namespace collage
