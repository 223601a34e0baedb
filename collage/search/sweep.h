#pragma once

#include <cstdint>
#include <optional>

#include "collage/search/frontier_bound.h"

namespace collage {

/// What lets a sweep drop partial covers.
struct SweepBound {
  const Relaxation& relaxation;  ///< evaluated under the prices of the sweep's tables
  const CoverGraph& graph;
  Cost cutoff;  ///< covers that cost more are not looked for
};

struct SweepLimits {
  size_t most_states;  ///< kept for one covered set
  size_t most_sets;    ///< with the same first uncovered node
  size_t most_expanded = SIZE_MAX;
  bool gives_up = false;  ///< where one of the first two would drop something
};

struct SweepAnswer {
  std::optional<SearchResult> found;
  bool gave_up = false;  ///< at a limit
  size_t furthest = 0;   ///< of nothing found: the first node that could not be covered, where there is no bound
  size_t expanded = 0;
};

/// The cheapest exact cover, cyclic or not, by one sweep over covered sets in the order of their first uncovered nodes. `bound` may be
/// null. Segments that are alike are searched once where `reuse_segments` says so and there is no bound, which knows no segments.
SweepAnswer Sweep(const SearchTables& tables, const SweepLimits& limits, bool reuse_segments, const SweepBound* bound);

}  // namespace collage
