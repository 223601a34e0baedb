#include "tests/conformance/backends.h"

namespace collage::conformance {

std::vector<BackendRecord> PresentBackends(const Device& device) {
  std::vector<BackendRecord> present;
  for (BackendRecord& backend : AvailableBackends(device)) {
    if (backend.presence.present) present.push_back(std::move(backend));
  }
  return present;
}

Device DeviceFor(const Backend& backend, const Device& host) {
  if (backend.Probe(host).present) return host;
  for (const FoundDevice& found : backend.Devices()) {
    const Device device{found.device.kind, found.device.id, host.threads};
    if (backend.Probe(device).present) return device;
  }
  return host;
}

std::vector<BackendRecord> TestedBackends(const Device& device) {
  std::vector<BackendRecord> tested;
  for (BackendRecord& backend : AvailableBackends(device)) {
    if (backend.backend && !(DeviceFor(*backend.backend, device) == device))
      backend.presence = backend.backend->Probe(DeviceFor(*backend.backend, device));
    if (backend.presence.present) tested.push_back(std::move(backend));
  }
  return tested;
}

Result<BackendRecord> FindTested(const std::string& name, const Device& host) {
  std::string names;
  for (BackendRecord& record : TestedBackends(host)) {
    if (record.name == name) return std::move(record);
    names += (names.empty() ? "" : ", ") + record.name;
  }
  for (const BackendRecord& record : AvailableBackends(host)) {
    if (record.name == name) return Fail("backend '" + name + "' is absent: " + record.presence.reason);
  }
  return Fail("there is no backend '" + name + "'; available: " + names);
}

}  // namespace collage::conformance
