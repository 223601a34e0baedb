#include "collage/driver/compile_function.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "collage/backend/onnx_variants.h"
#include "collage/backend/registry.h"
#include "collage/cache/cache.h"
#include "collage/cache/cache_database.h"
#include "collage/cache/cache_entry.h"
#include "collage/decide/priced_problem.h"
#include "collage/driver/branches.h"
#include "collage/driver/compile_time.h"
#include "collage/driver/evidence_store.h"
#include "collage/driver/kept_decision.h"
#include "collage/driver/large_weights.h"
#include "collage/driver/model_inputs.h"
#include "collage/driver/more_candidates.h"
#include "collage/driver/placement_report.h"
#include "collage/driver/plan_measurer.h"
#include "collage/driver/plans.h"
#include "collage/driver/race.h"
#include "collage/driver/search_by_name.h"
#include "collage/driver/timer.h"
#include "collage/driver/tuning.h"
#include "collage/driver/whole_plans.h"
#include "collage/explain/plan_names.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/onnx/reader.h"
#include "collage/support/clock.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage {
namespace {

/// The model on its way to a program: one object for the length of a compile.
class Compile {
 public:
  Compile(const CompileOptions& options, MeasurementCache& cache, std::vector<PlacementTarget> targets, OnnxModel model, IRModule module)
      : options_(options),
        targets_(std::move(targets)),
        model_(std::make_shared<const OnnxModel>(std::move(model))),
        module_(std::move(module)),
        device_{DeviceKind::kCpu, 0, options.threads},
        timer_(MakeTimer(options.isolated, options.threads)),
        pricer_(device_, cache, ForModel(module_.Main(), WithinBudget(options.measure, options.WholeBudget())), timer_.get()) {
    if (options.cache_only) pricer_.AllowOnlyCached();
    lower_.device = device_;
    lower_.find_backend = FindBackend;
    lower_.kernels = std::make_shared<KernelCache>();
    lower_.program.input_names = model_->input_names;
    lower_.program.output_names = model_->output_names;
    measuring_ = options.progress;
    seconds_left_ = std::max(0.0, options.budget_seconds - options.seconds_spent);
  }

  Result<CompiledModel> Run(const std::string& name) {
    COLLAGE_TRY_STATUS(Place());
    COLLAGE_TRY_STATUS(Decide());
    RacedPlans raced = COLLAGE_TRY(RaceOf([this] { return Contestants(); }));
    if (const std::string objection = raced.race.objection; !objection.empty()) {
      const std::string why = objection + ", although each of its kernels agrees";
      Result<RacedPlans> reference = RaceOf([&] { return PlanOfReference(why); });
      if (!reference) return Fail(reference.error().At("no plan agrees with the reference executor: the searched one " + why));
      raced = std::move(*reference);
      if (!raced.race.objection.empty())
        return Fail("no plan agrees with the reference executor: that of the reference kernels " + raced.race.objection);
    }
    if (measurer_) COLLAGE_TRY_STATUS(KeepDecision());
    auto& [plans, race] = raced;
    CompileReport report = COLLAGE_TRY(Report(name, plans, race));
    COLLAGE_TRY_STATUS(SaveSingles(plans, report));
    std::string metadata = ToMetadata(OfEveryCompile(report), RecordOf(*placement_, {evidence_, prices_}, plans.plans[race.winner]));
    return CompiledModel{std::move(*race.lowered), std::move(report), std::move(metadata)};
  }

  Result<PlacedFunction> PlaceOnly() {
    COLLAGE_TRY_STATUS(Place());
    COLLAGE_TRY_STATUS(Decide());
    const FinalPlans plans = COLLAGE_TRY(Contestants());
    const Plan& plan = plans.plans.front();
    return PlacedFunction{COLLAGE_TRY(Apply(*placement_, plan)), Save(*placement_, plan),
                          ReportOf(*placement_, {evidence_, prices_}, plan)};
  }

