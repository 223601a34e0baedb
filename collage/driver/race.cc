#include "collage/driver/race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collage/cost/comparison.h"
#include "collage/cost/statistics.h"
#include "collage/driver/device_memory.h"
#include "collage/driver/plan_watch.h"
#include "collage/explain/plan_names.h"
#include "collage/ir/constant_memory.h"
#include "collage/ir/structural.h"
#include "collage/ir/visit.h"
#include "collage/measure/race.h"
#include "collage/measure/rounding_excuse.h"
#include "collage/measure/verification.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

// The A/A pair: one plan takes part twice.
constexpr const char* kAgain = "again";

constexpr const char* kHadNoTime = "time ended before it was ready";

struct Entry {
  const Plan* plan;
  IRModule partitioned;
  uint64_t hash;
  std::optional<bool> is_right = {};      // what the reference executor says
  std::optional<double> difference = {};  // from it
  std::string not_compared = {};
  std::string rounding = {};  // how far that takes the reference, where it excuses the difference
  std::string objection = {};
  bool has_wrong_kernels = false;         // as far as somebody has looked
  double excess = 1;                      // by how many times its tolerance it differs; at least once where nobody has measured it
  bool has_no_time = false;               // the budget ended before it was built
  std::string not_built = {};             // why it could not be built, while the searched plan could
  std::vector<const Plan*> same_as = {};  // others that come to this very program
  std::optional<LoweredModel> lowered = {};

  [[nodiscard]] std::vector<const Plan*> Plans() const {
    std::vector<const Plan*> plans = same_as;
    plans.insert(plans.begin(), plan);
    return plans;
  }
  [[nodiscard]] std::vector<std::string> SingleBackends() const {
    std::vector<std::string> names;
    for (const Plan* one : Plans()) {
      if (one->is_single_backend) names.push_back(one->name);
    }
    return names;
  }
  [[nodiscard]] bool Is(std::string_view name) const {
    const std::vector<const Plan*> plans = Plans();
    return std::any_of(plans.begin(), plans.end(), [&](const Plan* one) { return one->name == name; });
  }
};

/// Two plans may come to the same program; it races once.
Result<std::vector<Entry>> Rewrite(const Placement& placement, const std::vector<Plan>& contestants) {
  std::vector<Entry> entries;
  for (const Plan& plan : contestants) {
    IRModule module = COLLAGE_TRY(Apply(placement, plan));
    const uint64_t hash = StructuralHash(module, ForPricing());
    const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.hash == hash; });
    if (same == entries.end()) {
      entries.push_back({&plan, std::move(module), hash});
    } else {
      same->same_as.push_back(&plan);
    }
  }
  return entries;
}

std::string WhatWasNotCompared(const ReferenceSample& sample, const Agreement& agreement) {
  if (!IsComparison(agreement)) return "the reference gives no finite value on the inputs that were tried";
  if (sample.unreached.empty()) return "";
  const OpDef* op = CalledOp(sample.unreached.front());
  return std::to_string(sample.unreached.size()) + " operators saw or gave no finite value, the first of them " +
         (op ? op->name : std::string("a call"));
}

class PlanRace {
 public:
  PlanRace(const Placement& placement, Pricer& pricer, const LowerOptions& lower, const GetSample& sample, const GetRounding& rounding,
           const CompileOptions& options, const Progress& progress, const BlameKernels& blame, const std::function<void()>& forget_anchor,
           std::vector<Entry> entries)
      : placement_(placement),
        pricer_(pricer),
        lower_(lower),
        sample_(sample),
        rounding_(rounding),
        options_(options),
        progress_(progress),
        blame_(blame),
        forget_anchor_(forget_anchor),
        entries_(std::move(entries)),
        content_(ContentHash(placement.function())) {
    for (const Entry& entry : entries_) field_ = HashCombine(field_, entry.hash);
    field_ = HashCombine(field_, static_cast<uint64_t>(kMeasurementProtocol));
    GiveBackConstants(placement.function());  // the hash has read them
  }

