#pragma once

#include <cstdint>
#include <vector>

#include "collage/candidate/rule.h"
#include "collage/search/search.h"

namespace collage {

/// The search problem of candidates with seeded random prices: three layouts (plain, channels last, blocked), libraries with a
/// variant for each, conversions and transitions of a few microseconds. No two operators cost the same, so no two blocks are
/// alike, which is the harder case.
SearchProblem RandomlyPriced(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates, uint64_t seed);

}  // namespace collage
