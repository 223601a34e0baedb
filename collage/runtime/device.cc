#include "collage/runtime/device.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "collage/support/control_group.h"
#include "collage/support/hash.h"

namespace collage {

std::string ToString(const Device& device) { return std::string(Name(device.kind)) + ":" + std::to_string(device.id); }

Result<Device> ParseDevice(const std::string& text, const Device& host) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::optional<DeviceKind> kind = DeviceKindFromName(text.substr(0, colon));
  Device device{kind.value_or(DeviceKind::kCpu), 0, host.threads};
  const char* end = text.data() + text.size();
  const char* digits = std::min(text.data() + colon + 1, end);
  const auto [stopped, error] = std::from_chars(digits, end, device.id);
  if (!kind || error != std::errc() || stopped != end || device.id < 0)
    return Fail("'" + text + "' is no device, expected one such as cpu:0");
  return device;
}

std::string Fingerprint(const Device& device) {
  if (device.kind != DeviceKind::kCpu) return "device-" + std::to_string(device.id);
  // Values of these /proc/cpuinfo keys; frequencies and core numbers change from boot to boot and are left out.
  std::ifstream file("/proc/cpuinfo");
  std::string description;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (const char* key : {"vendor_id", "cpu family", "model\t", "model name", "stepping", "flags", "cache size"}) {
      if (line.rfind(key, 0) == 0) description += line + "\n";
    }
  }
  std::ostringstream text;
  text << "cpu-" << std::hex << HashBytes(description);
  return text.str();
}

int AvailableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int processors = CPU_COUNT(&set);
  // Rounded down: a team waits for its slowest thread, and where it has more than it may use all of the time, one is always stopped.
  const double share = std::min<double>(processors, ReadControlGroupLimits().processors.value_or(processors));
  return std::max(1, static_cast<int>(share));
}

}  // namespace collage
