#include "collage/driver/race.h"

#include <algorithm>

#include "collage/cost/race.h"
#include "collage/cost/verification.h"
#include "collage/driver/model_inputs.h"
#include "collage/driver/plan_watch.h"
#include "collage/ir/structural.h"
#include "collage/op/interpreter.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// The A/A pair: the searched plan takes part twice.
constexpr const char* kAgain = "again";
// A noisy race may last this many times as long as a quiet one.
constexpr double kMostRaces = 4;
constexpr int kMostDisturbed = 3;

struct Entry {
  const Plan* plan;
  IRModule partitioned;
  uint64_t hash;
  std::optional<double> difference = {};  // from the reference executor
  std::vector<std::string> same_as = {};  // single backends whose plan is this very program
};

/// Two backends may come to the same program; it races once, under the name of the first.
Result<std::vector<Entry>> Rewrite(const Placement& placement, const std::vector<Plan>& contestants) {
  std::vector<Entry> entries;
  for (const Plan& plan : contestants) {
    IRModule module = COLLAGE_TRY(placement.Apply(plan));
    const uint64_t hash = StructuralHash(module, ForPricing());
    const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.hash == hash; });
    if (same == entries.end()) {
      entries.push_back({&plan, std::move(module), hash});
    } else if (plan.is_single_backend) {
      same->same_as.push_back(plan.name);
    }
  }
  return entries;
}

class PlanRace {
 public:
  PlanRace(const Placement& placement, const LowerOptions& lower, const CompileOptions& options, const Plan* contestants,
           std::vector<Entry> entries)
      : placement_(placement), lower_(lower), options_(options), contestants_(contestants), entries_(std::move(entries)) {
    for (const Entry& entry : entries_) field_ = HashCombine(field_, entry.hash);
    field_ = HashCombine(field_, static_cast<uint64_t>(kMeasurementProtocol));
  }

  void SetProbe(const DriftProbe* probe) { probe_ = probe; }

  Result<RaceOutcome> Run() {
    const bool is_known = COLLAGE_TRY(FindEarlier());
    if (!is_known && placement_.pricer().allows_only_cached()) return Fail(NotInCache("the race of the plans for this model"));
    if (!is_known) COLLAGE_TRY_STATUS(RaceNow());
    const bool has_pair = !results_.front().rounds.empty() && !results_.back().rounds.empty();
    noise_ = has_pair ? PairedNoise(results_.front(), results_.back()) : 0;
    const std::vector<size_t> ranking = Ranking();
    if (ranking.empty()) return Fail("no plan agrees with the reference executor");
    LoweredModel lowered = COLLAGE_TRY(Lower(entries_[ranking.front()].partitioned, lower_));
    return Outcome(ranking.front(), std::move(lowered));
  }

 private:
  [[nodiscard]] MeasurementKey KeyOf(size_t index) const {
    const bool is_again = index == entries_.size();
    return placement_.pricer().KeyOf(entries_[is_again ? 0 : index].hash, "plan", std::to_string(field_),
                                     is_again ? kAgain : entries_[index].plan->name);
  }

  [[nodiscard]] MeasurementKey KeyOfDifference(size_t index) const {
    MeasurementKey key = KeyOf(index);
    key.backend = "difference of plan";
    return key;
  }

  [[nodiscard]] MeasurementKey KeyOfDrift() const {
    MeasurementKey key = KeyOf(0);
    key.backend = "drift until the race";
    return key;
  }

