#pragma once

#include <vector>

#include "collage/decide/decide.h"
#include "collage/driver/more_candidates.h"
#include "collage/driver/plan.h"
#include "collage/explain/report.h"

namespace collage {

/// The plans that race, the searched one first, and the single backends that have none.
struct FinalPlans {
  std::vector<Plan> plans;
  std::vector<MissingPlan> missing;
};

/// Which plans race, from what is known: the cheapest of kernels that have run inside of programs, or of those that cannot be told from it
/// the one with the fewest partitions (then the cheapest too); for each backend the cheapest that uses it wherever it can, and the one of
/// the classic flow; where the first uses the permitted precision, the cheapest that does not; where there are several CPUs, the first one
/// spread over them. The same evidence gives the same plans. In place of the
/// first comes `chosen` where somebody has chosen it. Errors where nothing known is a cover.
Result<FinalPlans> PlansToRace(const Placement& placement, const std::vector<Price>& prices, const std::vector<GreedyPlan>& greedy,
                               const Declared& declared, std::optional<SearchResult> chosen = {});

/// How many plans that would be at most, and about which kernels they have that no plan before them has, once for each place where it is
/// compiled for itself: who lowers several plans compiles each once.
struct PlanCounts {
  size_t searched = 0;
  std::vector<size_t> of_best = {};  ///< kernels of the best cover
  std::vector<std::vector<size_t>> single_backends = {};
};
/// Of single backends those of which every operator has a known price count. `best` is null where no cover is known.
PlanCounts MostPlansToRace(const Placement& placement, const std::vector<Price>& prices, const std::vector<GreedyPlan>& greedy,
                           const SearchResult* best = nullptr);

}  // namespace collage
