#pragma once

#include <vector>

#include "collage/driver/placement.h"
#include "collage/driver/plan.h"

namespace collage {

/// Positions among a plan's choices: of partitions that do not depend on each other, by the thread that runs them.
using Branches = std::vector<std::vector<size_t>>;

struct BranchCandidate {
  Branches branches;
  PricedCandidate candidate;
};

/// Partitions of the plan that do not depend on each other, as candidates of the target that runs such side by side, each on one thread of
/// the host's team. Where chains of partitions begin at one tensor: all of these, all but the longest, as many as there are threads of the
/// most alike times, and likewise of the first partitions alone. Chains go to threads longest first, by the prices on all threads. None
/// where there is no such target or where the team has one thread. Partitions in a form, of fewer bits, of a backend with threads of its
/// own and of another device than the host take no part.
///
/// On one of T threads a kernel takes between as long as on all and T times as long. Where all take most of the latter, those blocks gain
/// most whose threads end at about the same time: they come first. Only measuring tells what gains.
std::vector<BranchCandidate> BranchesSideBySide(const Placement& placement, const Plan& plan, const std::vector<Price>& prices);

/// The candidate that runs these branches of a plan; nothing where they make none.
std::optional<PricedCandidate> SideBySideCandidate(const Placement& placement, const Plan& plan, const Branches& branches);

/// Whether the candidate's price is below the sum of those of the choices whose operators are all its own. False where it has none.
bool IsCheaperThanParts(const Placement& placement, size_t candidate, const std::vector<SearchChoice>& choices,
                        const std::vector<Price>& prices);

/// The target that runs partitions of others side by side on the host; nothing where there is none.
std::optional<size_t> SideBySideTarget(const Placement& placement);

}  // namespace collage
