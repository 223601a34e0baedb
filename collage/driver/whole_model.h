#pragma once

// The whole model in the form in which it came, as a candidate of every graph compiler.

#include <vector>

#include "collage/driver/placement.h"
#include "collage/ir/module.h"

namespace collage {

/// One for each of the specs whose compiler takes regions: all calls of the placement's function. None without a model, or where calls lie
/// in several blocks.
std::vector<CandidatePartition> WholeModels(const Placement& placement, const std::vector<SpecPointer>& specs);

/// The candidate's function carries the placement's model from now on. Errors say why that is none of its function.
Status CarryModel(const Placement& placement, PricedCandidate& candidate);

/// The partitions of a module that are to be compiled from the model carry it.
Result<IRModule> WithCarriedModels(const Placement& placement, const std::vector<SearchChoice>& choices, IRModule module);

}  // namespace collage
