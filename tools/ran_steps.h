#pragma once

#include <vector>

#include "collage/runtime/executable.h"

namespace collage::tools {

/// The steps of the last profiled run that ran at all, in the order in which they began. They live as long as the executable.
std::vector<const StepProfile*> RanSteps(const Executable& executable);

/// Microseconds from the beginning of the first of such steps to that of another.
double BeganAfterMicroseconds(const StepProfile& first, const StepProfile& step);

}  // namespace collage::tools
