#pragma once

// What was decided, for later compiles of the same problem: they take it as it is.

#include <cstdint>
#include <optional>
#include <vector>

#include "collage/driver/evidence_store.h"
#include "collage/driver/joins.h"

namespace collage {

/// Other compiles add prices of kernels that this problem has as well, so a decision is one of what was known when it was taken. From the
/// same evidence come the same plans, and what is kept of their race.
struct KeptDecision {
  double seconds = 0;  ///< more would not have changed it, or the budget that it had
  std::vector<JoinedPlan> joins;
  KnownThen known;
};

/// Of the problem with this hash. Nothing where nothing is kept, or where it cannot be read.
Result<std::optional<KeptDecision>> FindDecision(Pricer& pricer, uint64_t problem_hash);
Status StoreDecision(Pricer& pricer, uint64_t problem_hash, const KeptDecision& decision);

}  // namespace collage
