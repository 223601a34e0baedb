#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// How a process ended, of which waitpid gave this status: "signal 11, Segmentation fault", "exit code 3".
std::string WaitStatusToString(int status);

/// Starts a program with these arguments after its own name, in this process's environment; the error says that it cannot be started, and
/// why. `attributes` may be null.
Result<pid_t> Spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const posix_spawn_file_actions_t& actions, const posix_spawnattr_t* attributes = nullptr);

}  // namespace collage
