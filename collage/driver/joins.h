#pragma once

#include <vector>

#include "collage/driver/branches.h"
#include "collage/driver/placement.h"
#include "collage/driver/plan.h"

namespace collage {

/// What was added to the candidates of a placement when a plan was the best known one: its partitions joined to larger ones, and these of
/// its branches side by side. Prices of that moment say which; so it is kept, and a compile that measures nothing has the same candidates.
struct JoinedPlan {
  std::vector<SearchChoice> choices;  ///< of the plan
  std::vector<Branches> branches;
};

/// Whether the placement has the choices of the plan.
bool IsOf(const Placement& placement, const JoinedPlan& join);
/// The placement after the join, which must be of it.
Result<PlacementPointer> Joined(const Placement& placement, const JoinedPlan& join, Pricer& pricer);

/// What is kept under this key. None where there is nothing, or where it cannot be read.
Result<std::vector<JoinedPlan>> LoadJoins(Pricer& pricer, const MeasurementKey& key);
Status StoreJoins(Pricer& pricer, const MeasurementKey& key, const std::vector<JoinedPlan>& joins);

}  // namespace collage
