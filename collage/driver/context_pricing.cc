#include "collage/driver/context_pricing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "collage/driver/model_inputs.h"
#include "collage/support/log.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

using KernelSamples = std::unordered_map<std::string, std::vector<double>>;  // seconds, by global_symbol

/// A plan compiled to be run with a clock at every kernel.
class ProfiledPlan {
 public:
  static Result<ProfiledPlan> Create(const Placement& placement, const Plan& plan, const LowerOptions& lower) {
    LoweredModel lowered = COLLAGE_TRY(Lower(COLLAGE_TRY(placement.Apply(plan)), lower));
    ProfiledPlan profiled(std::move(lowered.executable));
    COLLAGE_TRY_STATUS(profiled.executable_.Run(profiled.inputs_, profiled.outputs_));
    return profiled;
  }

  Status Run() {
    executable_.SetProfiling(true);
    const Clock::time_point start = Clock::now();
    COLLAGE_TRY_STATUS(executable_.Run(inputs_, outputs_));
    whole_.push_back(SecondsSince(start));
    for (const StepProfile& step : executable_.profile()) {
      if (step.kind == "kernel") samples_[step.record.name].push_back(step.microseconds * 1e-6);
    }
    return {};
  }

  [[nodiscard]] const KernelSamples& samples() const { return samples_; }
  [[nodiscard]] const std::vector<double>& whole() const { return whole_; }
  void Clear() {
    samples_.clear();
    whole_.clear();
  }

 private:
  explicit ProfiledPlan(Executable executable) : executable_(std::move(executable)), inputs_(ModelInputs(executable_)) {
    for (const NamedType& output : executable_.outputs()) outputs_.emplace_back(output.type);
  }

  Executable executable_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  KernelSamples samples_;
  std::vector<double> whole_;  // seconds of each run
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

class ContextPricing {
 public:
  ContextPricing(Placement& placement, const LowerOptions& lower, const CompileOptions& options)
      : placement_(placement), lower_(lower), options_(options) {}

  Result<Plan> Run() {
    if (COLLAGE_TRY(placement_.IsContextPricingDone())) return SearchKnown();
    Plan plan = COLLAGE_TRY(placement_.Search());
    if (placement_.pricer().allows_only_cached()) return Fail(NotInCache("what the kernels of this model take inside whole plans"));
    const Clock::time_point start = Clock::now();
    for (size_t round = 1; placement_.RoundsInContext(plan) < kRoundsToTrust; ++round) {
      if (round > 1 && options_.progress.ShouldStop()) return SearchKnown();
      if (round > 1 && SecondsSince(start) > options_.context_seconds) break;
      options_.progress.Report({"pricing in context", round, 0, std::to_string(plan.result.partitions) + " partitions"});
      COLLAGE_TRY_STATUS(Measure(plan));
      plan = COLLAGE_TRY(placement_.Search());
    }
    if (!options_.budget_seconds) COLLAGE_TRY_STATUS(placement_.SetContextPricingDone());
    return SearchKnown();
  }

 private:
  Result<Plan> SearchKnown() {
    placement_.AllowOnlyKnownInContext(true);
    Result<Plan> plan = placement_.Search();
    placement_.AllowOnlyKnownInContext(false);
    return plan;
  }

  Status Measure(const Plan& plan) {
    ProfiledPlan profiled = COLLAGE_TRY(ProfiledPlan::Create(placement_, plan, lower_));
    constexpr double kSecondsOfRound = 0.6;
    constexpr int kLeastRuns = 7;
    constexpr int kMostRuns = 200;
    const Clock::time_point start = Clock::now();
    for (int run = 0; run < kMostRuns && (run < kLeastRuns || SecondsSince(start) < kSecondsOfRound); ++run) {
      COLLAGE_TRY_STATUS(profiled.Run());
      if (first_) COLLAGE_TRY_STATUS(first_->Run());
    }
    const bool is_first = !first_;
    const double drift = is_first ? Drift(profiled.samples(), placement_.KnownInContext(plan)) : Drift(first_->samples(), first_prices_);
    spdlog::debug("estimated {:.0f} us, took {:.0f} us, {:.0f} us without drift", plan.result.cost.ToMicroseconds(),
                  Percentile(profiled.whole(), 0.5) * 1e6, Percentile(profiled.whole(), 0.5) * 1e6 * drift);
    COLLAGE_TRY_STATUS(Learn(plan, profiled.samples(), drift));
    if (is_first) {
      first_prices_ = placement_.KnownInContext(plan);
      first_.emplace(std::move(profiled));
    }
    first_->Clear();
    return {};
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
  std::optional<ProfiledPlan> first_;
  std::unordered_map<std::string, Cost> first_prices_;
};

}  // namespace

Result<Plan> PriceInContext(Placement& placement, const LowerOptions& lower, const CompileOptions& options) {
  return ContextPricing(placement, lower, options).Run();
}

}  // namespace collage
