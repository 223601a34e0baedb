#pragma once

#include <vector>

#include "collage/driver/constraints.h"
#include "collage/driver/placement.h"

namespace collage {

/// The devices of targets, each once; the host first.
std::vector<Device> DevicesOf(const std::vector<PlacementTarget>& targets, const Device& host);

/// A function without what it says of devices, and what follows from that.
struct DeviceConstraints {
  Expr function;
  /// By target: the calls of operators that it may take. Empty: each target may take all.
  std::vector<std::vector<Expr>> may_take;
  /// Pins that are not about devices.
  UserConstraints constraints;
};

/// Plans the devices of a function (docs/design/devices.md): its annotations, and pins to devices ("conv1=opencl:0") or to backends of
/// other devices than the host. With `choose`, whatever they leave open may lie on every device. Errors are contradictions, and devices and
/// nodes that are not there.
Result<DeviceConstraints> ReadDeviceStatements(const Expr& function, const std::vector<PlacementTarget>& targets, const Device& host,
                                               const UserConstraints& constraints, bool choose);

}  // namespace collage
