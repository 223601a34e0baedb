#include "collage/cost/tuning.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "collage/driver/placement.h"
#include "collage/driver/placement_state.h"
#include "collage/support/clock.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// A template this many times slower than its best rival will not be tuned past it: the templates are no worse than that.
constexpr double kRivalFactor = 1.5;

/// A kernel to tune: one candidate of those that share its price.
struct Job {
  size_t candidate;
  size_t variant;
  double seconds_in_plan = 0;  ///< of all its places in the best plan
  double seconds = 0;          ///< of all its places in the function
};

class KernelTuning {
 public:
  KernelTuning(Placement::State& state, double seconds) : state_(state), end_(Clock::After(seconds)) {}

  Status Run(const std::vector<SearchChoice>& plan) {
    const std::vector<Job> jobs = Jobs(plan);
    for (size_t i = 0; i < jobs.size() && !IsOver(); ++i) {
      place_ = std::to_string(i + 1) + " of " + std::to_string(jobs.size()) + " kernels";
      COLLAGE_TRY_STATUS(Tune(jobs[i]));
    }
    return {};
  }

 private:
  [[nodiscard]] bool IsOver() const { return state_.progress.ShouldStop() || Clock::now() >= end_; }

  [[nodiscard]] const Backend& BackendOf(size_t candidate) const { return *state_.backends[state_.candidates[candidate].backend].backend; }

  [[nodiscard]] std::vector<TuningParameter> ParametersOf(const Job& job) const {
    const PricedCandidate& candidate = state_.candidates[job.candidate];
    return BackendOf(job.candidate)
        .Tuning(*candidate.extracted.function->As<Function>(), state_.pricer.device(), candidate.variants[job.variant].variant);
  }

