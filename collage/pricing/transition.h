#pragma once

// What it costs to run a kernel of one backend right after one of another: threads of another pool that have to be woken while those
// of the first still spin, code and tables that have to be fetched again.

#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/cost/cost.h"
#include "collage/pricing/pricer.h"
#include "collage/support/progress.h"

namespace collage {

/// A backend among those between which transitions are measured.
struct TransitionBackend {
  const Backend* backend;
  std::string version;
};

/// One ordered pair, the samples of both orders taken alternately.
struct Transition {
  double extra_us = 0;  ///< median over the rounds of the second kernel's time after the first backend's less its time as priced alone
  double noise_us = 0;  ///< half-width of the 95% confidence interval of that
  Cost cost;            ///< `extra_us` where it is more than twice its noise and than half a microsecond, else zero
};

/// The transitions between some backends. In `pairs`, [from][to].
struct TransitionCosts {
  std::vector<std::string> backends;
  std::vector<std::string> reasons;  ///< why nothing was measured for a backend; empty where it was
  std::vector<double> alone_us;      ///< the backend's own trivial kernel as priced alone; zero where nothing was measured
  std::vector<std::vector<Transition>> pairs;

  /// The `cost` of all pairs; empty when all are zero.
  [[nodiscard]] std::vector<std::vector<Cost>> Matrix() const;
};

/// Times a trivial kernel of each backend (a matrix product of some tens of microseconds, or what it can run) right after one of every
/// backend, itself included, each with buffers of its own, and as it is priced alone. "Alone" is what the pricer's protocol makes of it:
/// where caches are evicted, the process-wide OpenMP team has just been at work; where not, the kernel itself has. So a transition is
/// exactly what the price alone does not contain. What is in the cache is not measured again. Kernels are compared with the reference
/// through the pricer's timer before they run in this process; a backend whose kernel fails there has a reason and no costs. Errors when
/// the cache fails, or when only cached prices are allowed and one is missing.
Result<TransitionCosts> MeasureTransitions(const std::vector<TransitionBackend>& backends, Pricer& pricer, const Progress& progress);

}  // namespace collage
