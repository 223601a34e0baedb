#pragma once

#include <optional>
#include <random>
#include <vector>

#include "collage/search/search.h"

namespace collage {

/// A random DAG of one to six one-output nodes, with random candidates (convex or not), layouts, conversions, transitions and
/// Invalid variants. Coarse prices (0, 1 or 2 us) make ties.
SearchProblem RandomProblem(std::mt19937_64& random, bool coarse_prices);

/// The same over a given graph: `producers` of each node among the earlier ones.
SearchProblem RandomProblemOver(const std::vector<std::vector<size_t>>& producers, std::mt19937_64& random, bool coarse_prices);

/// Every connected graph of so many nodes, numbered in dataflow order: the producers of each node. (26 704 of six nodes.)
std::vector<std::vector<std::vector<size_t>>> ConnectedGraphs(size_t node_count);

/// The same random block of twenty nodes again and again, each reading the last and, now and then, the one before it; some candidates
/// cover whole blocks.
SearchProblem RepeatedBlocks(std::mt19937_64& random, size_t blocks, bool coarse_prices);

/// The best cover found by trying all: cheapest, then fewest partitions, then the declared preference. None when no acyclic cover
/// by candidates of known price exists.
std::optional<std::vector<SearchChoice>> BruteForce(const SearchProblem& problem);

}  // namespace collage
