#pragma once

#include <functional>
#include <vector>

#include "collage/search/search.h"

namespace collage {

/// Solves a problem without the candidates that are marked (by position); the result may be a cyclic cover.
using CoverSolver = std::function<Result<SearchResult>(const std::vector<bool>& forbidden)>;

/// Solves that are enough for the few cycles of any graph seen so far.
constexpr size_t kMostSolves = 256;

/// The cheapest acyclic cover, given a solver that knows nothing of cycles. Cyclic covers are rare (they need candidates with
/// several exits), so they are no part of a state: a cheapest cover that is cyclic is cut off by branching on which member of
/// the cycle is forbidden. Every acyclic cover lives in some branch, and branches are taken cheapest first, so the first acyclic
/// cover is the optimum.
///
/// Cycles can be so many that branches multiply, so there are at most `most_solves`. Behind them the best acyclic cover found so far is
/// the answer, or the cheapest without candidates that can close a cycle; its lower bound is that of the branches left, and it is not
/// proven. Errors are the solver's where it finds nothing at all, or say that every cover is cyclic.
Result<SearchResult> CheapestAcyclic(const SearchProblem& problem, size_t most_solves, const CoverSolver& solve);

/// True where a candidate can close no cycle with others that cannot either: at most one of its nodes is read outside, and all others
/// lead to it within the candidate. A cycle of such candidates would be one of nodes.
std::vector<bool> LeadToOneExit(const SearchProblem& problem);

}  // namespace collage
