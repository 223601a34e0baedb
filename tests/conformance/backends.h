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
/// And those that run on another device than the host's CPU.
std::vector<BackendRecord> TestedBackends(const Device& device);
/// Where a backend is tested: on the host, else on the first device that it can use.
Device DeviceFor(const Backend& backend, const Device& host);

}  // namespace collage::conformance
