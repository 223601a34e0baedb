#pragma once

#include <filesystem>

namespace collage {

/// Where what can be made again is kept for this user: ~/.cache/collage, or below XDG_CACHE_HOME (XDG Base Directory Specification), or
/// .collage of the current folder where there is no home.
std::filesystem::path CacheFolder();

}  // namespace collage
