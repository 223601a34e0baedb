#include "collage/support/cache_folder.h"

#include <cstdlib>

namespace collage {

std::filesystem::path CacheFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::filesystem::path(cache) / "collage";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache/collage";
  return ".collage";
}

}  // namespace collage
