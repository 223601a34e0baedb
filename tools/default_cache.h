#pragma once

#include <string>

namespace collage::tools {

/// ~/.cache/collage/prices.sqlite (or below XDG_CACHE_HOME).
std::string DefaultCache();

}  // namespace collage::tools