  std::vector<Job> Jobs(const std::vector<SearchChoice>& plan) const {
    std::unordered_map<IndexSet, Cost> cheapest;
    std::unordered_map<size_t, size_t> in_plan;  // places, by slot
    for (const SearchChoice& choice : plan) ++in_plan[state_.prices->SlotOf(choice.candidate, choice.variant)];
    ForEachPriced([&](size_t c, size_t, Cost cost) {
      Cost& least = cheapest.try_emplace(state_.candidates[c].candidate.sub_graph.inside(), cost).first->second;
      least = std::min(least, cost);
    });
    std::map<size_t, Job> by_slot;
    ForEachPriced([&](size_t c, size_t v, Cost cost) {
      const PricedCandidate& candidate = state_.candidates[c];
      const std::string& name = candidate.variants[v].variant.name;
      if (state_.backends[candidate.backend].style != BackendRules::Style::kNative || TemplateName(name) != name) return;
      if (cost.ToSeconds() > kRivalFactor * cheapest.at(candidate.candidate.sub_graph.inside()).ToSeconds()) return;
      const size_t slot = state_.prices->SlotOf(c, v);
      Job& job = by_slot.try_emplace(slot, Job{c, v}).first->second;
      job.seconds += cost.ToSeconds();
      job.seconds_in_plan = cost.ToSeconds() * static_cast<double>(in_plan[slot]);
    });
    std::vector<Job> jobs;
    for (const auto& [slot, job] : by_slot) jobs.push_back(job);
    std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
      return std::pair(a.seconds_in_plan, a.seconds) > std::pair(b.seconds_in_plan, b.seconds);
    });
    return jobs;
  }

  template <class Visit>
  void ForEachPriced(const Visit& visit) const {
    for (size_t c = 0; c < state_.candidates.size(); ++c) {
      if (!state_.candidates[c].is_partition) continue;
      for (size_t v = 0; v < state_.candidates[c].variants.size(); ++v) {
        if (const Cost cost = state_.prices->CostAlone(c, v); cost.IsKnown()) visit(c, v, cost);
      }
    }
  }

  Status Tune(const Job& job) {
    const std::vector<TuningParameter> parameters = ParametersOf(job);
    const MeasurementKey& key = state_.prices->KeyOf(job.candidate, job.variant);
    const std::optional<TuningRecord> record = COLLAGE_TRY(FindTuning(state_.pricer.cache(), key, parameters));
    if (parameters.empty() || (record && record->finished)) return {};
    const Variant base = state_.candidates[job.candidate].variants[job.variant].variant;
    const Cost base_cost = state_.prices->CostAlone(job.candidate, job.variant);
    TuningOptions options;
    options.seed = key.function_hash;
    size_t trial = 0;
    TuningOutcome outcome = COLLAGE_TRY(TuneSchedule(
        parameters, base_cost, options,
        [&](const TuningChoice& choice) -> Result<Cost> {
          const Variant variant = TunedVariant(base, parameters, choice);
          state_.progress.Report({"tuning", ++trial, options.most_trials, place_ + ", " + variant.name});
          return state_.pricer.ToCost(COLLAGE_TRY(PriceOf(job, variant, base_cost)));
        },
        [this] { return IsOver(); }));
    const Variant best = TunedVariant(base, parameters, outcome.choice);
    const bool is_better = best.name != base.name && COLLAGE_TRY(IsConfirmed(job, base, best));
    if (!is_better && best.name != base.name) outcome.choice.assign(parameters.size(), 0);
    spdlog::debug("tuned {} in {} trials: {:.1f} -> {:.1f} us {}", base.name, outcome.trials, base_cost.ToMicroseconds(),
                  outcome.cost.ToMicroseconds(), is_better ? best.name : "(not confirmed or not better)");
    // What was stopped before anything was found is simply begun again.
    if (!is_better && !outcome.finished) return {};
    COLLAGE_TRY_STATUS(StoreTuning(state_.pricer.cache(), key, {outcome.choice, outcome.finished}));
    return is_better ? Add(job, best, base_cost) : Status();
  }

  Result<Measurement> PriceOf(const Job& job, const Variant& variant, Cost rival) {
    MeasurementKey key = state_.prices->KeyOf(job.candidate, job.variant);
    key.variant = variant.name;
    if (std::optional<Measurement> known = COLLAGE_TRY(state_.pricer.cache().Find(key))) return std::move(*known);
    return state_.pricer.Measure(key, state_.candidates[job.candidate].extracted.function, BackendOf(job.candidate), variant, {rival});
  }

  /// The best of many noisy prices flatters; it and its template are timed once more, one after the other.
  Result<bool> IsConfirmed(const Job& job, const Variant& base, const Variant& best) {
    const Expr& function = state_.candidates[job.candidate].extracted.function;
    const Cost tuned = state_.pricer.ToCost(COLLAGE_TRY(state_.pricer.MeasureAgain(function, BackendOf(job.candidate), best)));
    const Cost untuned = state_.pricer.ToCost(COLLAGE_TRY(state_.pricer.MeasureAgain(function, BackendOf(job.candidate), base)));
    return tuned.IsKnown() && tuned < untuned;
  }

  Status Add(const Job& job, const Variant& tuned, Cost rival) {
    MeasurementKey key = state_.prices->KeyOf(job.candidate, job.variant);
    key.variant = tuned.name;
    // A stopped tuning that goes on finds its variant among the candidates already when it comes to the same choice.
    for (const PricedVariant& there : state_.candidates[job.candidate].variants) {
      if (there.variant.name == tuned.name) return {};
    }
    const Measurement measurement = COLLAGE_TRY(PriceOf(job, tuned, rival));
    const SearchVariant searched = state_.built.problem.candidates[job.candidate].variants[job.variant];
    for (const size_t c : COLLAGE_TRY(state_.prices->AddTuned(job.candidate, job.variant, tuned, measurement))) {
      state_.candidates[c].variants.push_back({tuned, Cost::Unknown(), {}, key});
      state_.built.problem.candidates[c].variants.push_back(searched);
    }
    return {};
  }

  Placement::State& state_;
  Clock::time_point end_;
  std::string place_;
};

}  // namespace

Status Placement::Tune(double seconds) {
  const Plan plan = COLLAGE_TRY(Search());
  return KernelTuning(*state_, seconds).Run(plan.result.choices);
}

}  // namespace collage
