#include "collage/driver/plan_measurer.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "collage/cache/cache_entry.h"
#include "collage/cost/measurement.h"
#include "collage/cost/statistics.h"
#include "collage/driver/plan_watch.h"
#include "collage/explain/plan_names.h"
#include "collage/ir/constant_memory.h"
#include "collage/ir/structural.h"
#include "collage/measure/barrier_probe.h"
#include "collage/measure/race.h"
#include "collage/measure/rounding_excuse.h"
#include "collage/measure/verification.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/clock.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"
#include "collage/support/memory.h"
#include "collage/tensor/agreement.h"

namespace collage {
namespace {

uint64_t NumberOf(const MeasurementKey& key) { return HashBytes(key.variant, HashBytes(key.backend, key.function_hash)); }

}  // namespace

ProfiledPlan::ProfiledPlan(Plan plan, Executable executable, std::vector<Tensor> inputs)
    : plan_(std::move(plan)), executable_(std::move(executable)), inputs_(std::move(inputs)) {
  for (const NamedType& output : executable_.outputs()) outputs_.emplace_back(output.type);
}

Result<ProfiledPlan> ProfiledPlan::Create(const Placement& placement, const Plan& plan, const LowerOptions& lower,
                                          const std::vector<Tensor>& inputs, Activity& activity) {
  LoweredModel lowered = COLLAGE_TRY(Lower(COLLAGE_TRY(Apply(placement, plan)), lower));
  ProfiledPlan profiled(plan, std::move(lowered.executable), inputs);
  WatchKernels(profiled.executable_, placement, plan, activity);
  return profiled;
}

Status ProfiledPlan::Run(bool keep) {
  executable_.SetProfiling(keep);
  COLLAGE_TRY_STATUS(RunSafely(executable_, inputs_, outputs_));
  if (!keep) return {};
  const std::vector<StepProfile>& profile = executable_.profile();
  steps_.resize(profile.size());
  for (size_t i = 0; i < profile.size(); ++i) steps_[i].push_back(profile[i].microseconds * 1e-6);
  return {};
}

std::unordered_map<std::string, std::vector<double>> ProfiledPlan::MediansByName() const {
  std::unordered_map<std::string, std::vector<double>> medians;
  for (size_t i = 0; i < steps_.size(); ++i) medians[executable_.profile()[i].record.name].push_back(Median(steps_[i]));
  return medians;
}

double ProfiledPlan::Whole() const {
  double seconds = 0;
  for (const std::vector<double>& step : steps_) seconds += Median(step);
  return std::max(seconds, kTick);
}

PlanMeasurer::PlanMeasurer(Pricer& pricer, EvidenceStore& store, const LowerOptions& lower, const ReferenceSample& sample,
                           const CompileOptions& options, const Progress& progress)
    : pricer_(pricer), store_(store), lower_(lower), sample_(sample), options_(options), progress_(progress), activity_(options.activity) {}

Result<Measurer::Found> PlanMeasurer::MeasureUntil(std::span<const size_t> kernels, const std::function<bool()>& stop) {
  Found found;
  // Each is reported when it begins; a fleet begins with all.
  const size_t at_once = pricer_.has_fleet() ? kernels.size() : COLLAGE_TRY(AtOnce());
  for (size_t begin = 0; begin < kernels.size() && !(stop && stop()); begin += at_once) {
    Found of_some = COLLAGE_TRY(MeasureTogether(kernels.subspan(begin, std::min(at_once, kernels.size() - begin)), stop));
    found.insert(found.end(), std::make_move_iterator(of_some.begin()), std::make_move_iterator(of_some.end()));
  }
  return found;
}

Result<Measurer::Found> PlanMeasurer::MeasureTogether(std::span<const size_t> kernels, const std::function<bool()>& stop) {
  Found found;
  std::vector<size_t> numbers;  // of what is timed by a backend's own process, or elsewhere
  std::vector<KeyedKernel> keyed;
  for (const size_t number : kernels) {
    const PlacedKernel& kernel = placement_->kernels[number];
    ++alone_;
    Report("pricing kernels", alone_, placement_->kernels.size(), kernel.key.backend + " " + kernel.key.variant);
    if (kernel.candidate == PlacedKernel::kNone) {
      const size_t refusals = RefusalsOf(*placement_);
      const Result<Measurement> measured =
          pricer_.MeasureConversion(kernel.type, placement_->PlaceOf(kernel.from, kernel.variant.inputs.front()),
                                    placement_->PlaceOf(kernel.to, kernel.variant.outputs.front()));
      // A tensor for which a device has no memory cannot be brought there.
      const bool has_no_memory = !measured && RefusalsOf(*placement_) > refusals;
      if (!measured) COLLAGE_TRY_STATUS(CheckDevices(*placement_));
      if (!measured && !has_no_memory) return Fail(measured.error());
      Evidence evidence = measured ? ToEvidence(*measured) : Evidence();
      if (has_no_memory) evidence.invalid_reason = measured.error().message;
      found.emplace_back(number, std::move(evidence));
    } else {
      numbers.push_back(number);
      keyed.push_back({kernel.key, ToPrice(placement_->candidates[kernel.candidate], kernel)});
    }
  }
  if (lower_.is_limited()) {
    // Whoever times one has its weights twice, as they came and packed.
    for (const KeyedKernel& kernel : keyed) MakeRoom(2 * ConstantBytes(kernel.kernel.function));
  }
  const std::vector<std::optional<Measurement>> measurements = COLLAGE_TRY(pricer_.MeasureEach(keyed, stop));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!measurements[i]) continue;
    if (measurements[i]->compile_seconds > 0) compile_seconds_[NumberOf(keyed[i].key)] = measurements[i]->compile_seconds;
    Evidence evidence = ToEvidence(*measurements[i]);
    if (evidence.alone.empty() && evidence.invalid_reason.empty()) evidence.invalid_reason = "gave no samples";
    found.emplace_back(numbers[i], std::move(evidence));
  }
  return found;
}

