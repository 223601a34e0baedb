#pragma once

#include <cstddef>
#include <vector>

#include "collage/runtime/program.h"

namespace collage {

/// An order of a program's calls in which streams run at the same time as far as data allow. `streams` says for each call in which stream
/// it runs; number 0 is the host, which gives calls to the others and waits where it needs what they make. As early as can be come calls
/// of other streams, then calls for which the host need not wait, and last those for which it must, the shortest waits first. Among equals
/// the program's order is kept; where all calls are the host's, that is the whole. O(n log n).
std::vector<size_t> CallOrder(const Program& program, const std::vector<size_t>& streams);

}  // namespace collage
