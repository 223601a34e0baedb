#pragma once

#include <vector>

#include "collage/driver/placement.h"
#include "collage/driver/plan.h"

namespace collage {

/// Tunes the schedules of kernels that code was generated for, those of the plan first, for as many seconds at most. Only templates are
/// tuned of which it is not excluded, at the declared confidence, that they are within a factor of their best rival's price. What was tried
/// is kept with the prices, so that whoever is stopped goes on there. Gives the placement with what was found as further variants.
Result<PlacementPointer> Tune(PlacementPointer placement, const std::vector<Evidence>& evidence, const Plan& plan, Pricer& pricer,
                              double seconds, const Declared& declared, const Progress& progress);

}  // namespace collage