 private:
  /// Phases 1 and 2, what the classic flow would take included, so that each single-backend plan is in the search space.
  Status Place() {
    if (IsCacheUrl(options_.cache)) {
      fleet_.emplace(COLLAGE_TRY(Fleet::Of(pricer_.cache(), device_)));
      pricer_.UseFleet(&*fleet_);
    }
    placement_ = COLLAGE_TRY(MakePlacement(module_.MainExpr(), targets_, pricer_, options_.progress, options_.constraints,
                                           {.choose_devices = options_.choose_devices,
                                            .stated_rules = options_.partition_rules,
                                            .forms = AllForms(options_.forms),
                                            .original = model_->original ? model_ : nullptr,
                                            .precision = options_.precision}));
    greedy_ = GreedyPlans(*placement_);
    placement_ = COLLAGE_TRY(WithGreedyPlans(placement_, greedy_, pricer_));
    store_.emplace(pricer_, placement_->ContextHash());
    return {};
  }

  /// What an earlier compile has decided is not decided again, unless there is more time now than there was then.
  Status Decide() {
    if (options_.tuning_seconds <= 0 && COLLAGE_TRY(IsDecided())) return {};
    store_->LimitTo(std::nullopt);
    evidence_ = COLLAGE_TRY(store_->Load(*placement_));
    COLLAGE_TRY_STATUS(EnsureMeasurer());
    COLLAGE_TRY_STATUS(MeasureOriginals());
    COLLAGE_TRY_STATUS(MeasureConversions());
    if (options_.eager || !COLLAGE_TRY(FindSearcher(options_.search)).is_exact) COLLAGE_TRY_STATUS(MeasureEverything());
    const Clock::time_point end_of_measuring = measuring_.deadline;
    measuring_.deadline -= TimeForBranches();
    decision_ = COLLAGE_TRY(DecideAmongAll());
    measuring_.deadline = end_of_measuring;
    if (options_.tuning_seconds > 0) {
      const Plan plan = MakePlan(*placement_, kSearchedPlan, decision_->best);
      COLLAGE_TRY_STATUS(
          Use(COLLAGE_TRY(Tune(placement_, evidence_, plan, pricer_, options_.tuning_seconds, options_.declared, measuring_))));
      decision_ = COLLAGE_TRY(DecideAmongAll());
    }
    COLLAGE_TRY_STATUS(JoinPartitions());
    COLLAGE_TRY_STATUS(DecideSingles());
    decided_in_ = SecondsOfDecision();
    return KeepDecision();
  }

  [[nodiscard]] double SecondsOfDecision() const { return decision_->is_settled && left_out_ == 0 ? kForever : options_.WholeBudget(); }

  Status KeepDecision() {
    const bool is_stopped = options_.progress.stop_requested && options_.progress.stop_requested->load();
    if (is_stopped || pricer_.allows_only_cached()) return {};
    return StoreDecision(pricer_, HashOfDecision(), {decided_in_, joins_, WhatIsKnown(evidence_)});
  }

  [[nodiscard]] uint64_t HashOfDecision() const {
    const uint64_t hash = placement_->DecisionHash();
    return IsUsualSearch() ? hash : HashCombine(hash, HashBytes(options_.search));
  }

  [[nodiscard]] bool IsUsualSearch() const { return options_.search == CompileOptions::kUsualSearch; }

  Result<bool> IsDecided() {
    std::optional<KeptDecision> kept = COLLAGE_TRY(FindDecision(pricer_, HashOfDecision()));
    if (!kept || (!pricer_.allows_only_cached() && kept->seconds < options_.WholeBudget())) return false;
    decided_in_ = kept->seconds;
    store_->LimitTo(std::move(kept->known));
    evidence_ = COLLAGE_TRY(store_->Load(*placement_));
    COLLAGE_TRY_STATUS(JoinAsBefore(std::move(kept->joins)));
    const auto from_known = [&](const PlacementPointer& placement) -> Result<Decision> {
      if (placement != placement_) COLLAGE_TRY_STATUS(Use(placement));
      decided_among_ = CompiledInTime(*placement_, evidence_, placement_->Competing(), decided_in_);
      Result<Decision> decision = DecideFromKnown(placement_->arms, evidence_, Among(decided_among_));
      if (decision) return decision;
      decided_among_ = placement_->Lying();
      return DecideFromKnown(placement_->arms, evidence_, Among(decided_among_));
    };
    Result<Decision> decision = DecideWithinMemory(placement_, from_known, [] { return std::nullopt; });
    // A kernel of every known plan may have been found wrong since: then there is more to decide.
    if (!decision) return false;
    decision_ = std::move(*decision);
    return true;
  }

