#include "collage/runtime/device.h"

#include <sched.h>

#include <fstream>
#include <sstream>

#include "collage/support/hash.h"

namespace collage {

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
  return CPU_COUNT(&set);
}

}  // namespace collage