  Result<RaceOutcome> Run(const Plan* first, ProfiledPlan* anchor, double usual_anchor_seconds, double race_seconds,
                          Clock::time_point end) {
    const bool is_known = COLLAGE_TRY(FindEarlier(anchor));
    if (!is_known && pricer_.allows_only_cached()) return Fail(NotInCache("the race of the plans for this model"));
    if (!is_known) COLLAGE_TRY_STATUS(RaceNow(anchor, usual_anchor_seconds, race_seconds, end));
    if (is_of_wrong_kernels_) return RaceOutcome{.is_of_wrong_kernels = true};
    const std::vector<size_t> ranking = Ranking();
    for (const size_t i : ranking) COLLAGE_TRY_STATUS(RecallVerdict(i));
    // Who differs on these weights is out; then the next one is looked at.
    for (const size_t winner : ranking) {
      COLLAGE_TRY_STATUS(Judge(winner));
      if (!*entries_[winner].is_right) continue;
      // The others have raced, and may need the room.
      for (size_t i = 0; i < entries_.size(); ++i) {
        if (i != winner) entries_[i].lowered.reset();
      }
      COLLAGE_TRY_STATUS(Build(winner));
      return Outcome(winner, first);
    }
    // Then it is worth more than the budget to know why.
    for (const size_t i : ranking) {
      if (COLLAGE_TRY(HasWrongKernels(i))) return RaceOutcome{.is_of_wrong_kernels = true};
    }
    if (ranking.empty()) return Fail("no plan agrees with the reference executor");
    return RaceOutcome{.objection = entries_[ranking.front()].objection};
  }

 private:
  [[nodiscard]] bool IsStopped() const { return progress_.stop_requested && progress_.stop_requested->load(); }

  [[nodiscard]] MeasurementKey KeyOf(size_t index) const {
    const bool is_again = index == entries_.size();
    MeasurementKey key = pricer_.KeyOf(Fact::kRace, entries_[is_again ? 0 : index].hash, field_);
    key.variant = is_again ? kAgain : entries_[index].plan->name;
    return key;
  }

  [[nodiscard]] MeasurementKey KeyOfDrift() const { return pricer_.KeyOf(Fact::kDrift, field_); }

  /// The verdict on a program is one on its weights.
  [[nodiscard]] MeasurementKey KeyOfDifference(size_t index) const { return pricer_.KeyOf(Fact::kVerdict, entries_[index].hash, content_); }

  Result<bool> FindEarlier(const ProfiledPlan* anchor) {
    if (const auto drift = COLLAGE_TRY(pricer_.cache().Find(KeyOfDrift())); drift && !drift->samples.empty())
      drift_ = drift->samples.front();
    for (size_t i = 0; i <= entries_.size(); ++i) {
      const std::optional<Measurement> found = COLLAGE_TRY(pricer_.cache().Find(KeyOf(i)));
      // Who had no time gets another chance where deciding went on.
      const bool is_over = found && found->invalid_reason == kHadNoTime && anchor != nullptr;
      if (!found || is_over) {
        results_.clear();
        return false;
      }
      results_.push_back({KeyOf(i).variant, found->samples, found->invalid_reason});
    }
    return true;
  }

  Status Build(size_t i) {
    if (entries_[i].lowered) return {};
    if (lower_.is_limited()) TrimHeap();
    Result<LoweredModel> lowered = Lower(entries_[i].partitioned, lower_);
    if (!lowered) COLLAGE_TRY_STATUS(CheckDevices(placement_));
    entries_[i].lowered = COLLAGE_TRY(std::move(lowered));
    if (lower_.is_limited()) TrimHeap();
    if (options_.activity) WatchKernels(entries_[i].lowered->executable, placement_, *entries_[i].plan, *options_.activity);
    return {};
  }

  /// Asked before it runs for its time: the plan may be another one without the kernel that is wrong.
  Result<bool> IsOfWrongKernels(size_t i) {
    if (IsStopped()) return false;
    COLLAGE_TRY_STATUS(Judge(i));
    if (options_.activity) options_.activity->now().store(0);  // where it failed, its kernel's name is left there
    if (*entries_[i].is_right) return false;
    return entries_[i].has_wrong_kernels || (!progress_.ShouldStop() && COLLAGE_TRY(HasWrongKernels(i)));
  }

