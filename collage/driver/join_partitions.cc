#include <algorithm>
#include <map>
#include <optional>

#include "collage/driver/placement.h"
#include "collage/driver/placement_state.h"
#include "collage/ir/structural.h"
#include "collage/partition/cover.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// Every try compiles and times a kernel.
constexpr size_t kMostTries = 24;

class Joiner {
 public:
  Joiner(Placement::State& state, const Plan& plan) : state_(state), plan_(plan) {}

  Result<std::optional<Plan>> Run() {
    Cover cover;
    for (const SearchChoice& choice : plan_.result.choices) {
      const PricedCandidate& candidate = state_.candidates[choice.candidate];
      if (!candidate.is_partition) continue;
      cover.push_back({candidate.candidate, {}});
      COLLAGE_TRY_STATUS(LearnCost(choice));
    }
    const size_t partitions = cover.size();
    cover = JoinAdjacent(state_.graph, std::move(cover), [&](const auto& joined, const auto& first, const auto& second) {
      const Result<bool> may = MayJoin(joined, first, second);
      if (!may && !failure_) failure_ = may.error();
      return may && *may;
    });
    if (failure_) return Fail(*failure_);
    if (cover.size() == partitions) return std::optional<Plan>();
    return PlanOf(cover);
  }

 private:
  struct Measured {
    Cost cost = Cost::Invalid();  // alone
    std::string variant;
  };

  Status LearnCost(const SearchChoice& choice) {
    const auto known = COLLAGE_TRY(state_.pricer.Find(state_.prices->KeyOf(choice.candidate, choice.variant)));
    const Cost cost = known ? state_.pricer.ToCost(*known) : Cost::Unknown();
    measured_[state_.candidates[choice.candidate].candidate.sub_graph.inside()] = {cost, {}};
    return {};
  }

  [[nodiscard]] size_t BackendOf(const CandidatePartition& candidate) const {
    const auto at = std::find_if(state_.targets.begin(), state_.targets.end(),
                                 [&](const PlacementTarget& target) { return target.priced.backend->Name() == candidate.spec->name; });
    return static_cast<size_t>(at - state_.targets.begin());
  }

  /// Graph compilers gain by seeing more. An operator library runs what its rules say, layouts flow between its partitions for
  /// nothing, and what of native code belongs together is for operator fusion to say.
  Result<bool> MayJoin(const CandidatePartition& joined, const CandidatePartition& first, const CandidatePartition& second) {
    const size_t backend = BackendOf(joined);
    if (failure_ || state_.targets[backend].priced.style != BackendRules::Style::kPredicate) return false;
    const Cost parts = CostOf(first) + CostOf(second) + TransitionWithin(backend);
    if (!parts.IsKnown()) return false;
    if (!measured_.contains(joined.sub_graph.inside()) && !COLLAGE_TRY(Measure(joined, backend, parts))) return false;
    const Cost whole = CostOf(joined);
    spdlog::debug("{} joined takes {:.1f} us, its parts {:.1f} us", joined.spec->name, whole.IsKnown() ? whole.ToMicroseconds() : -1,
                  parts.ToMicroseconds());
    return whole.IsKnown() && whole <= parts;
  }

  [[nodiscard]] Cost CostOf(const CandidatePartition& candidate) const {
    const auto known = measured_.find(candidate.sub_graph.inside());
    return known == measured_.end() ? Cost::Unknown() : known->second.cost;
  }

  [[nodiscard]] Cost TransitionWithin(size_t backend) const {
    const auto& transition = state_.built.problem.transition;
    return transition.empty() ? Cost() : transition[backend][backend];
  }