  /// A short budget is for deciding first of all: a race of two plans that nobody has looked into tells little. A seventh of a minute is
  /// what twelve plans take in six rounds of 0.12 s (RaceOptions).
  [[nodiscard]] double SecondsOfRace() const {
    constexpr double kShare = 1.0 / 7;
    return std::min(options_.race_seconds, seconds_left_ * kShare);
  }

  /// Where plans cannot be told apart their race takes of what a settled decision has left of the budget as long again as what came before
  /// it: deciding knows of a plan's kernels, and only the race of the plan beside others.
  [[nodiscard]] Clock::time_point EndOfRace() const {
    const double spent = Clock::SecondsSince(start_);
    return Clock::After(std::min(spent, seconds_left_ - spent));
  }

  /// Leaves time for what comes after: building the plans that race, and the race. None for runs of the reference that tell how far
  /// rounding goes: few models need them, and of a large one each takes a third of the budget.
  Status EnsureMeasurer() {
    if (measurer_) return {};
    const ReferenceSample& sample = *COLLAGE_TRY(Reference().Sample());
    measurer_.emplace(pricer_, *store_, lower_, sample, options_, measuring_);
    measurer_->SetPlacement(*placement_);
    measurer_->SetRounding([this] { return Reference().Rounding(); });
    const double left = seconds_left_ - Clock::SecondsSince(start_);
    const double seconds = std::max(0.0, left - SecondsOfRace());
    measuring_.deadline = before_race_ = Clock::After(seconds);
    constexpr double kShareOfDeciding = 0.5;  // the rest is for whole plans of the graph level
    if (COLLAGE_TRY(FindSearcher(options_.search)).runs_whole_plans) measuring_.deadline = Clock::After(kShareOfDeciding * seconds);
    CountContestants(nullptr);
    return {};
  }

  /// Of each plan that will race the time for building it is kept: of those that there are by now.
  void CountContestants(const SearchResult* best) {
    const std::vector<Price> prices = Believe(placement_->arms.kernels, evidence_, options_.declared);
    measurer_->SetContestants(MostPlansToRace(*placement_, prices, greedy_, best), SecondsOfRace());
  }

  Status Use(PlacementPointer placement) {
    placement_ = std::move(placement);
    evidence_ = COLLAGE_TRY(store_->Load(*placement_, std::move(evidence_)));
    if (measurer_) measurer_->SetPlacement(*placement_);
    return measurer_ ? MeasureConversions() : Status{};
  }

  /// As many as can be until `stop` says so.
  Status Take(const std::vector<size_t>& kernels, const std::function<bool()>& stop) {
    for (auto& [number, found] : COLLAGE_TRY(measurer_->MeasureUntil(kernels, stop))) {
      if (evidence_[number].alone.empty()) evidence_[number].alone = std::move(found.alone);
      if (!found.invalid_reason.empty()) evidence_[number].invalid_reason = found.invalid_reason;
    }
    return {};
  }

  /// So many covers need some that it pays to know them all. Where there is no time for that, each is priced with the cover that needs it.
  Status MeasureConversions() {
    std::vector<size_t> unknown;
    for (size_t kernel = 0; kernel < placement_->kernels.size(); ++kernel) {
      if (placement_->kernels[kernel].candidate == PlacedKernel::kNone && evidence_[kernel].alone.empty()) unknown.push_back(kernel);
    }
    return Take(unknown, [this] { return measuring_.ShouldStop(); });
  }

