#pragma once

#include <string>

#include "collage/support/cache_folder.h"

namespace collage::tools {

/// ~/.cache/collage/prices.sqlite (or below XDG_CACHE_HOME).
inline std::string DefaultCache() { return (CacheFolder() / "prices.sqlite").string(); }

}  // namespace collage::tools
