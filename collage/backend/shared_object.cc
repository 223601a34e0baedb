#include "collage/backend/shared_object.h"

#include <dlfcn.h>

#include <cstdio>

#include "collage/backend/entry.h"
#include "collage/backend/registered.h"
#include "collage/runtime/parallel.h"
#include "collage/support/file.h"
#include "collage/support/hash.h"
#include "collage/support/shared_object.h"

namespace collage {
namespace {

Status CheckEntry(const BackendEntry& entry) {
  if (entry.contract != kBackendContract) {
    return Fail("was built for contract " + std::to_string(entry.contract) + " of backends, this is " + std::to_string(kBackendContract) +
                "; build it with the headers of this Collage");
  }
  if (entry.headers != std::string(kContractHeaders)) {
    return Fail(std::string("was built with other headers (") + entry.headers + ", this Collage has " + kContractHeaders +
                "); build it again with those of this Collage");
  }
  return {};
}

/// What changes with the code of a backend.
Result<std::string> SourcesOf(void* library, const std::filesystem::path& file) {
  const auto* sources = static_cast<const char* const*>(::dlsym(library, kBackendSourcesSymbol));
  if (sources) return std::string(*sources);
  const uint64_t hash = HashBytes(COLLAGE_TRY(ReadFile(file)));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return std::string(text);
}

}  // namespace

Result<std::unique_ptr<const Backend>> OpenBackend(const std::filesystem::path& file) {
  PrepareThreadPool();
  void* library = COLLAGE_TRY(OpenSharedObject(file));
  const auto* entry = static_cast<const BackendEntry*>(::dlsym(library, kBackendEntrySymbol));
  if (!entry) return Fail(file.string() + ": is no backend: it does not export " + kBackendEntrySymbol);
  const Status fits = CheckEntry(*entry);
  if (!fits) return Fail(file.string() + " " + fits.error().message);
  return Registered(*entry->backend(), COLLAGE_TRY(SourcesOf(library, file)));
}

}  // namespace collage
