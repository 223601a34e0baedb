#include "collage/backend/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>

#include "collage/backend/registered.h"
#include "collage/runtime/parallel.h"
#include "collage/support/check.h"

namespace collage {
namespace {

// The declared order. Only this file and tests name concrete backends.
constexpr std::array<const char*, 6> kNames = {"dnnl", "openvino", "openblas", "native", "opencl", "reference"};

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

struct Added {
  std::shared_ptr<const Backend> own;
  std::shared_ptr<const Backend> backend;  // as the registry hands it out
  bool is_removed = false;
};

/// Those of this process. None is ever dropped: whoever compiles may hold it.
struct AddedBackends {
  std::mutex mutex;
  std::vector<Added> all;
};

AddedBackends& OfThisProcess() {
  static AddedBackends added;
  return added;
}

std::vector<const Backend*> PresentlyAdded() {
  AddedBackends& added = OfThisProcess();
  const std::lock_guard lock(added.mutex);
  std::vector<const Backend*> backends;
  for (const Added& one : added.all) {
    if (!one.is_removed) backends.push_back(one.backend.get());
  }
  return backends;
}

}  // namespace

Status AddBackend(std::shared_ptr<const Backend> backend) {
  const std::string name(backend->Name());
  const auto is_of_name = [&](const auto& other) { return name == other; };
  if (IsAdded(name) || std::any_of(kNames.begin(), kNames.end(), is_of_name)) return Fail("there is a backend '" + name + "' already");
  AddedBackends& added = OfThisProcess();
  const std::lock_guard lock(added.mutex);
  std::shared_ptr<const Backend> registered = Registered(*backend, {});
  added.all.push_back({std::move(backend), std::move(registered)});
  return {};
}

void RemoveBackend(const std::string& name) {
  AddedBackends& added = OfThisProcess();
  const std::lock_guard lock(added.mutex);
  for (Added& one : added.all) one.is_removed = one.is_removed || one.own->Name() == name;
}

bool IsAdded(std::string_view name) {
  const std::vector<const Backend*> added = PresentlyAdded();
  return std::any_of(added.begin(), added.end(), [&](const Backend* backend) { return backend->Name() == name; });
}

std::vector<BackendRecord> AvailableBackends(const Device& device) {
  std::vector<BackendRecord> records;
  for (const Opened& opened : OpenedBackends()) {
    Presence presence = opened.backend ? opened.backend->Probe(device) : Presence::Absent(opened.reason);
    records.push_back({opened.name, opened.backend.get(), std::move(presence)});
  }
  for (const Backend* added : PresentlyAdded()) records.push_back({std::string(added->Name()), added, added->Probe(device)});
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
  return Fail("unknown backend '" + name + "'; available: " + present +
              "; a backend of the user's is there once its process has registered it");
}

}  // namespace collage