  Result<bool> FindEarlier() {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const std::optional<Measurement> difference = COLLAGE_TRY(placement_.pricer().cache().Find(KeyOfDifference(i)));
      if (difference && !difference->samples.empty()) entries_[i].difference = difference->samples.front();
    }
    const std::optional<Measurement> drift = COLLAGE_TRY(placement_.pricer().cache().Find(KeyOfDrift()));
    if (drift && !drift->samples.empty()) drift_ = drift->samples.front();
    for (size_t i = 0; i <= entries_.size(); ++i) {
      const std::optional<Measurement> found = COLLAGE_TRY(placement_.pricer().cache().Find(KeyOf(i)));
      if (!found) {
        results_.clear();
        return false;
      }
      results_.push_back({KeyOf(i).variant, found->samples, found->invalid_reason});
    }
    return true;
  }

  Status RaceNow() {
    raced_ = true;
    std::vector<Executable> executables;
    for (const Entry& entry : entries_) {
      options_.progress.Report({"building plans", executables.size() + 1, entries_.size(), entry.plan->name});
      executables.push_back(std::move(COLLAGE_TRY(Lower(entry.partitioned, lower_)).executable));
      if (options_.activity) WatchKernels(executables.back(), placement_, *entry.plan, *options_.activity);
    }
    const std::vector<Tensor> inputs = ModelInputs(executables.front());
    std::vector<Tensor> outputs;
    for (const NamedType& output : executables.front().outputs()) outputs.emplace_back(output.type);
    std::vector<Contestant> contestants;
    for (size_t i = 0; i <= executables.size(); ++i) {
      Executable& executable = executables[i % executables.size()];
      contestants.push_back({i == executables.size() ? kAgain : entries_[i].plan->name, [&] { return executable.Run(inputs, outputs); }});
    }
    std::optional<Executable> probe;
    if (probe_) {
      const IRModule module = COLLAGE_TRY(placement_.Apply(probe_->plan));
      probe = std::move(COLLAGE_TRY(Lower(module, lower_)).executable);
      if (options_.activity) WatchKernels(*probe, placement_, probe_->plan, *options_.activity);
      contestants.push_back({"probe", [&] { return probe->Run(inputs, outputs); }});
    }
    RaceOptions race;
    race.threads = options_.threads;
    race.budget_seconds = options_.race_seconds;
    race.most_seconds = options_.budget_seconds ? options_.race_seconds : kMostRaces * options_.race_seconds;
    race.equal_pair = {0, executables.size()};
    RaceUndisturbed(contestants, race);
    // A contestant that failed has left its kernel's name there, which is not to be taken for a hang.
    if (options_.activity) options_.activity->now().store(0);
    // A race that was cut short serves this compile only.
    const bool is_whole = !options_.progress.ShouldStop();
    if (probe_ && is_whole) COLLAGE_TRY_STATUS(placement_.pricer().cache().Store(KeyOfDrift(), {{drift_}, {}}));
    for (size_t i = 0; i < results_.size(); ++i) {
      if (i < executables.size() && results_[i].failure.empty()) COLLAGE_TRY_STATUS(Verify(i, executables[i]));
      if (is_whole) COLLAGE_TRY_STATUS(placement_.pricer().cache().Store(KeyOf(i), {results_[i].rounds, results_[i].failure}));
    }
    return {};
  }

  /// Again, where the machine was disturbed; of several disturbed races the one that was so the least.
  void RaceUndisturbed(const std::vector<Contestant>& contestants, const RaceOptions& race) {
    for (int attempt = 1;; ++attempt) {
      std::vector<RaceResult> results = Race(contestants, race, options_.progress);
      if (attempt > 1 && options_.progress.ShouldStop()) return;
      const double drift = probe_ ? TakeDrift(results) : 1;
      if (attempt == 1 || drift < drift_) {
        results_ = std::move(results);
        drift_ = drift;
      }
      if (drift_ < kDisturbed || options_.progress.ShouldStop()) return;
      spdlog::warn("the plans run {:.1f} times as slowly as they did before: something else is using the cores", drift);
      if (attempt == kMostDisturbed || options_.budget_seconds) return;
    }
  }

  /// The probe, taken out of the results. It may have left the race early, so its time is taken relative to the plan that was in it
  /// from the start.
  double TakeDrift(std::vector<RaceResult>& results) const {
    const RaceResult probe = std::move(results.back());
    results.pop_back();
    const RaceResult& base = results.front();
    if (probe.rounds.empty() || base.rounds.empty() || probe_->seconds <= 0) return 1;
    return PairedRatio(probe, base) * Percentile(base.rounds, 0.5) / probe_->seconds;
  }

  // Best first: the fastest and whatever is within the noise of it by partitions and declared order, then the others by time.
  [[nodiscard]] std::vector<size_t> Ranking() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!results_[i].rounds.empty()) order.push_back(i);
    }
    if (order.empty()) return order;
    const auto time = [&](size_t i) { return Ratio(i); };
    const double fastest = time(*std::min_element(order.begin(), order.end(), [&](size_t a, size_t b) { return time(a) < time(b); }));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const bool a_ties = time(a) <= fastest * (1 + std::min(noise_, kWidestTie));
      const bool b_ties = time(b) <= fastest * (1 + std::min(noise_, kWidestTie));
      if (a_ties && b_ties) return placement_.IsPreferred(*entries_[a].plan, *entries_[b].plan);
      if (a_ties != b_ties) return a_ties;
      return time(a) < time(b);
    });
    return order;
  }

  // Time of a contestant relative to the first that ran.
  [[nodiscard]] double Ratio(size_t i) const {
    const auto base = std::find_if(results_.begin(), results_.end(), [](const RaceResult& result) { return !result.rounds.empty(); });
    return PairedRatio(results_[i], *base);
  }

  /// A plan that differs from the reference executor as a whole is out.
  Status Verify(size_t i, Executable& executable) {
    const std::vector<Tensor> inputs = ModelInputs(executable);
    if (expected_.empty()) COLLAGE_TRY_STATUS(RunReference(inputs));
    const std::vector<Tensor> found = COLLAGE_TRY(executable.Run(inputs));
    double difference = 0;
    for (size_t output = 0; output < expected_.size(); ++output)
      difference = std::max(difference, RelativeDifference(found[output], expected_[output]));
    spdlog::debug("the plan '{}' differs from the reference by {:.1e} of the largest value", entries_[i].plan->name, difference);
    entries_[i].difference = difference;
    COLLAGE_TRY_STATUS(placement_.pricer().cache().Store(KeyOfDifference(i), {{difference}, {}}));
    if (difference <= kTolerance) return {};
    results_[i].failure = fmt::format("differs from the reference by {:.1e} of the largest value", difference);
    results_[i].rounds.clear();
    spdlog::warn("the plan '{}' {} and is out", entries_[i].plan->name, results_[i].failure);
    return {};
  }

  Status RunReference(const std::vector<Tensor>& inputs) {
    size_t done = 0;
    InterpreterOptions interpreter;
    interpreter.on_operator = [&](const Expr&, std::span<const Tensor>) {
      options_.progress.Report({"comparing the plans with the reference", ++done, placement_.OperatorCount(), {}});
    };
    expected_ = COLLAGE_TRY(InterpretFunction(placement_.function(), inputs, interpreter));
    return {};
  }

  [[nodiscard]] std::optional<double> ApparentLoss() const {
    std::optional<double> worst;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const bool is_single = entries_[i].plan->is_single_backend || !entries_[i].same_as.empty();
      if (!is_single || results_[i].rounds.empty() || results_.front().rounds.empty()) continue;
      const double loss = i == 0 ? 0 : PairedRatio(results_.front(), results_[i]) - 1;
      worst = std::max(worst.value_or(loss), loss);
    }
    return worst;
  }

  RaceOutcome Outcome(size_t winner, LoweredModel lowered) const {
    const auto position = static_cast<size_t>(entries_[winner].plan - contestants_);
    RaceOutcome outcome{position, std::move(lowered), {}, noise_, ApparentLoss(), raced_, drift_};
    const auto timing = [&](const std::string& name, size_t i) {
      return PlanTiming{name, Percentile(results_[i].rounds, 0.5) * 1e3, PairedRatio(results_[i], results_[winner]),
                        entries_[i].difference};
    };
    outcome.timings.push_back(timing("chosen", winner));
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (results_[i].rounds.empty()) continue;
      if (entries_[i].plan->is_single_backend) outcome.timings.push_back(timing(entries_[i].plan->name, i));
      for (const std::string& name : entries_[i].same_as) outcome.timings.push_back(timing(name, i));
    }
    return outcome;
  }

  const Placement& placement_;
  const LowerOptions& lower_;
  const CompileOptions& options_;
  const Plan* contestants_;
  std::vector<Entry> entries_;
  std::vector<RaceResult> results_;  // of the entries, then of the A/A pair
  std::vector<Tensor> expected_;     // by the reference executor
  const DriftProbe* probe_ = nullptr;
  double drift_ = 1;
  uint64_t field_ = 0;
  double noise_ = 0;
  bool raced_ = false;
};

}  // namespace

Result<RaceOutcome> RacePlans(const Placement& placement, const PlansInContext& contestants, const LowerOptions& lower,
                              const CompileOptions& options) {
  std::vector<Entry> entries = COLLAGE_TRY(Rewrite(placement, contestants.plans));
  PlanRace race(placement, lower, options, contestants.plans.data(), std::move(entries));
  if (contestants.probe) race.SetProbe(&*contestants.probe);
  return race.Run();
}

}  // namespace collage
