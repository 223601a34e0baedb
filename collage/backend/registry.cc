#include "collage/backend/registry.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>

#include "collage/backend/registered.h"
#include "collage/runtime/parallel.h"
#include "collage/support/check.h"

namespace collage {
namespace {

// The declared order. Only this file and tests name concrete backends.
constexpr std::array<const char*, 7> kNames = {"dnnl", "openvino", "xsmm", "openblas", "native", "opencl", "reference"};

struct Opened {
  std::string name;
  std::unique_ptr<const Backend> backend;
  std::string reason;
};

Opened Open(const std::string& name) {
  Dl_info self{};
  COLLAGE_CHECK(::dladdr(reinterpret_cast<const void*>(&AvailableBackends), &self) != 0);
  const std::filesystem::path path =
      std::filesystem::path(self.dli_fname).parent_path() / "collage" / ("libcollage_backend_" + name + ".so");
  if (!std::filesystem::exists(path)) return {name, nullptr, "not built: its library was not found when Collage was configured"};
  // RTLD_NODELETE: backends own threads and thread-local state that must outlive a close.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return {name, nullptr, ::dlerror()};
  const auto entry = reinterpret_cast<BackendEntry>(::dlsym(library, kBackendEntrySymbol));
  if (!entry) return {name, nullptr, path.string() + " does not export " + kBackendEntrySymbol};
  const auto* sources = static_cast<const char* const*>(::dlsym(library, kBackendSourcesSymbol));
  return {name, Registered(*entry(), sources ? *sources : ""), {}};
}

const std::vector<Opened>& OpenedBackends() {
  static const std::vector<Opened> opened = [] {
    PrepareThreadPool();
    std::vector<Opened> backends;
    for (const char* name : kNames) backends.push_back(Open(name));
    return backends;
  }();
  return opened;
}

}  // namespace

std::vector<BackendRecord> AvailableBackends(const Device& device) {
  std::vector<BackendRecord> records;
  for (const Opened& opened : OpenedBackends()) {
    Presence presence = opened.backend ? opened.backend->Probe(device) : Presence::Absent(opened.reason);
    records.push_back({opened.name, opened.backend.get(), std::move(presence)});
  }
  return records;
}

Result<const Backend*> FindBackend(const std::string& name, const Device& device) {
  std::string present;
  for (const BackendRecord& record : AvailableBackends(device)) {
    if (record.name == name) {
      if (record.presence.present) return record.backend;
      return Fail("backend '" + name + "' is not available: " + record.presence.reason);
    }
    if (record.presence.present) present += (present.empty() ? "" : ", ") + record.name;
  }
  return Fail("unknown backend '" + name + "'; available: " + present);
}

}  // namespace collage
