#pragma once

// Profiles that are compiled when a run wants them, and are kept beside the program file: FILE.profiles/KEY.collage.

#include <filesystem>
#include <functional>
#include <string>

#include "collage/driver/compile.h"
#include "collage/support/result.h"

namespace collage {

/// Where the profile of a program file for the first shapes of the options, and their threads, is kept. The model must be the one that the
/// file was made of, since what is kept answers for that file: errors say that it is another one, or which file cannot be read.
Result<std::filesystem::path> KeptProfile(const std::string& program, const std::string& model, const CompileOptions& options);

/// Where there is no such file, `compile` makes it. Processes that want the same one meanwhile wait for the first. Errors of `compile`, or
/// of the folder, which they name.
Status MakeKeptProfile(const std::filesystem::path& kept, const std::function<Status()>& compile);

}  // namespace collage
