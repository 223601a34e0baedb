#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "collage/backend/backend.h"

namespace collage {

/// A backend that this process knows, opened or not.
struct BackendRecord {
  std::string name;
  const Backend* backend = nullptr;  ///< null when its shared object could not be opened
  Presence presence;
};

/// Every backend in order (the last-but-one tie-break of the search), each from its own shared object, opened on first call and never
/// closed. A missing library disables only its own backend, and `presence.reason` says why. They are
///   those of this build, in the declared order;
///   those that AddBackend was given;
///   all shared objects in collage/plugins of the folder of this library, by name;
///   the files, and all shared objects in the folders, of the environment variable COLLAGE_BACKENDS (with colons between).
/// The last is how processes that measure and compile for this one find the same ones.
std::vector<BackendRecord> AvailableBackends(const Device& device);

/// The present backend of that name, or an error that lists the names and, for one that is absent, the reason.
Result<const Backend*> FindBackend(const std::string& name, const Device& device);

/// A backend out of this tree, from now on among the available ones; again does nothing. Opening it runs its code. Errors as OpenBackend's
/// (shared_object.h), and where its name is taken.
Status AddBackend(const std::filesystem::path& file);

}  // namespace collage
