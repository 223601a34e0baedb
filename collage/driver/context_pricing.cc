#include "collage/driver/context_pricing.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "collage/cost/barrier_probe.h"
#include "collage/driver/model_inputs.h"
#include "collage/driver/plan_watch.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/clock.h"
#include "collage/support/log.h"

namespace collage {
namespace {

using KernelSamples = std::unordered_map<std::string, std::vector<double>>;  // seconds, by global_symbol

/// A plan compiled to be run with a clock at every kernel.
class ProfiledPlan {
 public:
  static Result<ProfiledPlan> Create(const Placement& placement, const Plan& plan, const LowerOptions& lower, Activity& activity) {
    LoweredModel lowered = COLLAGE_TRY(Lower(COLLAGE_TRY(placement.Apply(plan)), lower));
    ProfiledPlan profiled(plan, std::move(lowered.executable));
    WatchKernels(profiled.executable_, placement, plan, activity);
    return profiled;
  }

  Status WarmUp() { return RunOnce(); }

  Status Run() {
    executable_.SetProfiling(true);
    COLLAGE_TRY_STATUS(RunOnce());
    const std::vector<StepProfile>& profile = executable_.profile();
    steps_.resize(profile.size());
    for (size_t i = 0; i < profile.size(); ++i) {
      const double seconds = profile[i].microseconds * 1e-6;
      steps_[i].push_back(seconds);
      if (profile[i].kind == "kernel") samples_[profile[i].record.name].push_back(seconds);
    }
    return {};
  }

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const KernelSamples& samples() const { return samples_; }
  /// Seconds of a run in which no step was disturbed; where the machine is, hardly any whole run is like that.
  [[nodiscard]] double Whole() const {
    double seconds = 0;
    for (const std::vector<double>& step : steps_) seconds += Percentile(step, 0.5);
    return seconds;
  }
  void Clear() {
    samples_.clear();
    steps_.clear();
  }

 private:
  ProfiledPlan(Plan plan, Executable executable)
      : plan_(std::move(plan)), executable_(std::move(executable)), inputs_(ModelInputs(executable_)) {
    for (const NamedType& output : executable_.outputs()) outputs_.emplace_back(output.type);
  }

  /// What a library throws past its backend is that kernel's failure.
  Status RunOnce() {
    try {
      return executable_.Run(inputs_, outputs_);
    } catch (const std::exception& error) {
      return Fail(std::string("threw an exception: ") + error.what());
    }
  }

  Plan plan_;
  Executable executable_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  KernelSamples samples_;
  std::vector<std::vector<double>> steps_;  // seconds of each step in each run
};

/// How many times faster the machine was when the known prices were taken: their sum over that of the same kernels now.
double Drift(const KernelSamples& now, const std::unordered_map<std::string, Cost>& known) {
  double then_seconds = 0;
  double now_seconds = 0;
  for (const auto& [symbol, samples] : now) {
    const auto at = known.find(symbol);
    if (at == known.end() || !at->second.IsKnown()) continue;
    then_seconds += at->second.ToSeconds();
    now_seconds += Percentile(samples, 0.5);
  }
  return now_seconds > 0 ? then_seconds / now_seconds : 1;
}

// What looks best after one round is often what was timed at a lucky moment; it is looked at again before it is believed.
constexpr size_t kRoundsToTrust = 3;
// Of the distinct candidates, how many may be measured in order to find out what assumptions have hidden before plans are run, which asks
// for further prices.
constexpr double kMostMeasuredAtFirst = 0.34;
// What a plan of untried kernels must promise, as a share of the cheapest plan.
constexpr double kWorthTrying = 0.01;
// A single backend this many times slower than all together is no rival: its plan is left as kernels timed alone make it.
constexpr double kRivalRatio = 1.3;
// Of the time for pricing in context: until when plans of all backends are explored, and then those of single ones.
constexpr double kExploreAllUntil = 0.6;
constexpr double kExploreSinglesUntil = 0.9;
// The plans that have come out are looked at again beyond that time, because guessing now would waste it; this is the limit.
constexpr double kConfirmUntil = 1.5;

class ContextPricing {
 public:
  ContextPricing(Placement& placement, const LowerOptions& lower, const CompileOptions& options, double noise_floor)
      : placement_(placement), lower_(lower), options_(options), noise_floor_(noise_floor) {}