  /// What users of one library alone would run: no plan is to be slower, whatever else there is time for.
  Status MeasureOriginals() { return MeasureAll(placement_->OfOriginals()); }
  Status MeasureEverything() { return MeasureAll(placement_->Competing()); }

  Status MeasureAll(std::vector<bool> among) {
    const std::vector<bool> competing = InTime(std::move(among));
    std::set<size_t> unknown;
    for (size_t c = 0; c < placement_->candidates.size(); ++c) {
      for (const size_t kernel : placement_->arms.kernel_of[c]) {
        const bool is_unknown = kernel != Arms::kNoKernel && evidence_[kernel].alone.empty() && evidence_[kernel].invalid_reason.empty();
        if (competing[c] && is_unknown) unknown.insert(kernel);
      }
    }
    return Take({unknown.begin(), unknown.end()}, [this] { return measuring_.ShouldStop(); });
  }

  [[nodiscard]] DecideOptions Among(std::vector<bool> allowed) {
    DecideOptions options;
    options.declared = options_.declared;
    options.allowed = std::move(allowed);
    options.report = [this](double open, const SearchResult* best) {
      if (!measurer_) return;
      measurer_->SetOpen(open);
      // A single backend's best cover is none that the searched plan is made of.
      CountContestants(decision_ ? &decision_->best : best);
      spdlog::debug("{} kernels alone, {} programs: a cover might still be {:.1f}% cheaper", measurer_->alone(), measurer_->programs(),
                    100 * open);
    };
    return options;
  }

  /// What takes longer to compile than the whole budget is not decided about, so that the plan is one that the options say.
  [[nodiscard]] std::vector<bool> InTime(std::vector<bool> among) const {
    return CompiledInTime(*placement_, evidence_, std::move(among), options_.WholeBudget());
  }

  /// Of covers that fit the memory of the devices.
  Result<Decision> DecideAmongAll() {
    const auto decide = [this](const PlacementPointer& placement) -> Result<Decision> {
      if (placement != placement_) COLLAGE_TRY_STATUS(Use(placement));
      return DecideAmongCompeting();
    };
    return DecideWithinMemory(placement_, decide, [this] { return measurer_->TakeMisfit(); });
  }

  /// Of the fastest graph compiler that was given the whole model as it came; Unknown where none takes it.
  [[nodiscard]] Cost CostOfOriginal() const {
    const std::vector<Price> prices = Believe(placement_->arms.kernels, evidence_, options_.declared);
    const Result<SearchResult> original = SearchAt(placement_->arms, Centres(prices), placement_->OfOriginals());
    return original ? original->cost : Cost::Unknown();
  }

  Result<Decision> DecideAmongCompeting() {
    decided_among_ = InTime(placement_->Competing());
    left_out_ = CountTooLongToCompile(*placement_, evidence_, options_.WholeBudget());
    DecideOptions among = Among(decided_among_);
    among.incumbent = CostOfOriginal();
    Result<Decision> decision = collage::Decide(placement_->arms, evidence_, *measurer_, among);
    if (decision || pricer_.has_missed() || measurer_->HasMisfit()) return decision;
    // Time ended while only whole models as they came were known; or some operator has candidates that all turned out Invalid, and then the
    // fallback may take anything.
    spdlog::info("searching again among all candidates: {}", decision.error().message);
    decided_among_ = placement_->Lying();
    left_out_ = 0;
    decision = collage::Decide(placement_->arms, evidence_, *measurer_, Among(decided_among_));
    return decision ? decision : Fail(placement_->NameNode(decision.error().message, evidence_));
  }

  /// Which partitions may run side by side a plan says, and on a large model deciding about plans takes all the time that there is. In an
  /// eighth of it the branches of some dozens of forks are timed, and without them a plan changes little in the last eighth.
  [[nodiscard]] Clock::duration TimeForBranches() const {
    constexpr int kShare = 8;
    if (!SideBySideTarget(*placement_) || options_.threads < 2) return {};
    return std::max(measuring_.deadline - Clock::now(), Clock::duration()) / kShare;
  }