  Result<bool> HasWrongKernels(size_t i) {
    Entry& entry = entries_[i];
    if (!entry.has_wrong_kernels && blame_ && !IsStopped()) entry.has_wrong_kernels = COLLAGE_TRY(blame_(*entry.plan, entry.excess));
    return entry.has_wrong_kernels;
  }

  /// By what they are likely to take: whoever has no time is no great loss. In a short budget on a large model a library alone often comes
  /// before the searched plan, whose hundreds of kernels may take longer to build than there is time. The searched one is preferred where
  /// the difference is not declared to matter.
  [[nodiscard]] std::vector<size_t> CheapestFirst() const {
    const auto seconds = [&](size_t i) {
      return entries_[i].plan->result.cost.ToSeconds() * (i == kSearched ? 1 - options_.declared.smallest_difference : 1);
    };
    std::vector<size_t> order(entries_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seconds(a) < seconds(b); });
    return order;
  }

  Status RaceNow(ProfiledPlan* anchor, double usual_anchor_seconds, double race_seconds, Clock::time_point end) {
    raced_ = true;
    const ReferenceSample& sample = *COLLAGE_TRY(sample_());
    results_.assign(entries_.size() + 1, {});
    std::vector<size_t> waiting = CheapestFirst();
    COLLAGE_TRY_STATUS(BuildBase(waiting));
    for (bool is_first = true; is_first || !waiting.empty(); is_first = false) {
      if (is_of_wrong_kernels_) return {};
      const std::vector<size_t> group = COLLAGE_TRY(BuildGroup(waiting, is_first));
      if (is_of_wrong_kernels_) return {};
      const double share = race_seconds * static_cast<double>(group.size()) / static_cast<double>(entries_.size());
      const double left = waiting.empty() ? -Clock::SecondsSince(end) : 0;
      RaceGroup(group, sample, is_first ? anchor : nullptr, usual_anchor_seconds, std::max(share, left));
      if (IsTimeOver()) DropAll(waiting);
      for (const size_t i : group) {
        if (i != base_ && !waiting.empty()) entries_[i].lowered.reset();
      }
      if (is_first && !waiting.empty() && forget_anchor_) forget_anchor_();
    }
    // A contestant that failed has left its kernel's name there, which is not to be taken for a hang.
    if (options_.activity) options_.activity->now().store(0);
    // A race that was cut short serves this compile only.
    if (IsStopped()) return {};
    const bool has_failed = std::any_of(results_.begin(), results_.end(), [](const RaceResult& result) { return !result.failure.empty(); });
    if (has_failed) COLLAGE_TRY_STATUS(CheckDevices(placement_));
    if (anchor) COLLAGE_TRY_STATUS(pricer_.cache().Store(KeyOfDrift(), {{drift_}, {}}));
    for (size_t i = 0; i < results_.size(); ++i)
      COLLAGE_TRY_STATUS(pricer_.cache().Store(KeyOf(i), {results_[i].rounds, results_[i].failure}));
    return {};
  }

  /// The first of `waiting` that can be built races in each group, whatever time it takes.
  Status BuildBase(std::vector<size_t>& waiting) {
    do {
      base_ = waiting.front();
      waiting.erase(waiting.begin());
      COLLAGE_TRY_STATUS(BuildToRace(base_));
      results_[base_].failure = entries_[base_].not_built;
    } while (!entries_[base_].lowered);
    return {};
  }

  [[nodiscard]] bool IsTimeOver() const { return IsStopped() || progress_.ShouldStop(); }

  void DropAll(std::vector<size_t>& waiting) {
    for (const size_t i : waiting) results_[i].failure = kHadNoTime;
    waiting.clear();
  }

  /// The base and those that have room beside it, one at least behind the first group; takes them from `waiting`.
  Result<std::vector<size_t>> BuildGroup(std::vector<size_t>& waiting, bool is_first) {
    std::vector<size_t> group = {base_};
    std::vector<size_t> others;
    bool is_full = false;
    for (const size_t i : waiting) {
      if (is_full) {
        others.push_back(i);
        continue;
      }
      entries_[i].has_no_time = IsTimeOver();
      const bool must_be_taken = !is_first && group.size() == 1;
      const size_t more = lower_.is_limited() && !entries_[i].has_no_time ? COLLAGE_TRY(WeightsToAdd(entries_[i].partitioned, lower_)) : 0;
      const bool has_room = lower_.HasRoom(more);
      if (!has_room && !must_be_taken) {
        others.push_back(i);
        continue;
      }
      // What is large while it is made comes first.
      if (!has_room) entries_[base_].lowered.reset();
      is_full = !has_room;
      if (!entries_[i].has_no_time) COLLAGE_TRY_STATUS(BuildToRace(i));
      group.push_back(i);
    }
    waiting = std::move(others);
    COLLAGE_TRY_STATUS(Build(base_));
    return group;
  }

  Status BuildToRace(size_t i) {
    progress_.Report({"building plans", i + 1, entries_.size(), entries_[i].plan->name});
    const Status built = Build(i);
    if (!built && i == kSearched) return Fail(built.error());
    // The memory of a device may hold each of them alone.
    if (!built) entries_[i].not_built = built.error().message;
    if (built && COLLAGE_TRY(IsOfWrongKernels(i))) is_of_wrong_kernels_ = true;
    return {};
  }

  /// All of the first group count in their own times. Those of another count in the base's times there, brought to the first group.
  void RaceGroup(const std::vector<size_t>& group, const ReferenceSample& sample, ProfiledPlan* anchor, double usual_anchor_seconds,
                 double race_seconds) {
    const bool is_first = results_.back().rounds.empty() && results_.back().failure.empty();
    std::vector<Tensor> outputs;
    for (const NamedType& output : entries_[base_].lowered->executable.outputs()) outputs.emplace_back(output.type);
    const auto contestant = [&](size_t i, const std::string& name) {
      return Contestant{name, [&, i]() -> Status {
                          Entry& entry = entries_[i];
                          if (!entry.not_built.empty()) return Fail(entry.not_built);
                          return entry.has_no_time ? Fail(kHadNoTime) : RunSafely(entry.lowered->executable, sample.inputs, outputs);
                        }};
    };
    std::vector<Contestant> contestants;
    for (const size_t i : group) contestants.push_back(contestant(i, entries_[i].plan->name));
    if (is_first) contestants.push_back(contestant(base_, kAgain));
    RaceOptions race;
    race.threads = options_.threads;
    race.budget_seconds = race_seconds;
    race.patience_seconds = pricer_.patience_seconds();
    race.declared = options_.declared;
    // Nothing is asked of the copy and the anchor, nor of searched plans that by their parts, mostly the same, differ by less than matters.
    // The price of a library alone says less of how it stands to them.
    race.is_answered = [&](const std::vector<RaceResult>& results) {
      const auto is_alike = [&](size_t a, size_t b) {
        const double ratio = entries_[group[a]].plan->result.cost.ToSeconds() / entries_[group[b]].plan->result.cost.ToSeconds();
        const bool are_searched = entries_[group[a]].SingleBackends().empty() && entries_[group[b]].SingleBackends().empty();
        return are_searched && std::abs(ratio - 1) <= options_.declared.smallest_difference;
      };
      return IsFastestKnown({results.begin(), results.begin() + static_cast<ptrdiff_t>(group.size())}, options_.declared, is_alike);
    };
    // The base's times in the first group are what all others are compared by, those of other groups too.
    const bool are_others_to_come = is_first && group.size() < entries_.size() && !IsTimeOver();
    race.tells_apart = are_others_to_come || std::ranges::any_of(group, [&](size_t i) { return i != base_ && !entries_[i].has_no_time; });
    if (anchor) anchor->Clear();
    if (anchor) contestants.push_back({"anchor", [anchor] { return anchor->Run(/*keep=*/true); }});
    Progress racing = progress_;
    racing.deadline = Clock::time_point::max();
    std::vector<RaceResult> raced = collage::Race(contestants, race, racing);
    if (anchor) TakeDrift(*anchor, usual_anchor_seconds, raced);
    if (is_first) results_.back() = std::move(raced[group.size()]);
    const std::vector<double> base = raced.front().rounds;
    for (size_t place = 0; place < group.size(); ++place) {
      if (!is_first && place == 0) continue;
      if (!is_first) Rescale(raced[place].rounds, base, results_[base_].rounds);
      results_[group[place]] = std::move(raced[place]);
    }
  }

  static void Rescale(std::vector<double>& rounds, const std::vector<double>& base, const std::vector<double>& first_base) {
    rounds.resize(std::min({rounds.size(), base.size(), first_base.size()}));
    for (size_t i = 0; i < rounds.size(); ++i) rounds[i] *= first_base[i] / base[i];
  }

  /// The anchor may have left the race early, so its time is taken relative to the plan that was in it from the start.
  void TakeDrift(const ProfiledPlan& anchor, double usual_seconds, std::vector<RaceResult>& raced) {
    const RaceResult of_anchor = std::move(raced.back());
    raced.pop_back();
    const RaceResult& base = raced.front();
    if (of_anchor.rounds.empty() || base.rounds.empty() || usual_seconds <= 0) return;
    const std::vector<double> side_by_side(
        base.rounds.begin(), base.rounds.begin() + static_cast<ptrdiff_t>(std::min(base.rounds.size(), of_anchor.rounds.size())));
    drift_ = anchor.Whole() / usual_seconds * Median(base.rounds) / Median(side_by_side);
  }

  [[nodiscard]] std::vector<size_t> Ranking() const {
    std::vector<std::vector<double>> times;
    for (size_t i = 0; i < entries_.size(); ++i) times.push_back(results_[i].rounds);
    return BestFirst(times, options_.declared,
                     [this](size_t a, size_t b) { return IsPreferred(placement_, *entries_[a].plan, *entries_[b].plan); });
  }

  /// What is known of this program on these weights.
  Status RecallVerdict(size_t i) {
    Entry& entry = entries_[i];
    const std::optional<Measurement> known = COLLAGE_TRY(pricer_.cache().Find(KeyOfDifference(i)));
    if (!known || entry.is_right) return {};
    if (!known->samples.empty()) {
      entry.is_right = true;
      entry.difference = known->samples.front();
      if (const std::optional<RoundingExcuse> excuse = RoundingExcuse::From(known->samples)) entry.rounding = excuse->Text();
    } else if (known->invalid_reason.rfind(kNotComparedPrefix, 0) == 0) {
      entry.is_right = true;
      entry.not_compared = known->invalid_reason.substr(std::string(kNotComparedPrefix).size());
    } else {
      Refuse(entry, known->invalid_reason);
    }
    return {};
  }

  /// Compares the program as a whole with the reference executor, where that has not been done on these weights.
  Status Judge(size_t i) {
    COLLAGE_TRY_STATUS(RecallVerdict(i));
    Entry& entry = entries_[i];
    if (entry.is_right) return {};
    if (pricer_.allows_only_cached()) return Fail(NotInCache("the comparison of this program, with these weights, with the reference"));
    const ReferenceSample& sample = *COLLAGE_TRY(sample_());
    COLLAGE_TRY_STATUS(Build(i));
    Executable& executable = entry.lowered->executable;
    std::vector<Tensor> outputs;
    const auto run = [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
      for (const NamedType& output : executable.outputs()) outputs.emplace_back(output.type);
      COLLAGE_TRY_STATUS(RunSafely(executable, inputs, outputs));
      return outputs;
    };
    const Result<Agreement> agreement = CompareWithReference(run, sample);
    const double tolerance = ToleranceOf(placement_, entry.plan->result.choices, sample);
    Measurement verdict;
    if (!agreement) {
      COLLAGE_TRY_STATUS(CheckDevices(placement_));
      verdict.invalid_reason = "does not run (" + agreement.error().message + ")";
      Refuse(entry, verdict.invalid_reason);
    } else if (const std::string objection = ObjectionOfProgram(*agreement, tolerance); !objection.empty()) {
      entry.excess = std::max(1.0, agreement->difference / tolerance);
      if (const std::optional<RoundingExcuse> excuse = COLLAGE_TRY(FindExcuse(i, *agreement, outputs, tolerance))) {
        entry.is_right = true;
        entry.difference = agreement->difference;
        entry.rounding = excuse->Text();
        verdict.samples = excuse->Samples();
      } else {
        verdict.invalid_reason = objection;
        Refuse(entry, objection);
      }
    } else {
      entry.is_right = true;
      entry.not_compared = WhatWasNotCompared(sample, *agreement);
      if (entry.not_compared.empty()) entry.difference = agreement->difference;
      if (entry.not_compared.empty()) verdict.samples = {agreement->difference};
      if (!entry.not_compared.empty()) verdict.invalid_reason = kNotComparedPrefix + entry.not_compared;
    }
    return pricer_.cache().Store(KeyOfDifference(i), verdict);
  }

  /// Of a program of which everything was compared, and whose kernels are all right. Rounding is known once for all programs; the kernels
  /// are looked into where that would do, but a single one, which is the program, has just been.
  Result<std::optional<RoundingExcuse>> FindExcuse(size_t i, const Agreement& agreement, std::span<const Tensor> outputs,
                                                   double tolerance) {
    const ReferenceSample& sample = *COLLAGE_TRY(sample_());
    if (!rounding_ || IsStopped() || !WhatWasNotCompared(sample, agreement).empty()) return std::optional<RoundingExcuse>();
    const std::optional<RoundingExcuse> excuse =
        COLLAGE_TRY(RoundingExcuse::Find(outputs, sample, *COLLAGE_TRY(rounding_()), tolerance, [this] { return IsStopped(); }));
    if (excuse && !entries_[i].plan->IsOneKernel() && COLLAGE_TRY(HasWrongKernels(i))) return std::optional<RoundingExcuse>();
    return excuse;
  }

  static void Refuse(Entry& entry, const std::string& objection) {
    spdlog::warn("the plan '{}' {} and is out", entry.plan->name, objection);
    entry.is_right = false;
    entry.objection = objection;
  }

  [[nodiscard]] std::optional<double> ApparentLoss() const {
    std::optional<double> worst;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].SingleBackends().empty() || !entries_[i].is_right.value_or(true) || results_[i].rounds.empty() ||
          results_[kSearched].rounds.empty())
        continue;
      const double loss = i == kSearched ? 0 : PairedRatio(results_[kSearched].rounds, results_[i].rounds) - 1;
      worst = std::max(worst.value_or(loss), loss);
    }
    return worst;
  }

  /// Who was in the race from the start, twice.
  [[nodiscard]] size_t Base() const {
    const std::vector<size_t> order = CheapestFirst();
    return *std::find_if(order.begin(), order.end() - 1, [&](size_t i) { return !results_[i].rounds.empty(); });
  }

  [[nodiscard]] std::optional<double> Noise() const {
    const std::vector<double>& a = results_[Base()].rounds;
    const std::vector<double>& again = results_.back().rounds;
    std::vector<double> ratios;
    for (size_t i = 0; i < std::min(a.size(), again.size()); ++i) ratios.push_back(a[i] / again[i]);
    if (ratios.size() < FewestForInterval(options_.declared.confidence)) return std::nullopt;
    return MedianHalfWidth(ratios, options_.declared.confidence);
  }

  RaceOutcome Outcome(size_t winner, const Plan* first) {
    RaceOutcome outcome;
    outcome.winner = static_cast<size_t>(entries_[winner].plan - first);
    outcome.noise = Noise();
    outcome.apparent_loss = ApparentLoss();
    outcome.raced = raced_;
    outcome.drift = drift_;
    outcome.not_compared = entries_[winner].not_compared;
    outcome.rounding = entries_[winner].rounding;
    const auto timing = [&](const std::string& name, size_t i) {
      return PlanTiming{name, Median(results_[i].rounds) * 1e3, PairedRatio(results_[i].rounds, results_[winner].rounds),
                        entries_[i].difference};
    };
    outcome.timings.push_back(timing("chosen", winner));
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].plan->name != kSideBySide || results_[i].rounds.empty()) continue;
      if (i == winner && !results_[kSearched].rounds.empty()) outcome.timings.push_back(timing(kOneAfterAnother, kSearched));
      if (i != winner && entries_[i].is_right.value_or(true)) outcome.timings.push_back(timing(kSideBySide, i));
    }
    const bool is_searched_named = entries_[winner].plan->name == kSideBySide || !entries_[kSearched].SingleBackends().empty();
    if (winner != kSearched && !is_searched_named && !results_[kSearched].rounds.empty() && entries_[kSearched].is_right.value_or(true))
      outcome.timings.push_back(timing(entries_[kSearched].plan->name, kSearched));
    for (size_t i = 0; i < entries_.size(); ++i) {
      for (const char* name : {kInFloat32, kBranchesInTurn}) {
        const bool is_other = entries_[i].Is(name) && i != winner;
        if (is_other && !results_[i].rounds.empty() && entries_[i].is_right.value_or(true)) outcome.timings.push_back(timing(name, i));
      }
    }
    if (results_[kSearched].rounds.empty() && entries_[kSearched].SingleBackends().empty())
      outcome.missing.push_back({entries_[kSearched].plan->name, results_[kSearched].failure});
    for (size_t i = 0; i < entries_.size(); ++i) {
      for (const std::string& name : entries_[i].SingleBackends()) {
        if (!results_[i].rounds.empty() && entries_[i].is_right.value_or(true)) {
          outcome.timings.push_back(timing(name, i));
        } else {
          outcome.missing.push_back({name, results_[i].rounds.empty() ? results_[i].failure : entries_[i].objection});
        }
      }
    }
    outcome.lowered = std::move(*entries_[winner].lowered);
    return outcome;
  }

  static constexpr size_t kSearched = 0;  // the first plan's entry
  static constexpr const char* kNotComparedPrefix = "not compared: ";

  const Placement& placement_;
  Pricer& pricer_;
  const LowerOptions& lower_;
  const GetSample& sample_;
  const GetRounding& rounding_;
  const CompileOptions& options_;
  const Progress& progress_;
  const BlameKernels& blame_;
  const std::function<void()>& forget_anchor_;
  std::vector<Entry> entries_;
  uint64_t content_;
  size_t base_ = kSearched;          // who races in each group
  std::vector<RaceResult> results_;  // of the entries, then of the A/A pair
  double drift_ = 1;
  uint64_t field_ = 0;
  bool raced_ = false;
  bool is_of_wrong_kernels_ = false;
};

}  // namespace

