#pragma once

// Candidates that no rule of phase 2 has stated, and that are worth a price all the same.

#include <string>
#include <vector>

#include "collage/driver/placement.h"
#include "collage/driver/plan.h"

namespace collage {

/// Whether two partitions are of the same operators by the same target.
bool IsSamePartition(const PricedCandidate& a, const PricedCandidate& b);

/// For each run of touching partitions of one graph compiler in the plan, their union, wherever that is valid and the contracted graph
/// stays acyclic: graph compilers gain by seeing more, and cuts offer a region whole, in few-way cuts and in small pieces, but not every
/// run of small pieces. Two partitions at a time; who wins may be joined again.
std::vector<PricedCandidate> JoinedPartitions(const Placement& placement, const Plan& plan);

/// What `partition_for_<backend>` would do, greedy and unmeasured. There is none for a target whose rule the user states.
struct GreedyPlan {
  size_t target;
  std::vector<IndexSet> inside;             ///< of its partitions and of what stays with the host
  std::string reason;                       ///< why there is none; empty where there is
  std::vector<PricedCandidate> candidates;  ///< of its partitions
};
std::vector<GreedyPlan> GreedyPlans(const Placement& placement);

/// With the partitions of these plans that are no candidates yet, so that each single backend's plan is in the search space.
Result<PlacementPointer> WithGreedyPlans(PlacementPointer placement, const std::vector<GreedyPlan>& greedy, Pricer& pricer);

/// The choices that cover the function with these partitions, each in its first variant of known price; nothing where one has none.
std::optional<std::vector<SearchChoice>> ChoicesOf(const Placement& placement, const GreedyPlan& plan, const std::vector<Price>& prices);
/// Their kernels of which nothing is known, one for each partition.
std::vector<size_t> UnknownKernelsOf(const Placement& placement, const GreedyPlan& plan, const std::vector<Price>& prices);

}  // namespace collage
