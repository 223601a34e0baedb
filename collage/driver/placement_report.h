#pragma once

#include <vector>

#include "collage/driver/plan.h"
#include "collage/explain/report.h"
#include "collage/search/recorded.h"

namespace collage {

/// What is known of a placement's kernels.
struct KnownPrices {
  const std::vector<Evidence>& evidence;
  const std::vector<Price>& prices;
};

/// Plan entries, for each operator who runs it, who would otherwise, and what was refused, and how the permitted precision is used.
CompileReport ReportOf(const Placement& placement, const KnownPrices& known, const Plan& plan);

/// How many candidates there are, and of how many of them something is known.
CandidateCounts CountCandidates(const Placement& placement, const KnownPrices& known, const PricerCounts& pricer);

/// Every price known now, with `plan` as the chosen one: what questions of the form "what if" are answered from.
RecordedProblem RecordOf(const Placement& placement, const KnownPrices& known, const Plan& plan);

}  // namespace collage
