#pragma once

#include <vector>

#include "collage/search/search.h"

namespace collage {

struct ShortestPathOptions {
  /// Partial covers kept for one covered set; beyond it the dearest are dropped, and the result says what that may have cost.
  size_t most_states = 4096;
  /// Covered sets of the graph by which bounds are found (cover_graph.h). An HRNet has 206 000; without bounds each of its searches took
  /// seconds. So many as are allowed are found within a second, where they double with each node.
  size_t most_covered = size_t{1} << 19;
  /// Covered sets with the same first uncovered node that a sweep without bounds keeps.
  size_t most_sets = 4096;
  /// The same where the graph has too many for bounds: no optimum can be proven then, and a sweep of 4 096 finds the same covers as
  /// one of 64, whose bounds are a sixth lower, in 20 to 60 times as long (docs/design/search.md). All of them together keep as many states
  /// as one set may else: with `most_states` each, a WaveNet whose chain came before its sum took 24 GB.
  size_t most_sets_unproven = 64;
  /// A first search without bounds takes least time where no covered set has more states than this; beyond it bounds are found.
  size_t easy_states = 64;
  /// Searches for the sake of covers without cycles (acyclic.h).
  size_t most_solves = 256;
  /// Whether stretches that are alike are searched once (segments.h); the result is the same.
  bool reuse_segments = true;
  /// An acyclic cover that is known, if any: covers that cost more are not looked for. Its price is taken from the problem.
  const SearchResult* incumbent = nullptr;
};

/// The cheapest acyclic exact cover: the shortest path over covered sets, the next candidate always containing the first
/// uncovered node, so that covered sets are met in the order of that node and a single sweep settles them all. A priority queue
/// (SearchDijkstra) expands fewer states where prices differ much, and many more where branches are open side by side: a sweep
/// sees all states of a covered set at once and keeps those that no other dominates.
///
/// Equal prices fall to fewer partitions, then to earlier backends, then to the lexicographically smallest list of inside sets,
/// then to earlier variants. `lower_bound` equals the cost unless a limit dropped states that might have led to less. Errors name
/// the first node that no valid candidate covers.
Result<SearchResult> SearchShortestPath(const SearchProblem& problem, const ShortestPathOptions& options = {});

/// The same without the candidates that are marked.
Result<SearchResult> SearchShortestPath(const SearchProblem& problem, const std::vector<bool>& forbidden,
                                        const ShortestPathOptions& options = {});

}  // namespace collage