  Result<PlansInContext> Run() {
    if (!options_.activity) own_activity_.emplace(COLLAGE_TRY(Activity::Create()));
    const std::optional<FinishedContextPricing> known = COLLAGE_TRY(placement_.FindContextPricing());
    // A kernel of every known plan may have been found wrong since: then there is more to explore.
    if (known && COLLAGE_TRY(SearchKnown(kAll))) {
      lower_bound_ = known->lower_bound;
      noise_floor_ = known->noise_floor;
      return Conclude();
    }
    COLLAGE_TRY_STATUS(Explore(kAll, options_.context_seconds * kExploreAllUntil));
    if (placement_.pricer().allows_only_cached()) return Fail(NotInCache("what the kernels of this model take inside whole plans"));
    COLLAGE_TRY_STATUS(ExploreSingles());
    COLLAGE_TRY_STATUS(Confirm());
    if (!options_.budget_seconds && !options_.progress.ShouldStop())
      COLLAGE_TRY_STATUS(placement_.StoreContextPricing({lower_bound_, noise_floor_}));
    return Conclude();
  }

 private:
  static constexpr size_t kAll = static_cast<size_t>(-1);

  [[nodiscard]] bool IsOver(double seconds) const { return options_.progress.ShouldStop() || Clock::SecondsSince(start_) > seconds; }

  Result<std::optional<Plan>> Search(size_t target) {
    if (target != kAll) return placement_.SearchSingle(target);
    Plan plan = COLLAGE_TRY(placement_.Search());
    return std::optional(std::move(plan));
  }

  [[nodiscard]] double Tie() const { return std::min(noise_floor_, kWidestTie); }

  /// The best plan of what was tried in whole programs, or that of the fewest partitions within a share of it; nothing when there is none.
  Result<std::optional<Plan>> SearchKnown(size_t target, double tie = 0) {
    placement_.AllowOnlyKnownInContext(true);
    Result<std::optional<Plan>> plan = Search(target);
    if (plan && *plan && tie > 0) plan = placement_.WithFewerPartitions(**plan, tie);
    placement_.AllowOnlyKnownInContext(false);
    if (!plan && !placement_.pricer().has_missed()) return std::optional<Plan>();
    return plan;
  }

  /// Prices in context whatever might still be better, one plan after the other.
  Status Explore(size_t target, double until) {
    std::optional<Plan> plan = COLLAGE_TRY(Search(target));
    if (placement_.pricer().allows_only_cached()) return {};
    if (target == kAll) {
      COLLAGE_TRY_STATUS(placement_.QuestionAssumptions(kMostMeasuredAtFirst));
      plan = COLLAGE_TRY(Search(target));
    }
    if (target == kAll) start_ = Clock::now();  // pricing the first plan's kernels alone was not of this stage
    bool is_questioned = target != kAll;
    while (plan) {
      if (IsOver(until) && (has_learned_ || target != kAll)) break;
      if (placement_.RoundsInContext(*plan) < kRoundsToTrust) {
        COLLAGE_TRY_STATUS(Measure(*plan));
      } else if (!std::exchange(is_questioned, true)) {
        COLLAGE_TRY_STATUS(placement_.QuestionAssumptions(Placement::kMostMeasured));
      } else {
        std::optional<Plan> next = target == kAll ? COLLAGE_TRY(placement_.WithFewerPartitions(*plan, Tie())) : *plan;
        if (placement_.RoundsInContext(*next) >= kRoundsToTrust) {
          next.reset();
          if (target == kAll) next = COLLAGE_TRY(WithWhatMayBeFaster(*plan));
        }
        if (!next) break;
        COLLAGE_TRY_STATUS(Measure(*next));
      }
      plan = COLLAGE_TRY(Search(target));
    }
    if (plan && target == kAll) lower_bound_ = plan->result.lower_bound;
    return {};
  }

