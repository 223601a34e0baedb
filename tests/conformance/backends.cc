#include "tests/conformance/backends.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>

#include "collage/backend/registered.h"

namespace collage::conformance {
namespace {

BackendRecord OpenExtra(const std::string& path, const Device& device) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return {path, nullptr, Presence::Absent(::dlerror())};
  const auto entry = reinterpret_cast<BackendEntry>(::dlsym(library, kBackendEntrySymbol));
  if (!entry) return {path, nullptr, Presence::Absent("it exports no " + std::string(kBackendEntrySymbol))};
  static std::map<std::string, std::unique_ptr<const Backend>> opened;  // as the registry hands out its own
  std::unique_ptr<const Backend>& backend = opened[path];
  if (!backend) backend = Registered(*entry(), "");
  return {std::string(backend->Name()), backend.get(), backend->Probe(device)};
}

}  // namespace

std::vector<BackendRecord> AllBackends(const Device& device) {
  std::vector<BackendRecord> backends = AvailableBackends(device);
  const char* extra = std::getenv("COLLAGE_EXTRA_BACKENDS");
  std::istringstream paths(extra ? extra : "");
  for (std::string path; std::getline(paths, path, ':');) backends.push_back(OpenExtra(path, device));
  return backends;
}

std::vector<BackendRecord> PresentBackends(const Device& device) {
  std::vector<BackendRecord> present;
  for (BackendRecord& backend : AllBackends(device)) {
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
  for (BackendRecord& backend : AllBackends(device)) {
    if (backend.backend && !(DeviceFor(*backend.backend, device) == device))
      backend.presence = backend.backend->Probe(DeviceFor(*backend.backend, device));
    if (backend.presence.present) tested.push_back(std::move(backend));
  }
  return tested;
}

}  // namespace collage::conformance
