#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"

namespace collage {

/// Calls `visit` with a function for every weakly connected DAG of this many operators: operator i reads any set of those before
/// it, or the parameter. Kinds are dealt out by the seed; so are constants as further arguments, inputs that come bundled in a
/// tuple, and outputs that are split and projected. The sinks are the result.
void ForEveryConnectedDag(size_t operators, uint64_t seed, const std::function<void(const Expr&)>& visit);

/// One seeded function of the same make, each operator reading at most three of the six before it.
Expr RandomDag(size_t operators, uint64_t seed);

}  // namespace collage
