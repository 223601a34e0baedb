#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/backend.h"

namespace collage {

/// A backend that this process knows, opened or not.
struct BackendRecord {
  std::string name;
  const Backend* backend = nullptr;  ///< null when its shared object could not be opened
  Presence presence;
};

/// Every backend in order (the last-but-one tie-break of the search), each from its own shared object, opened when first asked for and
/// never closed. A missing library disables only its own backend, and `presence.reason` says why. They are
///   those of this build, in the declared order;
///   those that AddBackend was given;
///   all shared objects in collage/plugins of the folder of this library, by name;
///   the files, and all shared objects in the folders, of the environment variable COLLAGE_BACKENDS (with colons between): so
///   processes that measure and compile for this one find the same ones;
///   those that this process alone has.
std::vector<BackendRecord> AvailableBackends(const Device& device);

/// The backend of that name, present or one that at least loads (Presence::loads), or an error that lists the names and, for one that is
/// absent, the reason. One of this build is found without opening others: whoever loads a program waits for the libraries of that program
/// alone.
Result<const Backend*> FindBackend(const std::string& name, const Device& device);

/// A backend out of this tree, from now on among the available ones; again does nothing. Opening it runs its code. Errors as OpenBackend's
/// (shared_object.h), and where its name is taken.
Status AddBackend(const std::filesystem::path& file);
/// Adds a backend that this process alone has, one that is written in Python, say, behind all others. Its kernels are timed in this
/// process. An error where one of that name is there.
Status AddBackend(std::shared_ptr<const Backend> backend);
/// From now on there is none of that name; who holds it may go on.
void RemoveBackend(const std::string& name);
/// Whether a backend was added so.
bool IsAdded(std::string_view name);
/// Whether its kernels run on the team of the thread that calls them. Graph compilers and added backends have threads of their own.
bool RunsOnTeam(const Backend& backend);

}  // namespace collage
