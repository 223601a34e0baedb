#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/cache/cache_entry.h"
#include "collage/driver/plan.h"
#include "collage/runtime/executable.h"
#include "collage/support/supervisor.h"

namespace collage {

/// Lets the executable of a plan say which of its kernels runs, as a line that tells its key in the cache.
void WatchKernels(Executable& executable, const Placement& placement, const Plan& plan, Activity& activity);

/// Runs a plan's executable. What a library throws past its backend is an error.
Status RunSafely(Executable& executable, std::span<const Tensor> inputs, std::vector<Tensor>& outputs);

/// The kernel of such a line, found Invalid for this reason; nothing for any other line.
std::optional<CacheEntry> InvalidKernel(const std::string& line, const std::string& reason);

}  // namespace collage