  /// False when it was not tried.
  Result<bool> Measure(const CandidatePartition& joined, size_t backend, const Cost& rival) {
    const Result<ExtractedFunction> extracted = ExtractFunction(state_.graph, joined.sub_graph);
    if (!extracted) return false;
    const uint64_t hash = StructuralHash(extracted->function, ForPricing());
    if (const auto alike = by_function_.find({backend, hash}); alike != by_function_.end()) {
      measured_[joined.sub_graph.inside()] = alike->second;
      return true;
    }
    if (by_function_.size() == kMostTries || state_.progress.ShouldStop()) return false;
    Measured best;
    const PricedBackend& priced = state_.targets[backend].priced;
    const Function& function = *extracted->function->As<Function>();
    for (const Variant& variant : priced.backend->Variants(function, state_.pricer.device())) {
      state_.progress.Report({"joining partitions", by_function_.size() + 1, 0, joined.spec->name});
      const MeasurementKey key = state_.pricer.KeyOf(hash, joined.spec->name, priced.version, variant.name);
      std::optional<Measurement> measurement = COLLAGE_TRY(state_.pricer.Find(key));
      if (!measurement) measurement = COLLAGE_TRY(state_.pricer.Measure(key, extracted->function, *priced.backend, variant, {rival}));
      const Cost cost = state_.pricer.ToCost(*measurement);
      if (cost.IsKnown() && (!best.cost.IsKnown() || cost < best.cost)) best = {cost, variant.name};
    }
    by_function_[{backend, hash}] = measured_[joined.sub_graph.inside()] = best;
    return true;
  }

  Result<std::optional<Plan>> PlanOf(const Cover& cover) {
    std::map<IndexSet, SearchChoice> choices;
    IndexSet joined_nodes;
    std::vector<std::pair<IndexSet, std::string>> joined;
    for (const ChosenPartition& chosen : cover) {
      const IndexSet& inside = chosen.candidate.sub_graph.inside();
      const std::string& variant = measured_.at(inside).variant;
      if (variant.empty()) continue;  // as it was
      PricedCandidate candidate{chosen.candidate, COLLAGE_TRY(ExtractFunction(state_.graph, chosen.candidate.sub_graph))};
      candidate.backend = BackendOf(chosen.candidate);
      choices[inside] = {state_.candidates.size(), 0};
      state_.candidates.push_back(std::move(candidate));
      COLLAGE_TRY_STATUS(state_.prices->AddLast(state_.candidates.back()));
      joined.emplace_back(inside, variant);
      joined_nodes |= inside;
    }
    COLLAGE_TRY_STATUS(state_.MakeProblem());
    for (const auto& [inside, variant] : joined) {
      SearchChoice& choice = choices.at(inside);
      const std::vector<PricedVariant>& variants = state_.candidates[choice.candidate].variants;
      while (choice.variant < variants.size() && variants[choice.variant].variant.name != variant) ++choice.variant;
      if (choice.variant == variants.size()) return std::optional<Plan>();
    }
    for (const SearchChoice& choice : plan_.result.choices) {
      const IndexSet& inside = state_.candidates[choice.candidate].candidate.sub_graph.inside();
      if (!inside.Intersects(joined_nodes) || !state_.candidates[choice.candidate].is_partition) choices.emplace(inside, choice);
    }
    Plan plan{"joined", plan_.result, false};
    plan.result.choices.clear();
    for (const auto& [inside, choice] : choices) plan.result.choices.push_back(choice);
    plan.result.partitions = cover.size();
    SearchProblem problem = state_.built.problem;
    for (const SearchChoice& choice : plan.result.choices) {
      problem.candidates[choice.candidate].variants[choice.variant].cost = state_.prices->PriceOrBound(choice.candidate, choice.variant);
    }
    plan.result.cost = PriceOfCover(problem, plan.result.choices);
    if (!COLLAGE_TRY(state_.VerifyChoices(plan.result.choices))) return std::optional<Plan>();
    return plan;
  }

  Placement::State& state_;
  const Plan& plan_;
  std::map<IndexSet, Measured> measured_;  // by inside; without a variant: a partition of the plan
  std::optional<Error> failure_;
  std::map<std::pair<size_t, uint64_t>, Measured> by_function_;  // what was tried, by backend and function
};

}  // namespace

Result<std::optional<Plan>> Placement::JoinAdjacentPartitions(const Plan& plan) { return Joiner(*state_, plan).Run(); }

}  // namespace collage
