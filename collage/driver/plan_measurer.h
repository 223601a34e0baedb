#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/decide/decide.h"
#include "collage/driver/compile.h"
#include "collage/driver/device_memory.h"
#include "collage/driver/evidence_store.h"
#include "collage/driver/plan.h"
#include "collage/driver/plans.h"
#include "collage/lower/lower.h"
#include "collage/op/reference_sample.h"
#include "collage/op/rounding_effect.h"
#include "collage/support/supervisor.h"

namespace collage {

/// Gives the RoundingEffect on the sample of the model; asked only where a program of right kernels differs by more than its tolerance.
using GetRounding = std::function<Result<RoundingEffect*>()>;

/// A plan compiled to be run with a clock at every step.
class ProfiledPlan {
 public:
  static Result<ProfiledPlan> Create(const Placement& placement, const Plan& plan, const LowerOptions& lower,
                                     const std::vector<Tensor>& inputs, Activity& activity);
  /// One run, profiled where `keep` says so.
  Status Run(bool keep);
  /// Seconds of the runs since the last Clear: the median of each step by its name, and their sum, which is that of a run in which no step
  /// was disturbed; where the machine is, hardly any whole run is like that.
  [[nodiscard]] std::unordered_map<std::string, std::vector<double>> MediansByName() const;
  [[nodiscard]] double Whole() const;
  [[nodiscard]] bool HasRun() const { return !steps_.empty(); }
  void Clear() { steps_.clear(); }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Of the last run.
  [[nodiscard]] const std::vector<Tensor>& outputs() const { return outputs_; }
  [[nodiscard]] Executable& executable() { return executable_; }

 private:
  ProfiledPlan(Plan plan, Executable executable, std::vector<Tensor> inputs);

  Plan plan_;
  Executable executable_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<std::vector<double>> steps_;
};

/// Measures for a decision: kernels alone through the pricer, covers as whole programs beside the first of them, which is the anchor. A
/// program is compared with the reference before it is timed, and its kernels one by one where that does not tell that all are right.
class PlanMeasurer : public Measurer {
 public:
  /// All must outlive it. `sample` is the model's. `progress` says when time is over.
  PlanMeasurer(Pricer& pricer, EvidenceStore& store, const LowerOptions& lower, const ReferenceSample& sample,
               const CompileOptions& options, const Progress& progress);

  /// From now on kernels and covers are of this placement, which must outlive their measuring.
  void SetPlacement(const Placement& placement) { placement_ = &placement; }
  /// How far rounding takes the reference, which is asked when a program of right kernels is farther from it than its tolerance: whoever
  /// judges it later asks again, and deciding still has the time.
  void SetRounding(GetRounding rounding) { rounding_ = std::move(rounding); }
  /// What the progress says: by which share some cover might still be cheaper than the best one.
  void SetOpen(double share) { open_ = share; }

  Result<Found> MeasureAlone(size_t kernel) override { return MeasureEach({&kernel, 1}); }
  Result<Found> MeasureEach(std::span<const size_t> kernels) override { return MeasureUntil(kernels, {}); }
  /// Likewise; what has not been begun when `stop` says so is left out.
  Result<Found> MeasureUntil(std::span<const size_t> kernels, const std::function<bool()>& stop);
  Result<size_t> AtOnce() override { return pricer_.AtOnce(); }
  Result<Found> MeasureInProgram(const std::vector<SearchChoice>& cover) override;
  /// Before the deadline by what building the contestants takes, and racing them beyond the race's own time (SetContestants).
  [[nodiscard]] bool IsOver() const override { return !HasTimeFor(0); }
  [[nodiscard]] bool HasTimeFor(double seconds) const override;
  /// The cover that could not be built or timed for want of a device's memory, since this was asked last.
  std::optional<Misfit> TakeMisfit() { return std::exchange(misfit_, std::nullopt); }
  [[nodiscard]] bool HasMisfit() const { return misfit_.has_value(); }
  /// Gives back what measured programs hold; whether there were some.
  bool ForgetPrograms();
  /// Gives back what measured programs hold, until kernels of so many bytes of weights have room (KernelCache::HasRoom). Where that is the
  /// anchor, the next program is the anchor from then on.
  void MakeRoom(size_t bytes);
  void ForgetLast() { last_.reset(); }
  /// Builds the anchor that gave way, if no program has come after it. Errors of building.
  Status RestoreAnchor();
  /// Which plans will be built and run when measuring is over, and the seconds after the deadline that are the race's.
  void SetContestants(const PlanCounts& count, double seconds_of_race) {
    contestants_ = count;
    seconds_of_race_ = seconds_of_race;
  }

