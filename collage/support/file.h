#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "collage/support/result.h"

namespace collage {

/// The whole content of a regular file, or an error that names it and the operating system's reason.
Result<std::string> ReadFile(const std::filesystem::path& path);

/// Writes a file whole or not at all: into a temporary file of the same folder, synced, then renamed over `path`.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

}  // namespace collage
