#pragma once

#include <string>
#include <vector>

#include "collage/driver/placement.h"
#include "collage/pricing/transition.h"

namespace collage {

/// Transitions between the backends of the targets; the fallback, which never competes, takes no part.
Result<TransitionCosts> TransitionsBetween(const std::vector<PlacementTarget>& targets, Pricer& pricer, const Progress& progress);

/// The matrix for a search whose backends are numbered as the targets; the fallback's transitions cost nothing.
std::vector<std::vector<Cost>> TransitionMatrix(const std::vector<PlacementTarget>& targets, const TransitionCosts& costs);

/// All that are present, priced for models whose weights stay in the caches or do not. For `collage backends --costs`.
Result<TransitionCosts> BackendTransitions(const std::string& cache, int threads, bool evicting, const Progress& progress);

}  // namespace collage
