#include "collage/driver/placement_report.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "collage/driver/candidates.h"
#include "collage/search/alternatives.h"

namespace collage {
namespace {

/// The problem at the prices known now. What was not priced takes part in no alternative, nor does the fallback but where it has to.
SearchProblem KnownProblem(const Placement::State& state, const Plan& plan) {
  SearchProblem problem = state.built.problem;
  std::vector<bool> competes = state.Competing();
  for (const SearchChoice& choice : plan.result.choices) competes[choice.candidate] = true;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    std::vector<SearchVariant>& variants = problem.candidates[c].variants;
    for (size_t v = 0; v < variants.size(); ++v)
      variants[v].cost = competes[c] && state.prices->IsPriced(c, v) ? state.prices->PriceOrBound(c, v) : Cost::Unknown();
  }
  return problem;
}

class Reporter {
 public:
  Reporter(const Placement::State& state, const Plan& plan)
      : state_(state),
        plan_(plan),
        problem_(KnownProblem(state, plan)),
        alternatives_(problem_, plan.result.choices),
        names_(state.NodeNames()) {
    for (size_t i = 0; i < plan.result.choices.size(); ++i) {
      Candidate(i).inside.ForEach([&](size_t node) { owner_.resize(std::max(owner_.size(), node + 1)), owner_[node] = i; });
    }
  }

  CompileReport Run() {
    FindRejections();
    CompileReport report;
    report.threads = state_.pricer.device().threads;
    report.estimated_us = plan_.result.cost.ToMicroseconds();
    report.lower_bound_us = plan_.result.lower_bound.ToMicroseconds();
    report.search_complete = state_.search_complete;
    if (const std::optional<PlanTie>& tie = plan_.tie) report.tie = ReportedTie{tie->within, tie->partitions, tie->cost.ToMicroseconds()};
    report.pins = state_.constraints->said().pin;
    report.forbids = state_.constraints->said().forbid;
    const std::vector<std::string> symbols = PartitionSymbols(state_.graph, state_.candidates, plan_.result.choices);
    std::vector<OperatorPlacement> by_choice;
    for (size_t i = 0; i < plan_.result.choices.size(); ++i) by_choice.push_back(PlacementOf(i, symbols[i], report));
    for (size_t node = 0; node < owner_.size(); ++node) {
      OperatorPlacement placement = by_choice[owner_[node]];
      const Expr& call = state_.graph[state_.built.nodes[node]].expr;
      placement.name = names_[node];
      placement.nodes = call->origin().OnnxNodes();
      placement.op = CalledOp(call)->name;
      placement.rejections = rejections_[node];
      placement.pinned = !state_.constraints->PinOf(state_.built.nodes[node]).empty();
      report.operators.push_back(std::move(placement));
    }
    return report;
  }

 private:
  [[nodiscard]] const SearchCandidate& Candidate(size_t choice) const {
    return problem_.candidates[plan_.result.choices[choice].candidate];
  }

  OperatorPlacement PlacementOf(size_t i, const std::string& symbol, CompileReport& report) {
    const SearchChoice& choice = plan_.result.choices[i];
    const PricedCandidate& candidate = state_.candidates[choice.candidate];
    OperatorPlacement placement;
    placement.sharers = Candidate(i).inside.Count();
    if (!candidate.is_partition) {
      placement.backend = "host";
      return placement;
    }
    placement.backend = state_.targets[candidate.backend].priced.backend->Name();
    placement.variant = candidate.variants[choice.variant].variant.name;
    placement.symbol = symbol;
    placement.cost_us = state_.prices->PriceOrBound(choice.candidate, choice.variant).ToMicroseconds();
    PlanEntry entry{symbol, placement.backend, placement.variant, {}, placement.cost_us};
    entry.margin_us = FindAlternatives(i, placement);
    placement.left_out = !alternatives_.IsSearchable(i);
    report.decisions_left_out += placement.left_out ? 1 : 0;
    std::vector<Origin> origins;
    Candidate(i).inside.ForEach([&](size_t node) {
      const Expr& call = state_.graph[state_.built.nodes[node]].expr;
      entry.operators.push_back(CalledOp(call)->name);
      origins.push_back(call->origin());
    });
    entry.nodes = Origin::Union(origins).OnnxNodes();
    report.plan.push_back(std::move(entry));
    return placement;
  }

  // How much the best plan without partition `i` would cost more, and that in which another backend holds its first operator. Often
  // they are one plan. A plan is only changed near by: far away nothing changes.
  std::optional<double> FindAlternatives(size_t i, OperatorPlacement& placement) {
    const size_t first = Candidate(i).inside.First();
    const auto holds_first = [&](size_t c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      return candidate.is_partition && candidate.backend == Candidate(i).backend && candidate.inside.Contains(first);
    };
    using Found = Alternatives::Found;
    const std::optional<Found> other = alternatives_.BestWithout(i, [&](size_t c) { return c == plan_.result.choices[i].candidate; });
    if (!other) return std::nullopt;
    const bool is_runner_up = std::none_of(other->choices.begin(), other->choices.end(),
                                           [&](const SearchChoice& choice) { return holds_first(choice.candidate); });
    if (const std::optional<Found> runner_up = is_runner_up ? other : alternatives_.BestWithout(i, holds_first))
      NameRunnerUp(*runner_up, first, placement);
    return other->extra.ToMicroseconds();
  }

  void NameRunnerUp(const Alternatives::Found& plan, size_t node, OperatorPlacement& placement) const {
    for (const SearchChoice& choice : plan.choices) {
      if (!problem_.candidates[choice.candidate].inside.Contains(node)) continue;
      const PricedCandidate& candidate = state_.candidates[choice.candidate];
      placement.runner_up = candidate.is_partition ? std::string(state_.targets[candidate.backend].priced.backend->Name()) : "host";
      if (candidate.is_partition) placement.runner_up += " " + candidate.variants[choice.variant].variant.name;
      placement.runner_up_extra_us = plan.extra.ToMicroseconds();
    }
  }

  void FindRejections() {
    rejections_.resize(problem_.node_count);
    std::set<std::tuple<size_t, std::string, std::string, std::string>> seen;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) {
        const std::string& reason = state_.prices->InvalidReason(c, v);
        if (reason.empty()) continue;
        const Rejection rejection{state_.prices->KeyOf(c, v).backend, state_.prices->KeyOf(c, v).variant, reason};
        problem_.candidates[c].inside.ForEach([&](size_t node) {
          if (seen.emplace(node, rejection.backend, rejection.variant, reason).second) rejections_[node].push_back(rejection);
        });
      }
    }
  }

  const Placement::State& state_;
  const Plan& plan_;
  const SearchProblem problem_;
  Alternatives alternatives_;
  std::vector<std::string> names_;                  // of nodes
  std::vector<size_t> owner_;                       // choice that holds each node
  std::vector<std::vector<Rejection>> rejections_;  // by node
};

}  // namespace

Result<CompileReport> ReportOf(const Placement::State& state, const Plan& plan) { return Reporter(state, plan).Run(); }

}  // namespace collage