PricedKernel PlanMeasurer::ToPrice(const PricedCandidate& candidate, const PlacedKernel& kernel) const {
  PricedKernel priced{candidate.FunctionOf(kernel.variant), *placement_->targets[candidate.backend].backend, kernel.variant,
                      placement_->devices[placement_->DeviceOf(candidate.backend)]};
  if (placement_->ReadsInputsOnly(candidate)) priced.inputs = sample_.ranges;
  return priced;
}

void PlanMeasurer::Report(const std::string& stage, size_t done, size_t total, const std::string& detail) const {
  const bool is_known = open_ < 1;  // before a first whole plan nothing can be said
  const std::string open = is_known ? fmt::format("(a plan may still be {:.1f}% faster) ", 100 * open_) : std::string();
  progress_.Report({stage, done, total, open + detail});
}

Result<Measurer::Found> PlanMeasurer::FindWrong(const std::vector<SearchChoice>& choices, double excess) {
  Found wrong;
  std::vector<std::pair<double, size_t>> differences;  // of kernels that use the permitted precision
  std::set<size_t> seen;
  for (const SearchChoice& choice : choices) {
    const PricedCandidate& candidate = placement_->candidates[choice.candidate];
    const size_t number = placement_->arms.kernel_of[choice.candidate][choice.variant];
    if (!candidate.is_partition || !seen.insert(number).second) continue;
    const PlacedKernel& kernel = placement_->kernels[number];
    const bool is_counted = excess > 0 && kernel.variant.uses_precision;
    if (!is_counted && COLLAGE_TRY(pricer_.cache().IsVerified(kernel.key))) continue;
    Report("comparing kernels with the reference", seen.size(), choices.size(), kernel.key.backend + " " + kernel.key.variant);
    const Result<double> difference = pricer_.Difference(ToPrice(candidate, kernel));
    if (difference && *difference <= kTolerance) {
      if (is_counted) differences.emplace_back(*difference, number);
      COLLAGE_TRY_STATUS(pricer_.cache().StoreVerified(kernel.key));
      continue;
    }
    wrong.push_back(
        COLLAGE_TRY(Refuse(number, difference ? "differs from the reference by " + std::to_string(*difference) + " of the largest value"
                                              : difference.error().message)));
  }
  return wrong.empty() ? Withdraw(std::move(differences), excess) : Result<Found>(std::move(wrong));
}

