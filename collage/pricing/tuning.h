#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collage/backend/tuning.h"
#include "collage/cost/statistics.h"
#include "collage/pricing/pricer.h"

namespace collage {

struct TuningOptions {
  uint64_t seed = 1;
  size_t most_trials = 32;  ///< for one kernel, the template itself not counted
  Declared declared = {};   ///< how Compare tells a change from a lucky moment
};

struct TuningOutcome {
  TuningChoice choice;        ///< the best that was tried; all zero: the template itself
  std::vector<double> times;  ///< of that
  size_t trials = 0;
  bool finished = false;  ///< false: stopped before there was nothing left to try
};

/// Improves one parameter at a time, in an order that `seed` shuffles, until no single change is faster. `price` is asked once for each
/// choice and gives samples of its time, those of all choices in one unit; none: it is invalid. The same prices and seed give the same
/// outcome, so whoever was killed goes on where he was when `price` answers from a cache. Errors are those of `price`.
Result<TuningOutcome> TuneSchedule(const std::vector<TuningParameter>& parameters, std::vector<double> template_times,
                                   const TuningOptions& options,
                                   const std::function<Result<std::vector<double>>(const TuningChoice&)>& price,
                                   const std::function<bool()>& should_stop);

/// What tuning found for a template's kernel, kept beside the prices.
struct TuningRecord {
  TuningChoice choice;
  bool finished = false;
};
/// `key` is that of the template's price. Nothing too where the record is of other parameters.
Result<std::optional<TuningRecord>> FindTuning(const MeasurementCache& cache, const MeasurementKey& key,
                                               const std::vector<TuningParameter>& parameters);
Status StoreTuning(MeasurementCache& cache, const MeasurementKey& key, const TuningRecord& record);

}  // namespace collage
