#pragma once

// Where a tensor lies and who compiles what makes it. Each field may be open: nothing is known of it yet. It stands this low
// because the text of programs speaks of it: parameters, results, on_device and device_copy.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/target.h"
#include "collage/ir/type.h"

namespace collage {

/// In the order in which two of them are compared.
enum class VirtualDeviceField : uint8_t { kDeviceType, kVirtualDeviceId, kTarget, kMemoryScope };

/// "device_type", "virtual_device_id", "target", "memory_scope".
std::string_view Name(VirtualDeviceField field);

/// Type, id and scope are the place of a tensor. Targets of one device share its memory, so they make no copies.
struct VirtualDevice {
  std::optional<DeviceKind> device_type;
  std::optional<int64_t> virtual_device_id;
  std::optional<Target> target;  ///< of that device type
  std::string memory_scope;      ///< empty: open

  /// "TYPE:ID@SCOPE -attribute=value ..", every part optional ("cuda", ":1", "@texture"); attributes need the type and are, with it,
  /// the target. "?" is all open.
  static Result<VirtualDevice> Parse(std::string_view text);
  /// The form that Parse reads.
  [[nodiscard]] std::string ToString() const;
  /// The same without target.
  [[nodiscard]] VirtualDevice Place() const { return {device_type, virtual_device_id, std::nullopt, memory_scope}; }

  friend bool operator==(const VirtualDevice& a, const VirtualDevice& b);
};

/// What either side constrains, or the first field in which they differ; of two targets one of which refines the other, the
/// refining one.
struct JoinedDevice {
  VirtualDevice device;
  std::optional<VirtualDeviceField> conflict;
};
JoinedDevice Join(const VirtualDevice& a, const VirtualDevice& b);
/// Nothing where neither is the other or refines it.
std::optional<Target> JoinTargets(const Target& a, const Target& b);

/// `a` with its open fields filled from `b`, in the order type, id, then target and scope, as long as what `b` says of earlier
/// fields is `a`'s too: an id means nothing beside another type.
VirtualDevice Default(const VirtualDevice& a, const VirtualDevice& b);

/// How many tensors a value of this type has, those of a function's parameters and result included.
size_t CountDeviceTensors(const Type& type);

/// Devices of a value, one for each of those tensors in order, parameters before results. They are written like the type,
/// "(cpu:0, cuda:0)", "fn (cpu:0) -> cuda:0"; one device alone means every tensor. Errors say where the text leaves that form.
Result<std::vector<VirtualDevice>> ParseDevices(std::string_view text, const Type& type);
/// The shortest form that ParseDevices reads back: one device alone where all are equal.
std::string ToString(std::span<const VirtualDevice> devices, const Type& type);

}  // namespace collage