Result<Measurer::Found::value_type> PlanMeasurer::Refuse(size_t number, const std::string& reason) {
  const PlacedKernel& kernel = placement_->kernels[number];
  spdlog::info("{} {}: {}", kernel.key.backend, kernel.key.variant, reason);
  COLLAGE_TRY_STATUS(pricer_.MarkInvalid({kernel.key, ToPrice(placement_->candidates[kernel.candidate], kernel)}, reason));
  Evidence evidence;
  evidence.invalid_reason = reason;
  return Found::value_type(number, std::move(evidence));
}

Result<Measurer::Found> PlanMeasurer::Withdraw(std::vector<std::pair<double, size_t>> differences, double excess) {
  Found withdrawn;
  std::sort(differences.rbegin(), differences.rend());
  double squares = 0;
  for (const auto& [difference, number] : differences) squares += difference * difference;
  const double fitting = excess > 0 ? squares / (excess * excess) : squares;
  for (const auto& [difference, number] : differences) {
    if (!withdrawn.empty() && squares <= fitting) break;
    squares -= difference * difference;
    const PlacedKernel& kernel = placement_->kernels[number];
    Evidence evidence;
    evidence.invalid_reason = "is within the tolerance of " + ToString(*placement_->precision) + ", but the whole program then is not";
    spdlog::info("{} {}: {}", kernel.key.backend, kernel.key.variant, evidence.invalid_reason);
    COLLAGE_TRY_STATUS(store_.Withdraw(kernel, evidence.invalid_reason));
    withdrawn.emplace_back(number, std::move(evidence));
  }
  return withdrawn;
}

bool PlanMeasurer::HasTimeFor(double seconds) const {
  // A contestant is warmed up and runs in each round; the fewest rounds that can tell are enough for slow ones.
  static const double runs_in_a_race = RaceOptions().warm_up + static_cast<double>(FewestForInterval(Declared().confidence));
  constexpr double kAlsoRun = 2;  // the first one once more, and the anchor
  // Plans of the search have most kernels in common with those that ran, or with the best cover where none did; one of a single backend may
  // have none. Compilers differ a hundredfold: at the time of the longest program for each library, half of a budget went unused.
  const auto of_search = static_cast<double>(contestants_.searched);
  const auto of_single = static_cast<double>(contestants_.single_backends.size());
  const auto compiling = [this](const std::vector<size_t>& kernels) {
    return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                           [this](double sum, size_t kernel) { return sum + SecondsToCompile(kernel); });
  };
  double building = built_ > 0 ? of_search * seconds_building_ / static_cast<double>(built_) : compiling(contestants_.of_best);
  for (const std::vector<size_t>& single : contestants_.single_backends) building += compiling(single);
  const double running = anchor_ && anchor_->HasRun() ? (of_search + of_single + kAlsoRun) * runs_in_a_race * anchor_->Whole() : 0;
  Progress until = progress_;
  if (until.deadline != Clock::time_point::max())
    until.deadline -= Clock::After(seconds + building + std::max(0.0, running - seconds_of_race_)) - Clock::now();
  return !until.ShouldStop();
}

double PlanMeasurer::SecondsToCompile(size_t kernel) const {
  const MeasurementKey& key = placement_->kernels[kernel].key;
  if (const auto seen = compile_seconds_.find(NumberOf(key)); seen != compile_seconds_.end()) return seen->second;
  const std::optional<double> mean = lower_.kernels ? lower_.kernels->SecondsToCompile(key.backend) : std::nullopt;
  return mean.value_or(placement_->arms.kernels.kernels()[kernel].compile_seconds);
}

