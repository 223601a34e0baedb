#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collage/cache/cache.h"
#include "collage/measure/worker.h"

namespace collage {

struct FleetWorkerOptions {
  int threads = 1;  ///< kernels of more are left to others
  /// Backends of this machine and their versions.
  std::vector<std::pair<std::string, std::string>> backends;
  /// Ends when nothing was to do for so long, seconds.
  double most_idle_seconds = 0;
  /// Asked between jobs.
  std::function<bool()> stop;
};

/// Times kernels for compiles of other machines, one after another, until it is stopped or idle; gives how many. Errors of the cache.
Result<size_t> ServeFleet(MeasurementCache& cache, WorkerTimer& timer, const FleetWorkerOptions& options);

}  // namespace collage
