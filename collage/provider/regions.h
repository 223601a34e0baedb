#pragma once

#include <cstddef>
#include <vector>

namespace collage::provider {

/// Sets of nodes that can each be replaced by one node: those in `taken`, and between no two of a set is there a path through one that is
/// not taken. Nodes are in topological order; `producers[i]` are those whose values node i takes. Every taken node is in one set, as early
/// as its inputs allow, so that sets are few.
std::vector<std::vector<size_t>> Regions(const std::vector<bool>& taken, const std::vector<std::vector<size_t>>& producers);

}  // namespace collage::provider