  /// Seconds of the cover that was measured last, as a whole, at the speed that the machine had when its anchor first ran.
  [[nodiscard]] double SecondsOfLast() const { return seconds_of_last_; }

  /// The anchor, null where there is none, and its number in evidence.
  [[nodiscard]] ProfiledPlan* anchor() { return anchor_ ? &*anchor_ : nullptr; }
  [[nodiscard]] uint64_t anchor_number() const { return anchor_number_; }
  [[nodiscard]] size_t alone() const { return alone_; }
  [[nodiscard]] size_t programs() const { return programs_; }
  /// Kernels of the choices that differ from the reference by themselves, or could not be compared, as evidence. Where none does and the
  /// whole differs nevertheless, by `excess` times its tolerance (0: it does not), rounding of the kernels that use the permitted precision
  /// has added up: then those that differ most of all, until the rest would fit if errors are independent. In this program, and with
  /// whatever weights, these are not chosen again; elsewhere they may be.
  Result<Found> FindWrong(const std::vector<SearchChoice>& choices, double excess = 0);
  /// Of a kernel that is Invalid for that reason, which is remembered.
  Result<Found::value_type> Refuse(size_t kernel, const std::string& reason);

 private:
  [[nodiscard]] PricedKernel ToPrice(const PricedCandidate& candidate, const PlacedKernel& kernel) const;
  Result<Found> MeasureTogether(std::span<const size_t> kernels, const std::function<bool()>& stop);
  /// With the anchor gone where a device has no memory for both.
  Result<ProfiledPlan> Build(const std::vector<SearchChoice>& cover);
  Result<Found> Withdraw(std::vector<std::pair<double, size_t>> differences, double excess);
  Result<Found> FindWrongIn(ProfiledPlan& program);
  Result<bool> IsExcused(const ProfiledPlan& program, double tolerance);
  Result<Found> RunRound(ProfiledPlan& program);
  /// Kept runs, so many at least and for so long, behind others that fill the caches.
  Status RunTurn(ProfiledPlan& program, int least_runs, double seconds);
  void Drop(const ProfiledPlan& program);
  Result<Found> Blame(const ProfiledPlan& failed, const Error& error);
  Found Learn(const ProfiledPlan& program, double anchor_seconds) const;

  /// What compiling that kernel here is likely to take: as long as it took whoever timed it, or others of its backend here, or usually.
  [[nodiscard]] double SecondsToCompile(size_t kernel) const;
  void Report(const std::string& stage, size_t done, size_t total, const std::string& detail) const;

  Pricer& pricer_;
  EvidenceStore& store_;
  const LowerOptions& lower_;
  const ReferenceSample& sample_;
  const CompileOptions& options_;
  const Progress& progress_;
  GetRounding rounding_;
  const Placement* placement_ = nullptr;
  std::optional<Activity> own_activity_;
  Activity* activity_ = nullptr;
  std::optional<ProfiledPlan> anchor_;
  std::optional<Plan> given_up_;  // the anchor's, while it is not there
  uint64_t anchor_number_ = 0;
  double first_anchor_seconds_ = 0;
  double seconds_of_last_ = 0;
  std::optional<Misfit> misfit_;
  std::optional<ProfiledPlan> last_;  // built: the same cover may be asked for again
  double open_ = 1;
  size_t alone_ = 0;
  size_t programs_ = 0;
  PlanCounts contestants_;
  double seconds_of_race_ = 0;
  std::unordered_map<uint64_t, double> compile_seconds_;  // by key
  size_t built_ = 0;                                      // programs
  double seconds_building_ = 0;
};

}  // namespace collage