bool PlanMeasurer::ForgetPrograms() {
  const bool has_some = anchor_ || last_;
  given_up_.reset();
  anchor_.reset();
  last_.reset();
  first_anchor_seconds_ = 0;
  return has_some;
}

void PlanMeasurer::MakeRoom(size_t bytes) {
  if (!lower_.HasRoom(bytes)) last_.reset();
  if (!lower_.HasRoom(bytes) && anchor_) {
    given_up_ = anchor_->plan();
    anchor_.reset();
  }
  if (lower_.is_limited()) TrimHeap();
}

Status PlanMeasurer::RestoreAnchor() {
  if (!given_up_) return {};
  anchor_.emplace(COLLAGE_TRY(ProfiledPlan::Create(*placement_, *given_up_, lower_, sample_.inputs, *activity_)));
  given_up_.reset();
  return {};
}

Result<ProfiledPlan> PlanMeasurer::Build(const std::vector<SearchChoice>& cover) {
  const auto does_not_fit = [&](bool was_refused) {
    misfit_ = Misfit{cover, was_refused};
    return Fail("needs more memory than its devices have");
  };
  if (!FitsMemory(*placement_, cover)) return does_not_fit(false);
  SearchResult result;
  result.choices = cover;
  const Plan plan = MakePlan(*placement_, kSearchedPlan, std::move(result));
  if (lower_.is_limited()) MakeRoom(COLLAGE_TRY(WeightsToAdd(COLLAGE_TRY(Apply(*placement_, plan)), lower_)));
  while (true) {
    const size_t refusals = RefusalsOf(*placement_);
    Result<ProfiledPlan> built = ProfiledPlan::Create(*placement_, plan, lower_, sample_.inputs, *activity_);
    if (lower_.is_limited()) TrimHeap();
    if (!built) COLLAGE_TRY_STATUS(CheckDevices(*placement_));
    if (built || RefusalsOf(*placement_) == refusals) return built;
    if (!anchor_) return does_not_fit(true);
    ForgetPrograms();
  }
}

Result<Measurer::Found> PlanMeasurer::MeasureInProgram(const std::vector<SearchChoice>& cover) {
  if (pricer_.allows_only_cached()) return Fail(NotInCache("what the kernels of this model take inside whole programs"));
  if (!activity_) activity_ = &own_activity_.emplace(COLLAGE_TRY(Activity::Create()));
  Report("timing whole programs", ++programs_, 0, {});
  const auto is_of = [&](const std::optional<ProfiledPlan>& plan) { return plan && plan->plan().result.choices == cover; };
  const bool is_new = !is_of(anchor_) && !is_of(last_);
  if (is_new) {
    last_.reset();
    const Clock::time_point start = Clock::now();
    ProfiledPlan built = COLLAGE_TRY(Build(cover));
    seconds_building_ += Clock::SecondsSince(start);
    ++built_;
    if (anchor_) {
      last_.emplace(std::move(built));
    } else {
      // One that gave way is not built again beside each program: a round's kernels, most of which ran in others too, compare it as well.
      given_up_.reset();
      first_anchor_seconds_ = 0;
      anchor_number_ = StructuralHash(COLLAGE_TRY(Apply(*placement_, built.plan())), ForPricing()) % kAnchorNumbers;
      anchor_.emplace(std::move(built));
    }
  }
  ProfiledPlan& program = is_of(anchor_) ? *anchor_ : *last_;
  if (is_new) {
    if (Found wrong = COLLAGE_TRY(FindWrongIn(program)); !wrong.empty()) return wrong;
  }
  const Clock::time_point start = Clock::now();
  Found found = COLLAGE_TRY(RunRound(program));
  spdlog::debug("program {}: programs were built for {:.3f} s so far, this one ran for {:.3f} s", programs_, seconds_building_,
                Clock::SecondsSince(start));
  for (const auto& [kernel, evidence] : found) {
    for (const ProgramRow& row : evidence.in_program) COLLAGE_TRY_STATUS(store_.Add(placement_->kernels[kernel], row));
  }
  return found;
}

