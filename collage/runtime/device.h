#pragma once

#include <string>

#include "collage/support/result.h"
#include "collage/tensor/device_kind.h"

namespace collage {

/// Where kernels run and with how many threads. The thread count is part of it because it rules every backend alike and
/// because prices hold for one count only.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int id = 0;
  int threads = 1;

  friend bool operator==(const Device&, const Device&) = default;
};

/// "opencl:0".
std::string ToString(const Device& device);
/// The reverse, with the threads of `host`.
Result<Device> ParseDevice(const std::string& text, const Device& host);

/// Identifies the processor for cached prices: vendor, family, model, stepping and instruction set extensions.
std::string Fingerprint(const Device& device);
/// Processors that this process may use all of the time: its affinity, and the quota of its control groups (support/control_group.h).
int AvailableThreads();

}  // namespace collage