  /// A plan with kernels that were never part of a whole program, which is much cheaper than the cheapest one unless they slow down there
  /// as others of their variant did: that may have been told by one of them, or by prices alone of another moment. Nothing when none of
  /// them could be so fast.
  Result<std::optional<Plan>> WithWhatMayBeFaster(const Plan& cheapest) {
    const Cost worthwhile = Cost::Seconds(cheapest.result.cost.ToSeconds() * (1 - kWorthTrying));
    for (; quarters_of_trust_ >= 0; --quarters_of_trust_) {
      std::optional<Plan> plan = COLLAGE_TRY(placement_.SearchTrustingContextFactors(0.25 * quarters_of_trust_));
      if (plan && plan->result.cost < worthwhile) return plan;
    }
    return std::optional<Plan>();
  }

  Status ExploreSingles() {
    const std::optional<Plan> searched = COLLAGE_TRY(SearchKnown(kAll));
    if (!searched) return {};
    std::vector<size_t> rivals;
    const Cost dear = Cost::Seconds(kRivalRatio * searched->result.cost.ToSeconds());
    for (const size_t target : placement_.Singles()) {
      const std::optional<Plan> plan = COLLAGE_TRY(placement_.SearchSingle(target));
      if (plan && plan->result.cost < dear) rivals.push_back(target);
    }
    const double from = std::max(Clock::SecondsSince(start_), options_.context_seconds * kExploreAllUntil);
    const double share = options_.context_seconds * (kExploreSinglesUntil - kExploreAllUntil) / static_cast<double>(rivals.size() + 1);
    for (size_t i = 0; i < rivals.size(); ++i) COLLAGE_TRY_STATUS(Explore(rivals[i], from + share * static_cast<double>(i + 1)));
    return {};
  }

  /// Until the best of what was tried is the best of what was tried often enough.
  Status Confirm() {
    std::vector<size_t> scopes = placement_.Singles();
    scopes.insert(scopes.begin(), kAll);
    for (bool is_settled = false; !is_settled;) {
      is_settled = true;
      for (const size_t scope : scopes) {
        std::optional<Plan> plan = COLLAGE_TRY(SearchKnown(scope, scope == kAll ? Tie() : 0));
        // Single backends may have shown that what every known plan needs fails.
        const bool has_none = scope == kAll && !plan;
        if (has_none) plan = COLLAGE_TRY(Search(kAll));
        if (!plan || placement_.RoundsInContext(*plan) >= kRoundsToTrust) continue;
        if (!has_none && IsOver(options_.context_seconds * kConfirmUntil)) return {};
        COLLAGE_TRY_STATUS(Measure(*plan));
        is_settled = false;
      }
    }
    return {};
  }

  Result<PlansInContext> Conclude() {
    PlansInContext plans{{}, lower_bound_, probe_};
    std::optional<Plan> searched = COLLAGE_TRY(SearchKnown(kAll, Tie()));
    if (!searched)
      return Fail("the cache knows that this model was priced in context, but not the prices; `collage cache verify` tells more");
    plans.plans.push_back(std::move(*searched));
    for (const size_t target : placement_.Singles()) {
      std::optional<Plan> plan = COLLAGE_TRY(SearchKnown(target));
      if (!plan) plan = COLLAGE_TRY(placement_.SearchSingle(target));
      if (plan) plans.plans.push_back(std::move(*plan));
    }
    if (plans.plans.front().tie) {
      std::optional<Plan> cheapest = COLLAGE_TRY(SearchKnown(kAll));
      cheapest->name = "cheapest";
      plans.plans.push_back(std::move(*cheapest));
    }
    return plans;
  }