/// Kernels for which the program as a whole is not right; it is dropped then. What gave or saw no finite value has not been compared.
Result<Measurer::Found> PlanMeasurer::FindWrongIn(ProfiledPlan& program) {
  if (const Status ran = program.Run(/*keep=*/false); !ran) return Blame(program, ran.error());
  const Agreement agreement = Compare(program.outputs(), sample_.expected, sample_.steps);
  const std::vector<SearchChoice>& choices = program.plan().result.choices;
  const double tolerance = ToleranceOf(*placement_, choices, sample_);
  if (Passes(agreement, tolerance) && sample_.unreached.empty()) return Found{};
  const bool differs = !ObjectionOfProgram(agreement, tolerance).empty();
  Found wrong;
  if (differs && program.plan().IsOneKernel()) {
    if (COLLAGE_TRY(IsExcused(program, tolerance))) return Found{};
    wrong.push_back(COLLAGE_TRY(Refuse(program.plan().kernels.front().kernel, "differs from the reference as the whole model")));
  } else {
    wrong = COLLAGE_TRY(FindWrong(choices, differs ? std::max(1.0, agreement.difference / tolerance) : 0));
  }
  if (!wrong.empty()) Drop(program);
  if (wrong.empty() && differs && rounding_) COLLAGE_TRY(COLLAGE_TRY(rounding_())->RunAgain());
  return wrong;
}

Result<bool> PlanMeasurer::IsExcused(const ProfiledPlan& program, double tolerance) {
  if (!rounding_ || !sample_.unreached.empty()) return false;
  const auto excuse = COLLAGE_TRY(
      RoundingExcuse::Find(program.outputs(), sample_, *COLLAGE_TRY(rounding_()), tolerance, [this] { return progress_.ShouldStop(); }));
  return excuse.has_value();
}

void PlanMeasurer::Drop(const ProfiledPlan& program) {
  if (anchor_ && &program == &*anchor_)
    anchor_.reset();
  else
    last_.reset();
}

Status PlanMeasurer::RunTurn(ProfiledPlan& program, int least_runs, double seconds) {
  constexpr int kMostRuns = 200;  // where the clock is all that a program takes
  // Others use the processors for seconds. A look takes tens of microseconds, behind which a program of few took 1.8 times as long.
  constexpr double kSecondsBetweenLooks = 0.01;
  program.Clear();
  const PinnedTeam pinned(options_.threads);
  Clock::time_point start = Clock::now();
  do {
    COLLAGE_TRY_STATUS(program.Run(/*keep=*/false));
  } while (Clock::SecondsSince(start) < kSecondsFillingCaches);
  start = Clock::now();
  std::optional<Clock::time_point> looked;
  for (int run = 0; run < kMostRuns && (run < least_runs || Clock::SecondsSince(start) < seconds); ++run) {
    if (!looked || Clock::SecondsSince(*looked) > kSecondsBetweenLooks) {
      BarrierProbe::OfProcess(options_.threads).AwaitCalm(pricer_.patience_seconds(), progress_);
      looked = Clock::now();
    }
    COLLAGE_TRY_STATUS(program.Run(/*keep=*/true));
  }
  return {};
}

/// Runs the anchor for a while, then the program, and the anchor again. Each by itself, as it runs where it is used: with runs of the other
/// between, both had cold caches. Drift within a round is small; who uses the machine for a moment only slows a turn down, so of the
/// anchor's two the faster one counts.
Result<Measurer::Found> PlanMeasurer::RunRound(ProfiledPlan& program) {
  constexpr double kSeconds = 0.2;   // many runs of a fast program
  constexpr int kLeastRuns = 7;      // of a slow one: a median that two disturbances leave alone
  constexpr int kLeastOfAnchor = 3;  // a median; what it is off by, the program's kernels tell that ran in others
  double anchor_seconds = std::numeric_limits<double>::infinity();
  const auto run_anchor = [&]() -> Status {
    COLLAGE_TRY_STATUS(RunTurn(*anchor_, kLeastOfAnchor, kSecondsFillingCaches));
    anchor_seconds = std::min(anchor_seconds, anchor_->Whole());
    return {};
  };
  const bool is_anchor = &program == &*anchor_;
  if (!is_anchor) {
    if (const Status ran = run_anchor(); !ran) return Blame(*anchor_, ran.error());
  }
  if (const Status ran = RunTurn(program, kLeastRuns, kSeconds); !ran) return Blame(program, ran.error());
  if (is_anchor) {
    anchor_seconds = program.Whole();
  } else if (const Status ran = run_anchor(); !ran) {
    return Blame(*anchor_, ran.error());
  }
  if (first_anchor_seconds_ == 0) first_anchor_seconds_ = anchor_seconds;
  seconds_of_last_ = program.Whole() / anchor_seconds * first_anchor_seconds_;
  // The anchor's kernels ran in turns of their own, which the program's cannot be compared with by more than the whole.
  return Learn(program, anchor_seconds);
}

