#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collage/driver/device_memory.h"
#include "collage/driver/model_inputs.h"
#include "collage/driver/placement_report.h"
#include "collage/driver/plans.h"
#include "collage/driver/race.h"
#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "tests/driver/timed_kernel.h"

namespace collage {

inline PlacementTarget TargetOf(const Backend& backend) {
  return {&backend, "1", backend.Rules(), "cpu -compiler=" + std::string(backend.Name())};
}

/// What a compile does between reading and saving, with backends of a test, on one cache.
class Decided {
 public:
  Decided(const Expr& function, const std::vector<const Backend*>& backends, MeasurementCache& cache, CompileOptions options = {},
          MeasureOptions measure = {}, const UserConstraints& constraints = {})
      : Decided(function, On{TargetsOf(backends)}, cache, std::move(options), measure, constraints) {}

  struct On {
    std::vector<PlacementTarget> targets;
    int threads = 1;  ///< of the host
  };
  Decided(const Expr& function, const On& on, MeasurementCache& cache, CompileOptions options = {}, MeasureOptions measure = {},
          const UserConstraints& constraints = {}, std::shared_ptr<const OnnxModel> original = nullptr)
      : options_(std::move(options)), pricer_({DeviceKind::kCpu, 0, on.threads}, cache, measure) {
    const std::vector<PlacementTarget>& targets = on.targets;
    placement_ =
        MakePlacement(function, targets, pricer_, options_.progress, constraints,
                      {.choose_devices = options_.choose_devices, .original = std::move(original), .precision = options_.precision})
            .value();
    lower_.device = pricer_.device();
    lower_.find_backend = [targets](const std::string& name, const Device&) -> Result<const Backend*> {
      for (const PlacementTarget& target : targets) {
        if (target.backend->Name() == name) return target.backend;
      }
      return Fail("no backend " + name);
    };
    sample_ = ModelSample(placement_->function()).value();
    store_.emplace(pricer_, placement_->ContextHash());
    evidence_ = store_->Load(*placement_).value();
    measuring_ = options_.progress;
    measuring_.deadline = Clock::After(options_.budget_seconds);
    measurer_.emplace(pricer_, *store_, lower_, sample_, options_, measuring_);
    measurer_->SetPlacement(*placement_);
  }

  static std::vector<PlacementTarget> TargetsOf(const std::vector<const Backend*>& backends) {
    std::vector<PlacementTarget> targets;
    for (const Backend* backend : backends) targets.push_back(TargetOf(*backend));
    return targets;
  }

  /// Measures as long as there is doubt.
  Result<Decision> Decide() { return Decide(placement_->Competing()); }
  Result<Decision> Decide(const std::vector<bool>& allowed) {
    for (size_t kernel = 0; kernel < placement_->kernels.size(); ++kernel) {
      if (placement_->kernels[kernel].candidate == PlacedKernel::kNone) COLLAGE_TRY_STATUS(MeasureAlone(kernel));
    }
    DecideOptions decide;
    decide.declared = options_.declared;
    decide.allowed = allowed;
    Result<Decision> decision = collage::Decide(placement_->arms, evidence_, *measurer_, decide);
    return decision ? decision : Fail(placement_->NameNode(decision.error().message));
  }

  /// A kernel of which nothing may be known yet.
  Status MeasureAlone(size_t kernel) {
    if (evidence_[kernel].alone.empty()) evidence_[kernel] = COLLAGE_TRY(measurer_->MeasureAlone(kernel)).front().second;
    return {};
  }

  /// Until the best cover fits the memory of the devices.
  Result<Decision> DecideWithinMemory() {
    const auto decide = [this](const PlacementPointer& placement) {
      Use(placement);
      return Decide();
    };
    return collage::DecideWithinMemory(placement_, decide, [this] { return measurer_->TakeMisfit(); });
  }
  /// The searched plan alone.
  Result<RacedPlans> RaceWithinMemory() {
    const auto searched = [this]() -> Result<FinalPlans> {
      FinalPlans plans = COLLAGE_TRY(PlansToRace(*placement_, Prices(), {}, options_.declared));
      plans.plans.erase(plans.plans.begin() + 1, plans.plans.end());
      return plans;
    };
    return collage::RaceWithinMemory(
        placement_, searched, [this](const std::vector<Plan>& plans) { return Race(plans); },
        [this] { return measurer_->ForgetPrograms(); }, [this](const PlacementPointer& placement) { return Use(placement), Status(); });
  }

  /// Behind the others.
  void Add(std::vector<PricedCandidate> candidates) {
    Use(Extend(*placement_, {std::move(candidates), {}}, pricer_).value());
    evidence_ = store_->Load(*placement_, std::move(evidence_)).value();
  }

  [[nodiscard]] std::vector<Price> Prices() const { return Believe(placement_->arms.kernels, evidence_, options_.declared); }
  [[nodiscard]] FinalPlans Plans() const { return PlansToRace(*placement_, Prices(), {}, options_.declared).value(); }

  /// It has so many seconds where it cannot tell.
  Result<RaceOutcome> RaceFor(double seconds, const std::vector<Plan>& plans, const BlameKernels& blame = {},
                              const GetRounding& rounding = {}) {
    return RacePlans(
        *placement_, plans, pricer_, lower_, [this] { return &sample_; }, rounding, nullptr, 0, options_.race_seconds,
        Clock::After(seconds), options_, options_.progress, blame);
  }

  Result<RaceOutcome> Race(const std::vector<Plan>& plans, const BlameKernels& blame = {}, const GetRounding& rounding = {}) {
    return RaceFor(0, plans, blame, rounding);
  }

  /// Before a race: it has no time left.
  void EndTime() { options_.progress.deadline = Clock::now(); }

  /// Before a race: no two programs have room for their weights.
  void LimitWeights() {
    lower_.kernels = std::make_shared<KernelCache>();
    lower_.kernels->most_weights = 1;
  }

  /// How many kernels of a plan are such a variant.
  [[nodiscard]] size_t Count(const Plan& plan, const std::string& variant) const {
    size_t count = 0;
    for (const PlanKernel& kernel : plan.kernels) count += placement_->kernels[kernel.kernel].key.variant == variant ? 1 : 0;
    return count;
  }

  [[nodiscard]] CompileReport Report(const Plan& plan) const { return ReportOf(*placement_, {evidence_, Prices()}, plan); }
  [[nodiscard]] RecordedProblem Record(const Plan& plan) const { return RecordOf(*placement_, {evidence_, Prices()}, plan); }

  [[nodiscard]] const ReferenceSample& sample() const { return sample_; }
  [[nodiscard]] const LowerOptions& lower() const { return lower_; }
  [[nodiscard]] const Placement& placement() const { return *placement_; }
  [[nodiscard]] const std::vector<Evidence>& evidence() const { return evidence_; }
  [[nodiscard]] PlanMeasurer& measurer() { return *measurer_; }
  [[nodiscard]] Pricer& pricer() { return pricer_; }

 private:
  void Use(const PlacementPointer& placement) {
    placement_ = placement;
    measurer_->SetPlacement(*placement_);
  }

  CompileOptions options_;
  Pricer pricer_;
  PlacementPointer placement_;
  LowerOptions lower_;
  ReferenceSample sample_;
  Progress measuring_;
  std::optional<EvidenceStore> store_;
  std::vector<Evidence> evidence_;
  std::optional<PlanMeasurer> measurer_;
};

inline Expr Parsed(const std::string& text) { return ParseExpr(text, Operators()).value().expr; }

}  // namespace collage
