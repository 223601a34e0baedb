#pragma once

#include <optional>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/driver/context_pricing.h"
#include "collage/driver/placement.h"
#include "collage/explain/report.h"
#include "collage/lower/lower.h"

namespace collage {

/// No machine drifts by this much: something else was using the cores. That slows down plans whose threads meet at barriers far more than
/// others, so that what was measured then tells nothing about the quiet machine.
inline constexpr double kDisturbed = 2.5;

struct RaceOutcome {
  size_t winner = 0;
  LoweredModel lowered;
  std::vector<PlanTiming> timings;  ///< "chosen" first, then the single backends in the order of the contestants
  double noise = 0;
  /// The searched plan's time over that of the fastest single-backend plan, less one; nothing when either did not finish.
  std::optional<double> apparent_loss;
  bool raced = false;
  double drift = 1;  ///< how many times slower the machine was during the race than when prices in context were taken
};

/// Lowers every contestant, times them end to end in interleaved rounds together with an A/A pair, and compares each as a whole with the
/// reference executor; one that differs is out. The winner is the fastest, or among those within the noise of it (2% at most) the one with
/// the fewest partitions, or of these that of the backends declared first. A race in which everything runs several times as slowly as when
/// it was priced is run again, unless there is a budget: then something else is using the cores. An equal race in the cache is taken
/// instead of a new one.
Result<RaceOutcome> RacePlans(const Placement& placement, const PlansInContext& contestants, const LowerOptions& lower,
                              const CompileOptions& options);

}  // namespace collage