Measurer::Found PlanMeasurer::Learn(const ProfiledPlan& program, double anchor_seconds) const {
  const auto medians = program.MediansByName();
  const std::vector<double> transitions = TransitionsOf(*placement_, program.plan().result.choices);
  // Equal layers at several places of the network share one kernel, and one entry a round.
  std::unordered_map<size_t, std::vector<double>> seconds;
  for (const PlanKernel& kernel : program.plan().kernels) {
    const auto found = medians.find(kernel.symbol);
    if (found == medians.end()) continue;
    // The search charges the transition from whatever runs before; here it would be charged a second time.
    for (const double second : found->second) seconds[kernel.kernel].push_back(std::max(second - transitions[kernel.choice], second / 2));
  }
  for (const ConversionMade& made : ConversionsOf(placement_->built.problem, program.plan().result.choices)) {
    const size_t number = placement_->arms.conversion_kernel(made.tensor, made.from, made.to);
    if (number == Arms::kNoKernel || seconds.contains(number)) continue;
    const PlacedKernel& kernel = placement_->kernels[number];
    const auto found = medians.find(kernel.key.variant + " of " + ToString(kernel.type));
    if (found != medians.end()) seconds[number] = found->second;
  }
  Found result;
  for (auto& [kernel, times] : seconds) {
    Evidence evidence;
    evidence.in_program.push_back(
        {{std::max(Median(std::move(times)), kTick), anchor_seconds}, anchor_number_, std::bit_cast<uint64_t>(anchor_seconds)});
    result.emplace_back(kernel, std::move(evidence));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return result;
}

/// The kernel at which a plan stopped is Invalid, and the decision goes on without it.
Result<Measurer::Found> PlanMeasurer::Blame(const ProfiledPlan& failed, const Error& error) {
  const std::string reason = "failed inside a whole plan: " + error.message;
  const std::optional<CacheEntry> entry = InvalidKernel(activity_->CurrentLine(), reason);
  activity_->now().store(0);
  if (!entry) {
    COLLAGE_TRY_STATUS(CheckDevices(*placement_));
    return Fail(error);
  }
  for (const PlanKernel& kernel : failed.plan().kernels) {
    const PlacedKernel& placed = placement_->kernels[kernel.kernel];
    if (!(placed.key == entry->key)) continue;
    spdlog::warn("{} {} {}", entry->key.backend, entry->key.variant, reason);
    COLLAGE_TRY_STATUS(pricer_.MarkInvalid({entry->key, ToPrice(placement_->candidates[placed.candidate], placed)}, reason));
    // It works in other processes, but no program can run in this one.
    if (const Status here = CheckDevices(*placement_); !here)
      return Fail(here.error().message + ", since " + entry->key.backend + " " + entry->key.variant +
                  " ran inside a whole plan; it is not used any more: compile again");
    Evidence evidence;
    evidence.invalid_reason = reason;
    const size_t number = kernel.kernel;
    Drop(failed);
    return Found{{number, std::move(evidence)}};
  }
  return Fail("the kernel is none of the plan's: " + entry->key.backend + " " + entry->key.variant);
}

}  // namespace collage
