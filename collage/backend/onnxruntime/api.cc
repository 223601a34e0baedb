#include "collage/backend/onnxruntime/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "collage/support/shared_object.h"

namespace collage::onnxruntime {
namespace {

/// Where it was when this was built, then the package beside the one that this is installed as part of (site-packages/collage/lib/collage).
std::vector<std::filesystem::path> Places() {
  std::vector<std::filesystem::path> places;
  if (const std::string built_with = COLLAGE_ONNXRUNTIME_LIBRARY; !built_with.empty()) places.emplace_back(built_with);
  const std::filesystem::path packages = SharedObjectOf(&OpenLibrary).parent_path() / "../../..";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(packages / "onnxruntime/capi", error)) {
    if (entry.path().filename().string().starts_with("libonnxruntime.so")) places.push_back(entry.path());
  }
  return places;
}

Result<void*> OpenAnywhere() {
  std::string tried;
  for (const std::filesystem::path& place : Places()) {
    Result<void*> library = OpenSharedObject(place);
    if (library) return library;
    tried += "; " + library.error().message;
  }
  return Fail("the Python package onnxruntime was not found when Collage was built" + tried);
}

/// From version 1.29 on the library of the Python package tells its makers of sessions, names of models among them, unless it is told
/// not to. Nobody who runs Collage has agreed to that. A user's own setting stays.
void TellNobody() { ::setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/0); }

Result<Library> Open() {
  TellNobody();
  void* handle = COLLAGE_TRY(OpenAnywhere());
  const auto get_base = reinterpret_cast<const ApiBase* (*)()>(::dlsym(handle, "OrtGetApiBase"));
  if (!get_base) return Fail("onnxruntime: the library does not export OrtGetApiBase");
  const ApiBase* base = get_base();
  Library library{base->GetApi(kApiVersion), base->GetVersionString(), nullptr, nullptr};
  if (!library.api) return Fail(std::string("onnxruntime: version ") + library.version + " has no interface of version 5");
  COLLAGE_TRY_STATUS(Check(library, library.api->CreateEnv(kLogErrors, "collage", &library.env)));
  COLLAGE_TRY_STATUS(Check(library, library.api->DisableTelemetryEvents(library.env)));
  COLLAGE_TRY_STATUS(Check(library, library.api->CreateCpuMemoryInfo(kDeviceAllocator, kDefaultMemory, &library.memory)));
  return library;
}

}  // namespace

const Result<Library>& OpenLibrary() {
  static const auto* library = new Result<Library>(Open());
  return *library;
}

Status Check(const Library& library, OrtStatus* status) {
  if (!status) return {};
  const std::string message = library.api->GetErrorMessage(status);
  library.api->ReleaseStatus(status);
  return Fail("onnxruntime: " + message);
}

}  // namespace collage::onnxruntime
