#pragma once

#include <string>
#include <vector>

#include "collage/backend/registry.h"

namespace collage::conformance {

/// The backends of the registry that are present. One that does not come with Collage is tested by the same suite where the environment
/// variable COLLAGE_BACKENDS names it.
std::vector<BackendRecord> PresentBackends(const Device& device);
/// And those that run on another device than the host's CPU.
std::vector<BackendRecord> TestedBackends(const Device& device);
/// The one of that name. Errors say that it is absent and why, or which there are.
Result<BackendRecord> FindTested(const std::string& name, const Device& host);
/// Where a backend is tested: on the host, else on the first device that it can use.
Device DeviceFor(const Backend& backend, const Device& host);

}  // namespace collage::conformance
