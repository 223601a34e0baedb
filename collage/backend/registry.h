#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/backend.h"

namespace collage {

/// A backend that this build knows, opened or not.
struct BackendRecord {
  std::string name;
  const Backend* backend = nullptr;  ///< null when its shared object could not be opened
  Presence presence;
};

/// Every backend in the declared order, those that were added last (the last-but-one tie-break of the search), each from its own shared
/// object, opened privately (RTLD_LOCAL: two LLVMs or two OpenMPs must not see each other) on first call and never closed. A missing
/// library disables only its own backend, and `presence.reason` says why.
std::vector<BackendRecord> AvailableBackends(const Device& device);

/// The present backend of that name, or an error that lists the names and, for one that is absent, the reason.
Result<const Backend*> FindBackend(const std::string& name, const Device& device);

/// Adds a backend that this process alone has, one that is written in Python, say, behind all others. Its kernels are timed in this
/// process. An error where one of that name is there.
Status AddBackend(std::shared_ptr<const Backend> backend);
/// From now on there is none of that name; who holds it may go on.
void RemoveBackend(const std::string& name);
/// Whether a backend was added so.
bool IsAdded(std::string_view name);

}  // namespace collage
