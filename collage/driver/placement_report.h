#pragma once

#include "collage/driver/placement.h"
#include "collage/driver/placement_state.h"

namespace collage {

/// Plan entries, and for each operator who runs it, who would otherwise, and what was refused.
Result<CompileReport> ReportOf(const Placement::State& state, const Plan& plan);

}  // namespace collage
