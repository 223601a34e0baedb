#pragma once

#include <vector>

#include "collage/driver/placement.h"
#include "collage/driver/plan.h"

namespace collage {

/// Partitions of the plan that do not depend on each other, as candidates of the target that runs such side by side, each on one thread of
/// the host's team: where chains of partitions begin at one tensor, all of these, and all but the longest where that takes most of the
/// time. Chains go to threads longest first, by the prices on all threads. Those that might gain most come first; none where there is no
/// such target, where the team has one thread, or where nothing is known to be gained. Partitions in a form, of fewer bits, of a backend
/// with threads of its own and of another device than the host take no part.
///
/// What is known of a kernel on all T threads says that on one it takes between as long and T times as long. So what can be gained is
/// bounded by the time of all but the longest thread's partitions; only measuring tells what is.
std::vector<PricedCandidate> BranchesSideBySide(const Placement& placement, const Plan& plan, const std::vector<Price>& prices);

/// The target that runs partitions of others side by side on the host; nothing where there is none.
std::optional<size_t> SideBySideTarget(const Placement& placement);

}  // namespace collage