  /// Those that might gain most come first.
  Status MeasureBranches(size_t first) {
    std::vector<size_t> unknown;
    for (size_t c = first; c < placement_->candidates.size(); ++c) {
      if (placement_->candidates[c].backend != SideBySideTarget(*placement_)) continue;
      for (const size_t kernel : placement_->arms.kernel_of[c]) {
        if (evidence_[kernel].alone.empty() && evidence_[kernel].invalid_reason.empty()) unknown.push_back(kernel);
      }
    }
    return Take(unknown, [this] { return measurer_->IsOver(); });
  }

  /// Adds what partitions of the best plan may become together: one of a graph compiler that sees more, or branches side by side. Of these
  /// only what has a price below that of its parts: a search takes longer with each candidate whose operators lie far apart, and no cover
  /// is cheaper by one that is dearer than its parts in the same layouts. False where nothing was added.
  Result<bool> JoinPartsOf(const SearchResult& best) {
    const Plan plan = MakePlan(*placement_, kSearchedPlan, best);
    JoinedPlan join{best.choices, {}};
    std::vector<BranchCandidate> branches =
        BranchesSideBySide(*placement_, plan, Believe(placement_->arms.kernels, evidence_, options_.declared));
    std::erase_if(branches, [this](const BranchCandidate& one) {
      return std::ranges::any_of(dearer_branches_, [&](const PricedCandidate& dearer) { return IsSamePartition(dearer, one.candidate); });
    });
    if (!branches.empty()) {
      const PlacementPointer before = placement_;
      std::vector<Evidence> evidence_before = evidence_;
      const size_t first = before->candidates.size();
      PlacementAddition addition;
      for (const BranchCandidate& one : branches) addition.candidates.push_back(one.candidate);
      COLLAGE_TRY_STATUS(Use(COLLAGE_TRY(Extend(*before, std::move(addition), pricer_))));
      COLLAGE_TRY_STATUS(MeasureBranches(first));
      const std::vector<Price> prices = Believe(placement_->arms.kernels, evidence_, options_.declared);
      for (BranchCandidate& one : branches) {
        const std::optional<size_t> c = placement_->FindPartition(one.candidate);
        if (c && IsCheaperThanParts(*placement_, *c, best.choices, prices)) {
          join.branches.push_back(std::move(one.branches));
        } else {
          dearer_branches_.push_back(std::move(one.candidate));
        }
      }
      evidence_ = std::move(evidence_before);
      COLLAGE_TRY_STATUS(Use(before));
    }
    const PlacementPointer joined = COLLAGE_TRY(Joined(*placement_, join, pricer_));
    if (joined->candidates.size() == placement_->candidates.size()) return false;
    joins_.push_back(std::move(join));
    COLLAGE_TRY_STATUS(Use(joined));
    return true;
  }

  /// Joined partitions are candidates like any other; where the best plan takes one, its neighbours may be joined to it.
  Status JoinPartitions() {
    while (!measuring_.ShouldStop() && COLLAGE_TRY(JoinPartsOf(decision_->best))) decision_ = COLLAGE_TRY(DecideAmongAll());
    return {};
  }

  /// The joins that an earlier compile has made.
  Status JoinAsBefore(std::vector<JoinedPlan> joins) {
    for (JoinedPlan& join : joins) {
      if (!IsOf(*placement_, join)) break;
      COLLAGE_TRY_STATUS(Use(COLLAGE_TRY(Joined(*placement_, join, pricer_))));
      joins_.push_back(std::move(join));
    }
    return {};
  }

