#include "tools/default_cache.h"

#include <cstdlib>

namespace collage::tools {

std::string DefaultCache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/collage/prices.sqlite";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/collage/prices.sqlite";
  return ".collage-prices.sqlite";
}

}  // namespace collage::tools
