#pragma once

#include <vector>

#include "collage/driver/placement.h"
#include "collage/driver/plan.h"

namespace collage {

/// Partitions of the plan that do not depend on each other, as candidates of the target that runs such side by side, each on one thread of
/// the host's team. Where chains of partitions begin at one tensor: all of these, all but the longest, as many as there are threads of the
/// most alike times, and likewise of the first partitions alone. Chains go to threads longest first, by the prices on all threads. None
/// where there is no such target or where the team has one thread. Partitions in a form, of fewer bits, of a backend with threads of its
/// own and of another device than the host take no part.
///
/// On one of T threads a kernel takes between as long as on all and T times as long. What would gain most if all took nine tenths of the
/// latter comes first: blocks whose threads end at about the same time. Only measuring tells what gains.
std::vector<PricedCandidate> BranchesSideBySide(const Placement& placement, const Plan& plan, const std::vector<Price>& prices);

/// The target that runs partitions of others side by side on the host; nothing where there is none.
std::optional<size_t> SideBySideTarget(const Placement& placement);

}  // namespace collage
