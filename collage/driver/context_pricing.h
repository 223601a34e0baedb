#pragma once

#include <optional>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/driver/placement.h"
#include "collage/lower/lower.h"

namespace collage {

/// A plan whose time is known from when prices in context were taken: its time at another moment tells by how much the machine has
/// drifted since.
struct DriftProbe {
  Plan plan;
  double seconds = 0;
};

struct PlansInContext {
  /// The cheapest plan of all backends, or one like it of fewer partitions; then that of each single one; then the cheapest itself, where
  /// the first is another.
  std::vector<Plan> plans;
  /// No cover is cheaper at the prices that were known when exploring ended.
  Cost lower_bound;
  /// Nothing when all was known already.
  std::optional<DriftProbe> probe;
};

/// The cheapest plans by prices in context. The searched plan is run as a whole, its kernels' times inside the program replace those
/// they had alone, and the search is asked again, which then tries whatever might still be better, until the plan consists of such
/// prices only, each from several rounds; then plans are run that are cheaper unless their untried kernels slow down as others of their
/// variant did (Placement::SearchTrustingContextFactors). The first is also done for each single backend that comes near. Each round runs
/// beside the first plan, whose kernels tell by how much the machine drifted meanwhile. Ends after about `options.context_seconds` too, or
/// when asked to stop; the plans are then the cheapest of what was tried in context (of a backend that did not come near: of kernels timed
/// alone). What was ended by success or by time (other than a budget) is not begun again with the same cache, unless what was found wrong
/// since leaves no plan.
///
/// Plans that differ by no more than `noise_floor`, a share, cannot be told apart by their prices: of these the searched plan is that of
/// the fewest partitions. The floor is kept with the prices, so that a later compile decides alike.
Result<PlansInContext> PriceInContext(Placement& placement, const LowerOptions& lower, const CompileOptions& options,
                                      double noise_floor = 0);

}  // namespace collage
