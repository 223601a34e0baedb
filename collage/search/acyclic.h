#pragma once

#include <functional>
#include <vector>

#include "collage/search/search.h"

namespace collage {

/// Solves a problem without the candidates that are marked (by position); the result may be a cyclic cover.
using CoverSolver = std::function<Result<SearchResult>(const std::vector<bool>& forbidden)>;

/// The cheapest acyclic cover, given a solver that knows nothing of cycles. Cyclic covers are rare (they need candidates with
/// several exits), so they are no part of a state: a cheapest cover that is cyclic is cut off by branching on which member of
/// the cycle is forbidden. Every acyclic cover lives in some branch, and branches are taken cheapest first, so the first acyclic
/// cover is the optimum.
Result<SearchResult> CheapestAcyclic(const SearchProblem& problem, const CoverSolver& solve);

}  // namespace collage
