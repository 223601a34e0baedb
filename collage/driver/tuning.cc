#include "collage/driver/tuning.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "collage/backend/tuning.h"
#include "collage/cost/comparison.h"
#include "collage/pricing/tuning.h"
#include "collage/support/clock.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// A template this many times slower than its best rival will not be tuned past it: the templates are no worse than that.
constexpr double kRivalFactor = 1.5;

/// A kernel to tune.
struct Job {
  size_t kernel;
  double seconds_in_plan = 0;  ///< of all its places in the plan
  double seconds = 0;          ///< of one
};

/// Against the anchor, so that times of different moments compare.
std::vector<double> TimesOf(const Measurement& measurement) {
  std::vector<double> times = measurement.samples;
  for (size_t i = 0; i < std::min(times.size(), measurement.anchors.size()); ++i) times[i] /= measurement.anchors[i];
  return times;
}

class ScheduleTuning {
 public:
  ScheduleTuning(const Placement& placement, const std::vector<Evidence>& evidence, Pricer& pricer, double seconds,
                 const Declared& declared, const Progress& progress)
      : placement_(placement),
        prices_(Believe(placement.arms.kernels, evidence, declared)),
        pricer_(pricer),
        declared_(declared),
        end_(Clock::After(seconds)),
        progress_(progress) {}

  Status Run(const Plan& plan) {
    const std::vector<Job> jobs = Jobs(plan);
    for (size_t i = 0; i < jobs.size() && !IsOver(); ++i) {
      place_ = std::to_string(i + 1) + " of " + std::to_string(jobs.size()) + " kernels";
      COLLAGE_TRY_STATUS(Tune(jobs[i]));
    }
    return {};
  }

  [[nodiscard]] PlacementAddition Found() && { return std::move(found_); }

 private:
  [[nodiscard]] bool IsOver() const { return progress_.ShouldStop() || Clock::now() >= end_; }

  [[nodiscard]] const PricedCandidate& CandidateOf(size_t kernel) const {
    return placement_.candidates[placement_.kernels[kernel].candidate];
  }
  [[nodiscard]] const PlacementTarget& TargetOf(size_t kernel) const { return placement_.targets[CandidateOf(kernel).backend]; }

  [[nodiscard]] const Device& DeviceOf(size_t kernel) const { return placement_.devices[placement_.DeviceOf(CandidateOf(kernel).backend)]; }

