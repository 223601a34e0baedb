#pragma once

#include "collage/driver/compile.h"
#include "collage/driver/placement.h"
#include "collage/lower/lower.h"

namespace collage {

/// The cheapest plan by prices in context. The searched plan is run as a whole, its kernels' times inside the program replace those
/// they had alone, and the search is asked again, which then tries whatever might still be better, until the plan consists of such
/// prices only, each from several rounds. Each round runs beside the first plan, whose kernels tell by how much the machine drifted
/// meanwhile. Ends after `options.context_seconds` too, or when asked to stop; then the plan is the cheapest of what was tried in
/// context. What was ended by success or by time (other than a budget) is not begun
/// again with the same cache.
Result<Plan> PriceInContext(Placement& placement, const LowerOptions& lower, const CompileOptions& options);

}  // namespace collage
