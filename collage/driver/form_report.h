#pragma once

#include <string>
#include <vector>

#include "collage/driver/plan.h"

namespace collage {

/// What became of each of the user's rules for forms, in sentences: where it fits, where it is refused and why, where the plan has it.
std::vector<std::string> DescribeStatedForms(const Placement& placement, const Plan& plan);

}  // namespace collage
