#include "collage/pricing/tuning.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "collage/cache/cache_entry.h"
#include "collage/cost/comparison.h"

namespace collage {
namespace {

class Climber {
 public:
  Climber(const std::vector<TuningParameter>& parameters, std::vector<double> template_times, const TuningOptions& options,
          const std::function<Result<std::vector<double>>(const TuningChoice&)>& price, const std::function<bool()>& should_stop)
      : parameters_(parameters), options_(options), price_(price), should_stop_(should_stop), random_(options.seed) {
    outcome_.choice.assign(parameters.size(), 0);
    outcome_.times = std::move(template_times);
    known_.insert(outcome_.choice);
  }

  Result<TuningOutcome> Run() {
    bool improved = true;
    while (improved) {
      improved = false;
      for (const size_t parameter : Shuffled(parameters_.size())) {
        const std::optional<bool> better = COLLAGE_TRY(TryValuesOf(parameter));
        if (!better) return outcome_;
        improved = improved || *better;
      }
    }
    outcome_.finished = true;
    return outcome_;
  }

 private:
  /// Not std::shuffle, whose order each library may choose.
  std::vector<size_t> Shuffled(size_t count) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
    return order;
  }

  /// Whether one of them was faster; nothing when it is time to stop.
  Result<std::optional<bool>> TryValuesOf(size_t parameter) {
    bool better = false;
    for (const size_t value : Shuffled(parameters_[parameter].values.size())) {
      TuningChoice choice = outcome_.choice;
      choice[parameter] = value;
      if (known_.contains(choice)) continue;
      if (outcome_.trials >= options_.most_trials) {
        outcome_.finished = true;
        return std::optional<bool>();
      }
      if (should_stop_()) return std::optional<bool>();
      ++outcome_.trials;
      std::vector<double> times = COLLAGE_TRY(price_(choice));
      known_.insert(choice);
      if (Compare(times, outcome_.times, options_.declared) != Comparison::kBetter) continue;
      outcome_.choice = std::move(choice);
      outcome_.times = std::move(times);
      better = true;
    }
    return std::optional(better);
  }

  const std::vector<TuningParameter>& parameters_;
  const TuningOptions& options_;
  const std::function<Result<std::vector<double>>(const TuningChoice&)>& price_;
  const std::function<bool()>& should_stop_;
  std::mt19937_64 random_;
  std::set<TuningChoice> known_;
  TuningOutcome outcome_;
};

MeasurementKey RecordKey(MeasurementKey key) {
  key.fact = Fact::kTuning;
  return key;
}

}  // namespace

Result<TuningOutcome> TuneSchedule(const std::vector<TuningParameter>& parameters, std::vector<double> template_times,
                                   const TuningOptions& options,
                                   const std::function<Result<std::vector<double>>(const TuningChoice&)>& price,
                                   const std::function<bool()>& should_stop) {
  return Climber(parameters, std::move(template_times), options, price, should_stop).Run();
}

// A cache keeps positive numbers: one more than each position, and then whether it was finished.
Result<std::optional<TuningRecord>> FindTuning(const MeasurementCache& cache, const MeasurementKey& key,
                                               const std::vector<TuningParameter>& parameters) {
  const std::optional<Measurement> found = COLLAGE_TRY(cache.Find(RecordKey(key)));
  if (!found || found->samples.size() != parameters.size() + 1) return std::optional<TuningRecord>();
  TuningRecord record;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const double position = found->samples[p] - 1;
    if (!(position >= 0 && position < static_cast<double>(parameters[p].values.size()))) return std::optional<TuningRecord>();
    record.choice.push_back(static_cast<size_t>(position));
  }
  record.finished = found->samples.back() > 1;
  return std::optional(std::move(record));
}

Status StoreTuning(MeasurementCache& cache, const MeasurementKey& key, const TuningRecord& record) {
  Measurement measurement;
  for (const size_t position : record.choice) measurement.samples.push_back(static_cast<double>(position + 1));
  measurement.samples.push_back(record.finished ? 2 : 1);
  return cache.Store(RecordKey(key), measurement);
}

}  // namespace collage
