#pragma once

#include <memory>
#include <string>

#include "collage/backend/backend.h"

namespace collage {

/// A backend as the registry hands it out. What no backend has to do for itself is done around all of them: functions that it does
/// not take whole are run as merged regions (merged_regions.h); and `sources`, which changes with the backend's own code, is part of its
/// version ("2.6.3+1f0c2ab94d11"), so that prices and machine code die with the code that made them. `backend` must outlive the result.
std::unique_ptr<Backend> Registered(const Backend& backend, std::string sources);

}  // namespace collage
