#pragma once

// What compiling is likely to take, before anything of it is known.

#include <vector>

#include "collage/backend/backend.h"
#include "collage/cost/belief.h"
#include "collage/driver/placement.h"

namespace collage {

/// Seconds for a kernel of so many operators, and of so many bytes that it reads and writes: a graph compiler begins with a model of its
/// own each time.
double UsualSecondsToCompile(const BackendRules& rules, size_t operators, double bytes);

/// Those of the `among` candidates that have some kernel of which something is known, or that is likely to take no longer than `seconds` to
/// compile: once for a price, and at each place where it may stand in a cover of these candidates. Others would be in no plan in time.
std::vector<bool> CompiledInTime(const Placement& placement, const std::vector<Evidence>& evidence, std::vector<bool> among,
                                 double seconds);

/// Kernels that are none such, of the competing candidates and of the whole models as they came.
size_t CountTooLongToCompile(const Placement& placement, const std::vector<Evidence>& evidence, double seconds);

}  // namespace collage