  Status Measure(const Plan& plan) {
    options_.progress.Report({"pricing in context", ++rounds_, 0, plan.name});
    Activity& activity = options_.activity ? *options_.activity : *own_activity_;
    ProfiledPlan profiled = COLLAGE_TRY(ProfiledPlan::Create(placement_, plan, lower_, activity));
    if (!COLLAGE_TRY(RunRound(profiled, activity))) return {};
    const bool is_first = !first_;
    const double drift = is_first ? Drift(profiled.samples(), placement_.KnownInContext(plan)) : Drift(first_->samples(), first_prices_);
    spdlog::debug("estimated {:.0f} us, took {:.0f} us, {:.0f} us without drift", plan.result.cost.ToMicroseconds(), profiled.Whole() * 1e6,
                  profiled.Whole() * 1e6 * drift);
    COLLAGE_TRY_STATUS(Learn(plan, profiled.samples(), drift));
    has_learned_ = true;
    if (is_first) {
      first_prices_ = placement_.KnownInContext(plan);
      probe_ = DriftProbe{plan, profiled.Whole()};
      first_.emplace(std::move(profiled));
    }
    first_->Clear();
    return {};
  }

  /// Runs the plan for a while, the first one beside it. False when a kernel of either has failed, which is Invalid then.
  Result<bool> RunRound(ProfiledPlan& profiled, Activity& activity) {
    constexpr double kSecondsOfRound = 0.6;
    constexpr int kLeastRuns = 7;
    constexpr int kMostRuns = 200;
    const auto blame = [&](const ProfiledPlan& failed, const Error& error) -> Result<bool> {
      COLLAGE_TRY_STATUS(Blame(failed, activity, error));
      return false;
    };
    if (const Status ran = profiled.WarmUp(); !ran) return blame(profiled, ran.error());
    const PinnedTeam pinned(options_.threads);
    const Clock::time_point start = Clock::now();
    for (int run = 0; run < kMostRuns && (run < kLeastRuns || Clock::SecondsSince(start) < kSecondsOfRound); ++run) {
      BarrierProbe::OfProcess(options_.threads).AwaitCalm(options_.progress);
      if (const Status ran = profiled.Run(); !ran) return blame(profiled, ran.error());
      if (!first_) continue;
      if (const Status ran = first_->Run(); !ran) {
        const Result<bool> blamed = blame(*first_, ran.error());
        first_.reset();
        probe_.reset();
        return blamed;
      }
    }
    return true;
  }

  /// The kernel at which a plan stopped is Invalid, and the search goes on without it.
  Status Blame(const ProfiledPlan& profiled, Activity& activity, const Error& error) {
    const std::string reason = "failed inside a whole plan: " + error.message;
    const std::optional<CacheEntry> kernel = InvalidKernel(activity.CurrentLine(), reason);
    activity.now().store(0);
    if (!kernel) return Fail(error);
    spdlog::warn("{} {} {}", kernel->key.backend, kernel->key.variant, reason);
    return placement_.MarkInvalid(profiled.plan(), kernel->key, reason);
  }

  Status Learn(const Plan& plan, KernelSamples samples, double drift) {
    for (auto& samples_of_kernel : samples) {
      for (double& seconds : samples_of_kernel.second) seconds *= drift;
    }
    return placement_.LearnInContext(plan, samples);
  }

  Placement& placement_;
  const LowerOptions& lower_;
  const CompileOptions& options_;
  double noise_floor_;
  Clock::time_point start_ = Clock::now();
  size_t rounds_ = 0;
  bool has_learned_ = false;
  int quarters_of_trust_ = 3;  // in what kernels inside whole programs tell of others
  std::optional<Activity> own_activity_;
  Cost lower_bound_;
  std::optional<ProfiledPlan> first_;
  std::optional<DriftProbe> probe_;
  std::unordered_map<std::string, Cost> first_prices_;
};

}  // namespace

Result<PlansInContext> PriceInContext(Placement& placement, const LowerOptions& lower, const CompileOptions& options, double noise_floor) {
  return ContextPricing(placement, lower, options, noise_floor).Run();
}

}  // namespace collage
