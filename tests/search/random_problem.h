#pragma once

#include <random>

#include "collage/search/search.h"

namespace collage {

/// A random DAG of one to six one-output nodes, with random candidates (convex or not), layouts, conversions, transitions and
/// Invalid variants. Coarse prices (0, 1 or 2 us) make ties.
SearchProblem RandomProblem(std::mt19937_64& random, bool coarse_prices);

}  // namespace collage
