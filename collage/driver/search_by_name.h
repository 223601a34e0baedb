#pragma once

#include <string>
#include <vector>

#include "collage/driver/placement.h"
#include "collage/search/searcher.h"

namespace collage {

/// A placement's problem with every kernel at its cost. Candidates that are not `allowed` (empty: all are) cost Invalid. Both must outlive
/// the result.
SearchProblem ProblemAt(const Placement& placement, const std::vector<Cost>& costs, const std::vector<bool>& allowed);

/// The cover that a searcher (search/searcher.h) finds at such costs, among candidates that compete, or where they are no cover among all.
/// The graph compilers of its two stages are the backends whose rules are predicates. `measure` and `progress` are of those that measure
/// whole plans. Errors name the operator that nothing covers.
Result<SearchResult> SearchByName(const std::string& searcher, const Placement& placement, const std::vector<Cost>& costs,
                                  const PlanTime& measure, const Progress& progress);

}  // namespace collage
