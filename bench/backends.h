#pragma once

#include <vector>

#include "collage/candidate/rule.h"

namespace collage {

/// One spec of each style, as real backends state them: a library with a pattern table, a graph compiler that joins anything to
/// anything (small regions of every shape, and whole regions with their cuts), native fusion, the host.
std::vector<SpecPointer> BenchSpecs();

}  // namespace collage