  [[nodiscard]] std::vector<Job> Jobs(const Plan& plan) const {
    std::unordered_map<IndexSet, Cost> cheapest;
    for (size_t c = 0; c < placement_.candidates.size(); ++c) {
      for (const size_t kernel : placement_.arms.kernel_of[c]) {
        if (kernel == Arms::kNoKernel) continue;
        Cost& least = cheapest.try_emplace(placement_.candidates[c].candidate.sub_graph.inside(), Cost::Invalid()).first->second;
        least = std::min(least, prices_[kernel].centre);
      }
    }
    std::unordered_map<size_t, size_t> places;
    for (const PlanKernel& kernel : plan.kernels) ++places[kernel.kernel];
    std::vector<Job> jobs;
    for (size_t number = 0; number < placement_.kernels.size(); ++number) {
      const PlacedKernel& kernel = placement_.kernels[number];
      if (kernel.candidate == PlacedKernel::kNone || !prices_[number].centre.IsKnown()) continue;
      if (TargetOf(number).rules.style != BackendRules::Style::kNative || TemplateName(kernel.key.variant) != kernel.key.variant) continue;
      const Cost rival = cheapest.at(CandidateOf(number).candidate.sub_graph.inside());
      if (prices_[number].low.ToSeconds() > kRivalFactor * rival.ToSeconds()) continue;
      const double seconds = prices_[number].centre.ToSeconds();
      jobs.push_back({number, seconds * static_cast<double>(places[number]), seconds});
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
      return std::pair(a.seconds_in_plan, a.seconds) > std::pair(b.seconds_in_plan, b.seconds);
    });
    return jobs;
  }

  Status Tune(const Job& job) {
    const PlacedKernel& kernel = placement_.kernels[job.kernel];
    const Function& function = *CandidateOf(job.kernel).extracted.function->As<Function>();
    const std::vector<TuningParameter> parameters = TargetOf(job.kernel).backend->Tuning(function, DeviceOf(job.kernel), kernel.variant);
    const std::optional<TuningRecord> record = COLLAGE_TRY(FindTuning(pricer_.cache(), kernel.key, parameters));
    if (parameters.empty() || (record && record->finished)) return {};
    const std::vector<double> base = TimesOf(COLLAGE_TRY(PriceOf(job.kernel, kernel.variant)));
    TuningOptions options;
    options.seed = kernel.key.function_hash;
    options.declared = declared_;
    size_t trial = 0;
    TuningOutcome outcome = COLLAGE_TRY(TuneSchedule(
        parameters, base, options,
        [&](const TuningChoice& choice) -> Result<std::vector<double>> {
          const Variant variant = TunedVariant(kernel.variant, parameters, choice);
          progress_.Report({"tuning", ++trial, options.most_trials, place_ + ", " + variant.name});
          return TimesOf(COLLAGE_TRY(PriceOf(job.kernel, variant)));
        },
        [this] { return IsOver(); }));
    const Variant best = TunedVariant(kernel.variant, parameters, outcome.choice);
    const bool is_better = best.name != kernel.variant.name && COLLAGE_TRY(IsConfirmed(job.kernel, best));
    if (!is_better && best.name != kernel.variant.name) outcome.choice.assign(parameters.size(), 0);
    spdlog::debug("tuned {} in {} trials: {}", kernel.variant.name, outcome.trials,
                  is_better ? best.name : "(not confirmed or not better)");
    // What was stopped before anything was found is simply begun again.
    if (!is_better && !outcome.finished) return {};
    COLLAGE_TRY_STATUS(StoreTuning(pricer_.cache(), kernel.key, {outcome.choice, outcome.finished}));
    if (is_better) found_.tuned.emplace_back(job.kernel, best);
    return {};
  }

  Result<Measurement> PriceOf(size_t kernel, const Variant& variant) {
    MeasurementKey key = placement_.kernels[kernel].key;
    key.variant = variant.name;
    if (std::optional<Measurement> known = COLLAGE_TRY(pricer_.cache().Find(key))) return std::move(*known);
    return pricer_.Measure(key, {CandidateOf(kernel).extracted.function, *TargetOf(kernel).backend, variant, DeviceOf(kernel)});
  }

  /// The best of many noisy prices flatters; it and its template are timed once more, one after the other.
  Result<bool> IsConfirmed(size_t kernel, const Variant& best) {
    const Expr& function = CandidateOf(kernel).extracted.function;
    const Backend& backend = *TargetOf(kernel).backend;
    const std::vector<double> tuned = TimesOf(COLLAGE_TRY(pricer_.MeasureAgain({function, backend, best, DeviceOf(kernel)})));
    const std::vector<double> untuned =
        TimesOf(COLLAGE_TRY(pricer_.MeasureAgain({function, backend, placement_.kernels[kernel].variant, DeviceOf(kernel)})));
    return Compare(tuned, untuned, declared_) == Comparison::kBetter;
  }

  const Placement& placement_;
  std::vector<Price> prices_;
  Pricer& pricer_;
  const Declared& declared_;
  Clock::time_point end_;
  const Progress& progress_;
  std::string place_;
  PlacementAddition found_;
};

}  // namespace

Result<PlacementPointer> Tune(PlacementPointer placement, const std::vector<Evidence>& evidence, const Plan& plan, Pricer& pricer,
                              double seconds, const Declared& declared, const Progress& progress) {
  ScheduleTuning tuning(*placement, evidence, pricer, seconds, declared, progress);
  COLLAGE_TRY_STATUS(tuning.Run(plan));
  PlacementAddition found = std::move(tuning).Found();
  return found.tuned.empty() ? placement : Extend(*placement, std::move(found), pricer);
}

}  // namespace collage
