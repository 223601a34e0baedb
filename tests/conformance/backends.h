#pragma once

#include <string>
#include <vector>

#include "collage/backend/registry.h"

namespace collage::conformance {

/// Every backend of the registry, and those whose shared objects the environment variable COLLAGE_EXTRA_BACKENDS names
/// (colon-separated paths): so a backend that is not in the registry yet is tested by the same suite.
std::vector<BackendRecord> AllBackends(const Device& device);
/// Those that are present.
std::vector<BackendRecord> PresentBackends(const Device& device);

}  // namespace collage::conformance