Result<RaceOutcome> RacePlans(const Placement& placement, const std::vector<Plan>& contestants, Pricer& pricer, const LowerOptions& lower,
                              const GetSample& sample, const GetRounding& rounding, ProfiledPlan* anchor, double usual_anchor_seconds,
                              double race_seconds, Clock::time_point end, const CompileOptions& options, const Progress& progress,
                              const BlameKernels& blame, const std::function<void()>& forget_anchor) {
  std::vector<Entry> entries = COLLAGE_TRY(Rewrite(placement, contestants));
  return PlanRace(placement, pricer, lower, sample, rounding, options, progress, blame, forget_anchor, std::move(entries))
      .Run(contestants.data(), anchor, usual_anchor_seconds, race_seconds, end);
}

Result<RacedPlans> RaceWithinMemory(const PlacementPointer& placement, const std::function<Result<FinalPlans>()>& make,
                                    const std::function<Result<RaceOutcome>(const std::vector<Plan>&)>& race,
                                    const std::function<bool()>& forget, const std::function<Status(PlacementPointer)>& use) {
  while (true) {
    FinalPlans plans = COLLAGE_TRY(make());
    const auto too_large = std::find_if(plans.plans.begin(), plans.plans.end(), [&](const Plan& plan) {
      return !plan.is_single_backend && !FitsMemory(*placement, plan.result.choices);
    });
    if (too_large != plans.plans.end()) {
      COLLAGE_TRY_STATUS(use(KeepOff(*placement, {too_large->result.choices})));
      continue;
    }
    const size_t refusals = RefusalsOf(*placement);
    Result<RaceOutcome> raced = race(plans.plans);
    if (raced && !raced->is_of_wrong_kernels) return RacedPlans{std::move(plans), std::move(*raced)};
    if (raced) continue;
    if (RefusalsOf(*placement) == refusals) return Fail(raced.error());
    if (!forget()) COLLAGE_TRY_STATUS(use(KeepOff(*placement, {plans.plans.front().result.choices, /*was_refused=*/true})));
  }
}

}  // namespace collage
