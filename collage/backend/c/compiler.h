#pragma once

#include <filesystem>
#include <string>

#include "collage/support/result.h"

namespace collage::c_source {

/// The system's C compiler: what the environment variable COLLAGE_CC names, else cc; a path, or a name to be found on PATH.
Result<std::filesystem::path> FindCompiler();

/// Its first words about itself: "cc (Debian 12.2.0-14) 12.2.0".
Result<std::string> VersionOf(const std::filesystem::path& compiler);

/// Relocatable machine code for this processor. Source and result pass through memory, so no file is left behind however this ends. Errors
/// quote the compiler's first error and the line that it is about; one that takes longer than `most_seconds` is ended.
Result<std::string> CompileSource(const std::filesystem::path& compiler, const std::string& source, double most_seconds);

}  // namespace collage::c_source
