#pragma once

#include <optional>
#include <vector>

#include "collage/ir/virtual_device.h"

namespace collage {

/// A device that a program may use, and its targets: the first is the device's own, the others refine it.
struct ListedDevice {
  DeviceKind type = DeviceKind::kCpu;
  int64_t id = 0;
  std::vector<Target> targets;

  [[nodiscard]] VirtualDevice Place() const { return {type, id, std::nullopt, ""}; }
  [[nodiscard]] bool Has(const Target& target) const;
  /// Whether one of its targets has this compiler.
  [[nodiscard]] bool HasCompiler(const std::string& compiler) const;
};

/// "cuda:0", or with its targets "cuda:0; cuda; cuda -compiler=cudnn". Errors name what is wrong.
Result<ListedDevice> ParseListedDevice(const std::string& text);

/// What a program is planned for: the devices, the host among them, and the default.
class DeviceConfiguration {
 public:
  /// `host` and `default_device` where they are given. Else the host is what a target's -host= says, else the lowest CPU listed, else
  /// cpu:0 is added; the default, which may have a scope, is the only device listed, else the lowest CPU listed. Errors on a device
  /// listed twice, on targets of another device type or that do not refine the first, on a host or default that is no device, on
  /// hosts that contradict each other, and where there is no default.
  static Result<DeviceConfiguration> Create(std::vector<ListedDevice> devices, std::optional<VirtualDevice> host,
                                            std::optional<VirtualDevice> default_device);

  [[nodiscard]] const std::vector<ListedDevice>& devices() const { return devices_; }
  [[nodiscard]] const VirtualDevice& host() const { return host_; }
  [[nodiscard]] const VirtualDevice& default_device() const { return default_; }

  /// Null when not listed.
  [[nodiscard]] const ListedDevice* Find(DeviceKind type, int64_t id) const;
  /// The place that type and id of `device` name; both must be known.
  [[nodiscard]] const ListedDevice* Find(const VirtualDevice& device) const { return Find(*device.device_type, *device.virtual_device_id); }
  /// All whose type and id are what `device` says, where it says anything.
  [[nodiscard]] std::vector<const ListedDevice*> Fitting(const VirtualDevice& device) const;
  /// Null when none is listed.
  [[nodiscard]] const ListedDevice* LowestOf(DeviceKind type) const;
  /// What a statement says with the configuration in mind: a target that one device alone has states that device's id.
  [[nodiscard]] VirtualDevice Resolve(const VirtualDevice& stated) const;

 private:
  Status SetHost(std::optional<VirtualDevice> host);
  Status SetDefault(std::optional<VirtualDevice> default_device, size_t listed);

  std::vector<ListedDevice> devices_;
  VirtualDevice host_;
  VirtualDevice default_;
};

}  // namespace collage