  /// Every backend gets a plan of its own; and it is looked into as far as it could still beat all together.
  Status DecideSingles() {
    for (const size_t target : placement_->Singles()) {
      DecideOptions among = Among(InTime(placement_->AllowedFor(target)));
      among.rival = decision_->best.cost;
      const Result<Decision> single = collage::Decide(placement_->arms, evidence_, *measurer_, among);
      if (!single && pricer_.has_missed()) return Fail(single.error());
      // It is no plan then, and the others keep what it would have had too much of.
      (void)measurer_->TakeMisfit();
      if (!single) spdlog::info("no plan of {} alone: {}", placement_->TitleOf(target), placement_->NameNode(single.error().message));
    }
    COLLAGE_TRY_STATUS(DecideInFloat32());
    for (const GreedyPlan& plan : greedy_) {
      const std::vector<Price> prices = Believe(placement_->arms.kernels, evidence_, options_.declared);
      COLLAGE_TRY_STATUS(Take(UnknownKernelsOf(*placement_, plan, prices), [this] { return measurer_->IsOver(); }));
    }
    return {};
  }

  /// What the best plan would be without the permitted precision, looked into as single backends are.
  Status DecideInFloat32() {
    if (!UsesPrecision(*placement_, decision_->best.choices)) return {};
    std::vector<Evidence> evidence = evidence_;
    const std::vector<PlacedKernel>& kernels = placement_->kernels;
    for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
      if (kernels[kernel].variant.uses_precision) evidence[kernel].invalid_reason = "is not float32";
    }
    DecideOptions among = Among(InTime(placement_->Competing()));
    among.rival = decision_->best.cost;
    const Result<Decision> decision = collage::Decide(placement_->arms, evidence, *measurer_, among);
    (void)measurer_->TakeMisfit();
    for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
      if (!kernels[kernel].variant.uses_precision) evidence_[kernel] = std::move(evidence[kernel]);
    }
    if (!decision && pricer_.has_missed()) return Fail(decision.error());
    if (!decision) spdlog::info("no plan in float32: {}", placement_->NameNode(decision.error().message));
    return {};
  }

  /// By the searcher that was asked for; nothing where that is the usual one.
  Result<std::optional<SearchResult>> ChosenByName() {
    if (IsUsualSearch()) return std::nullopt;
    measuring_.deadline = before_race_;
    WholePlans plans(*placement_, pricer_, measurer_ ? &*measurer_ : nullptr, evidence_);
    Result<SearchResult> found = SearchByName(
        options_.search, *placement_, Centres(prices_), [&](const std::vector<SearchChoice>& cover) { return plans.TimeOf(cover); },
        measuring_);
    if (!plans.status()) return Fail(plans.status().error());
    return COLLAGE_TRY(std::move(found));
  }

  /// The plans that race; of the prices, which are believed anew. The race may have found that every known cover has a wrong kernel: then
  /// there is one more to be found, whatever time it takes.
  Result<FinalPlans> Contestants() {
    const auto of_known = [this]() -> Result<FinalPlans> {
      prices_ = Believe(placement_->arms.kernels, evidence_, options_.declared);
      return PlansToRace(*placement_, prices_, greedy_, options_.declared, COLLAGE_TRY(ChosenByName()));
    };
    Result<FinalPlans> plans = of_known();
    if (plans || pricer_.allows_only_cached()) return plans;
    COLLAGE_TRY_STATUS(EnsureMeasurer());
    decision_ = COLLAGE_TRY(DecideAmongAll());
    decided_in_ = SecondsOfDecision();
    return of_known();
  }

  /// Kernels may be right on numbers of their own and wrong on those that others hand them, where a sum cancels, say. Which one it is
  /// nobody knows; those of the reference are right. `why` says why the searched plan is not taken.
  Result<FinalPlans> PlanOfReference(const std::string& why) {
    spdlog::warn("the searched plan {}: the slow reference kernels compute all", why);
    COLLAGE_TRY_STATUS(EnsureMeasurer());
    Result<Decision> reference = collage::Decide(placement_->arms, evidence_, *measurer_, Among(placement_->OfFallback()));
    if (!reference) return Fail(placement_->NameNode(reference.error().message, evidence_));
    // Of all covers, which may agree and be cheaper, the bounds say what is open.
    decision_->open = 1;
    decision_->is_settled = false;
    decision_->best = std::move(reference->best);
    prices_ = Believe(placement_->arms.kernels, evidence_, options_.declared);
    return FinalPlans{{MakePlan(*placement_, kPlanOfReference, decision_->best)}, {{kSearchedPlan, why}}};
  }

  Result<RacedPlans> RaceOf(const std::function<Result<FinalPlans>()>& make) {
    return RaceWithinMemory(
        placement_, make, [this](const std::vector<Plan>& plans) { return Race(plans); },
        [this] { return measurer_ && measurer_->ForgetPrograms(); }, [this](PlacementPointer less) { return Use(std::move(less)); });
  }

  Result<RaceOutcome> Race(const std::vector<Plan>& plans) {
    if (measurer_ && lower_.is_limited()) measurer_->ForgetLast();
    if (measurer_) COLLAGE_TRY_STATUS(measurer_->RestoreAnchor());
    Progress racing = options_.progress;
    racing.deadline = before_race_;
    return RacePlans(
        *placement_, plans, pricer_, lower_, [this] { return Reference().Sample(); }, [this] { return Reference().Rounding(); },
        measurer_ ? measurer_->anchor() : nullptr, measurer_ ? MedianAnchorSeconds(evidence_, measurer_->anchor_number()) : 0,
        SecondsOfRace(), EndOfRace(), options_, racing, [this](const Plan& plan, double excess) { return FindWrong(plan, excess); },
        [this] {
          if (measurer_) measurer_->ForgetPrograms();
        });
  }

  /// Kernels of single backends' plans have not all been compared with the reference by themselves. Where rounding has added up in one, it
  /// is out, and the others keep its kernels. One that is all of a plan has been: once more took RAFT in bfloat16 another 4 s.
  Result<bool> FindWrong(const Plan& plan, double excess) {
    if (pricer_.allows_only_cached()) return false;
    COLLAGE_TRY_STATUS(EnsureMeasurer());
    Measurer::Found wrong;
    if (plan.IsOneKernel())
      wrong.push_back(COLLAGE_TRY(measurer_->Refuse(plan.kernels.front().kernel, "is not right as the whole model")));
    else
      wrong = COLLAGE_TRY(measurer_->FindWrong(plan.result.choices, plan.is_single_backend ? 0 : excess));
    for (const auto& [kernel, found] : wrong) evidence_[kernel].invalid_reason = found.invalid_reason;
    return !wrong.empty();
  }

  ModelReference& Reference() {
    if (!reference_) {
      KeepWeightsInFile(module_, *model_, options_.output, *lower_.kernels);
      reference_.emplace(module_.MainExpr(), placement_->OperatorCount(), options_.threads, options_.progress);
    }
    return *reference_;
  }

  /// Of the candidates that were decided about, or where the race has found too many of their kernels wrong, of all that may lie.
  Result<Bounds> BoundsOfAll() const {
    const Result<Bounds> bounds = BoundsOf(placement_->arms, prices_, decided_among_, *decision_);
    return bounds ? bounds : BoundsOf(placement_->arms, prices_, placement_->Lying(), *decision_);
  }

  Result<CompileReport> Report(const std::string& name, const FinalPlans& plans, RaceOutcome& race) {
    const Plan& winner = plans.plans[race.winner];
    const Bounds bounds = COLLAGE_TRY(BoundsOfAll());
    CompileReport report = ReportOf(*placement_, {evidence_, prices_}, winner);
    report.model = name;
    report.threads = options_.threads;
    report.searcher = options_.search;
    report.timed_here = TimedHere(targets_);
    for (const auto& [input, type] : race.lowered->executable.inputs()) report.inputs.emplace_back(input, type.shape);
    report.end_to_end = race.timings;
    report.winner = winner.name;
    report.lower_bound_us = std::min(bounds.likely.ToMicroseconds(), report.estimated_us);
    report.proved_lower_bound_us = std::min(bounds.proved.ToMicroseconds(), report.lower_bound_us);
    report.search_complete = decision_->is_settled;
    report.confidence = options_.declared.confidence;
    report.smallest_difference = options_.declared.smallest_difference;
    report.open = bounds.open;
    report.kept_off = DescribeKeptOff(*placement_);
    report.missing = plans.missing;
    report.missing.insert(report.missing.end(), race.missing.begin(), race.missing.end());
    report.not_compared = race.not_compared;
    report.rounding = race.rounding;
    report.remainder = model_->remainder ? model_->remainder->Summary() : "";
    report.drift = race.drift;
    report.estimated_us *= race.drift;
    if (report.tie) report.tie->cost_us *= race.drift;
    report.lower_bound_us = std::max(report.lower_bound_us * race.drift, report.proved_lower_bound_us);
    report.noise = race.noise;
    report.raced = race.raced;
    report.candidates = CountCandidates(*placement_, {evidence_, prices_}, pricer_.counts());
    report.candidates.variants.too_long = left_out_;
    report.apparent_loss = race.apparent_loss;
    if (!report.end_to_end.empty()) report.additive_error_us = report.end_to_end.front().median_ms * 1e3 - report.estimated_us;
    report.budget_seconds = options_.budget_seconds;
    report.elapsed_seconds = options_.seconds_spent + Clock::SecondsSince(start_);
    return report;
  }

  Status SaveSingles(const FinalPlans& plans, const CompileReport& report) {
    const KnownPrices known{evidence_, prices_};
    for (const Plan& plan : plans.plans) {
      if (!plan.is_single_backend || options_.single_backends.empty()) continue;
      const std::filesystem::path file = options_.single_backends / (plan.name + ".collage");
      options_.progress.Report({"saving", 0, 0, file.string()});
      CompileReport of_plan = ReportOf(*placement_, known, plan);
      of_plan.model = report.model;
      of_plan.threads = options_.threads;
      of_plan.inputs = report.inputs;
      of_plan.winner = plan.name;
      const LoweredModel lowered = COLLAGE_TRY(Lower(COLLAGE_TRY(Apply(*placement_, plan)), lower_));
      COLLAGE_TRY_STATUS(SaveProgram(lowered, ToMetadata(of_plan, RecordOf(*placement_, known, plan)), file));
    }
    return {};
  }

  static constexpr double kForever = 1e9;  // seconds that no compile has: what is settled needs no more

  const CompileOptions& options_;
  std::vector<PlacementTarget> targets_;
  std::shared_ptr<const OnnxModel> model_;
  IRModule module_;
  Device device_;
  std::unique_ptr<KernelTimer> timer_;
  Pricer pricer_;
  std::optional<Fleet> fleet_;
  LowerOptions lower_;
  Progress measuring_;
  double seconds_left_ = 0;
  Clock::time_point before_race_ = Clock::time_point::max();
  Clock::time_point start_ = Clock::now();
  PlacementPointer placement_;
  std::vector<GreedyPlan> greedy_;
  std::vector<JoinedPlan> joins_;                 // in their order
  std::vector<PricedCandidate> dearer_branches_;  // than their parts, or without a price
  std::optional<EvidenceStore> store_;
  std::vector<Evidence> evidence_;
  std::optional<ModelReference> reference_;
  std::optional<PlanMeasurer> measurer_;
  std::optional<Decision> decision_;
  std::vector<bool> decided_among_;  // candidates
  size_t left_out_ = 0;              // kernels
  double decided_in_ = 0;            // seconds, as they are kept
  std::vector<Price> prices_;
};

}  // namespace

Result<CompiledModel> CompileFunction(const CompileOptions& options, MeasurementCache& cache, std::vector<PlacementTarget> targets,
                                      OnnxModel model, IRModule module, const std::string& name) {
  return Compile(options, cache, std::move(targets), std::move(model), std::move(module)).Run(name);
}

Result<PlacedFunction> PlaceByMeasuring(const CompileOptions& options, MeasurementCache& cache, std::vector<PlacementTarget> targets,
                                        const Expr& function) {
  return Compile(options, cache, std::move(targets), {}, IRModule::FromMain(function)).PlaceOnly();
}

}  // namespace collage
