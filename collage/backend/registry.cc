#include "collage/backend/registry.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>

#include "collage/backend/registered.h"
#include "collage/backend/shared_object.h"
#include "collage/support/shared_object.h"

namespace collage {
namespace {

// The declared order. Only this file and tests name concrete backends.
constexpr std::array<const char*, 15> kNames = {"dnnl",     "openvino", "onnxruntime", "xsmm",         "xnnpack",
                                                "openblas", "native",   "opencl",      "clblast",      "cuda",
                                                "cublas",   "cudnn",    "c",           "side_by_side", "reference"};
constexpr const char* kPrefix = "libcollage_backend_";

struct Opened {
  std::string name;
  std::filesystem::path file;
  std::unique_ptr<const Backend> backend;
  std::string reason;
};

/// Beside this library.
std::filesystem::path Folder() { return SharedObjectOf(&AvailableBackends).parent_path() / "collage"; }

Opened OpenDeclared(const std::string& name) {
  const std::filesystem::path file = Folder() / (kPrefix + name + ".so");
  if (!std::filesystem::exists(file)) return {name, file, nullptr, "not built: its library was not found when Collage was configured"};
  Result<std::unique_ptr<const Backend>> backend = OpenBackend(file);
  if (!backend) return {name, file, nullptr, backend.error().message};
  return {name, file, std::move(*backend), {}};
}

/// The file itself, or the shared objects of a folder by name. What is not there stays, to be listed as absent.
std::vector<std::filesystem::path> SharedObjects(const std::filesystem::path& place) {
  if (!std::filesystem::is_directory(place)) return {place};
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Of COLLAGE_BACKENDS and the installation.
std::vector<std::filesystem::path> SearchPath() {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path installed = Folder() / "plugins";
  if (std::filesystem::is_directory(installed)) found = SharedObjects(installed);
  const char* variable = std::getenv("COLLAGE_BACKENDS");
  std::istringstream places(variable ? variable : "");
  for (std::string place; std::getline(places, place, ':');) {
    if (place.empty()) continue;
    for (std::filesystem::path& file : SharedObjects(place)) found.push_back(std::move(file));
  }
  return found;
}

/// What is opened; entries stay where they are.
class Registry {
 public:
  static Registry& Get() {
    static Registry registry;
    return registry;
  }

  Status Add(const std::filesystem::path& file) {
    const std::lock_guard lock(mutex_);
    const Opened& opened = *AddOnce(file);
    return opened.backend ? Status() : Fail(opened.reason);
  }

  std::vector<const Opened*> All() {
    const std::lock_guard lock(mutex_);
    std::vector<const Opened*> all;
    for (size_t i = 0; i < kNames.size(); ++i) all.push_back(Declared(i));
    SearchOnce();
    for (const auto& plugin : plugins_) all.push_back(plugin.get());
    return all;
  }

  /// Null where there is none of that name.
  const Opened* Find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto declared = std::find(kNames.begin(), kNames.end(), name);
    if (declared != kNames.end()) return Declared(static_cast<size_t>(declared - kNames.begin()));
    SearchOnce();
    const auto plugin = std::find_if(plugins_.begin(), plugins_.end(), [&](const auto& entry) { return entry->name == name; });
    return plugin == plugins_.end() ? nullptr : plugin->get();
  }

 private:
  const Opened* Declared(size_t number) {
    std::unique_ptr<const Opened>& opened = declared_[number];
    if (!opened) opened = std::make_unique<const Opened>(OpenDeclared(kNames[number]));
    return opened.get();
  }

  void SearchOnce() {
    if (was_searched_) return;
    was_searched_ = true;
    for (const std::filesystem::path& file : SearchPath()) AddOnce(file);
  }

  const Opened* AddOnce(const std::filesystem::path& given) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::weakly_canonical(given, error);
    const auto known = std::find_if(plugins_.begin(), plugins_.end(), [&](const auto& entry) { return entry->file == file; });
    if (known != plugins_.end()) return known->get();
    return plugins_.emplace_back(std::make_unique<const Opened>(OpenPlugin(error ? given : file))).get();
  }

  Opened OpenPlugin(const std::filesystem::path& file) const {
    // A name for the list, until it has said its own.
    std::string name = file.stem().string();
    if (name.starts_with(kPrefix)) name = name.substr(std::string(kPrefix).size());
    Result<std::unique_ptr<const Backend>> backend = OpenBackend(file);
    if (!backend) return {name, file, nullptr, backend.error().message};
    name = (*backend)->Name();
    const bool is_declared = std::find(kNames.begin(), kNames.end(), name) != kNames.end();
    const bool is_known = std::any_of(plugins_.begin(), plugins_.end(), [&](const auto& entry) { return entry->name == name; });
    if (is_declared || is_known) return {name, file, nullptr, file.string() + ": there is another backend named '" + name + "'"};
    return {name, file, std::move(*backend), {}};
  }

  std::mutex mutex_;
  bool was_searched_ = false;
  std::array<std::unique_ptr<const Opened>, kNames.size()> declared_;
  std::vector<std::unique_ptr<const Opened>> plugins_;
};

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
  const std::vector<const Opened*> opened = Registry::Get().All();
  const bool is_opened = std::any_of(opened.begin(), opened.end(), [&](const Opened* other) { return other->name == name; });
  if (IsAdded(name) || is_opened) return Fail("there is a backend '" + name + "' already");
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

bool RunsOnTeam(const Backend& backend) { return !IsAdded(backend.Name()) && backend.Rules().style != BackendRules::Style::kPredicate; }

std::vector<BackendRecord> AvailableBackends(const Device& device) {
  std::vector<BackendRecord> records;
  for (const Opened* opened : Registry::Get().All()) {
    Presence presence = opened->backend ? opened->backend->Probe(device) : Presence::Absent(opened->reason);
    records.push_back({opened->name, opened->backend.get(), std::move(presence)});
  }
  for (const Backend* added : PresentlyAdded()) records.push_back({std::string(added->Name()), added, added->Probe(device)});
  return records;
}

Result<const Backend*> FindBackend(const std::string& name, const Device& device) {
  const Opened* opened = Registry::Get().Find(name);
  const Backend* found = opened ? opened->backend.get() : nullptr;
  for (const Backend* added : PresentlyAdded()) found = !opened && added->Name() == name ? added : found;
  if (opened || found) {
    const Presence presence = found ? found->Probe(device) : Presence::Absent(opened->reason);
    if (presence.present || presence.loads) return found;
    return Fail("backend '" + name + "' is not available: " + presence.reason);
  }
  std::string present;
  for (const BackendRecord& record : AvailableBackends(device)) {
    if (record.presence.present) present += (present.empty() ? "" : ", ") + record.name;
  }
  return Fail("unknown backend '" + name + "'; available: " + present +
              "; one that does not come with Collage is named by --plugin or COLLAGE_BACKENDS, or registered by its process");
}

Status AddBackend(const std::filesystem::path& file) { return Registry::Get().Add(file); }

}  // namespace collage
