#include "collage/driver/placement_report.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "collage/driver/candidates.h"

namespace collage {
namespace {

// A runner-up is looked for among plans that differ from the chosen one within this many operators on either side: far away
// nothing changes, and searching the whole function once for every partition would be quadratic.
constexpr size_t kWindow = 24;

class Reporter {
 public:
  Reporter(const Placement::State& state, const Plan& plan)
      : state_(state), plan_(plan), problem_(state.built.problem), names_(state.NodeNames()) {
    for (size_t i = 0; i < plan.result.choices.size(); ++i) {
      chosen_.insert(plan.result.choices[i].candidate);
      Candidate(i).inside.ForEach([&](size_t node) { owner_.resize(std::max(owner_.size(), node + 1)), owner_[node] = i; });
    }
  }

  CompileReport Run() {
    CompileReport report;
    report.threads = state_.pricer.device().threads;
    report.estimated_us = plan_.result.cost.ToMicroseconds();
    report.lower_bound_us = plan_.result.lower_bound.ToMicroseconds();
    report.search_complete = state_.search_complete;
    report.pins = state_.constraints->said().pin;
    report.forbids = state_.constraints->said().forbid;
    const std::vector<std::string> symbols = PartitionSymbols(state_.graph, state_.candidates, plan_.result.choices);
    std::vector<OperatorPlacement> by_choice;
    for (size_t i = 0; i < plan_.result.choices.size(); ++i) by_choice.push_back(PlacementOf(i, symbols[i], report));
    for (size_t node = 0; node < owner_.size(); ++node) {
      OperatorPlacement placement = by_choice[owner_[node]];
      const Expr& call = state_.graph[state_.built.nodes[node]].expr;
      placement.name = names_[node];
      placement.op = CalledOp(call)->name;
      placement.rejections = RejectionsOf(node);
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
    Candidate(i).inside.ForEach(
        [&](size_t node) { entry.operators.push_back(CalledOp(state_.graph[state_.built.nodes[node]].expr)->name); });
    report.plan.push_back(std::move(entry));
    return placement;
  }

  // The best plan in which nothing that `is_excluded` is, all else within the window of partition `i` being free.
  template <class Predicate>
  std::optional<SearchResult> BestWithout(size_t i, const Predicate& is_excluded) {
    const size_t first = Candidate(i).inside.First();
    const size_t low = first > kWindow ? first - kWindow : 0;
    const size_t high = Candidate(i).inside.Last() + kWindow;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      SearchCandidate& candidate = problem_.candidates[c];
      const bool is_near = !candidate.inside.Empty() && candidate.inside.First() >= low && candidate.inside.Last() <= high;
      const bool competes = !state_.IsFallback(c) || state_.CoversOnlyOrphans(c);
      const bool allowed = competes && (is_near || chosen_.contains(c)) && !is_excluded(c);
      for (size_t v = 0; v < candidate.variants.size(); ++v)
        candidate.variants[v].cost = allowed && state_.prices->IsPriced(c, v) ? state_.prices->PriceOrBound(c, v) : Cost::Unknown();
    }
    Result<SearchResult> best = SearchDijkstra(problem_);
    if (!best || !best->cost.IsKnown() || !plan_.result.cost.IsKnown()) return std::nullopt;
    return std::move(*best);
  }

  // How much the best plan without partition `i` would cost more, and that in which another backend holds its first operator. Often
  // they are one plan.
  std::optional<double> FindAlternatives(size_t i, OperatorPlacement& placement) {
    const size_t first = Candidate(i).inside.First();
    const auto holds_first = [&](size_t c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      return candidate.is_partition && candidate.backend == Candidate(i).backend && candidate.inside.Contains(first);
    };
    const std::optional<SearchResult> other = BestWithout(i, [&](size_t c) { return c == plan_.result.choices[i].candidate; });
    if (!other) return std::nullopt;
    const bool is_runner_up = std::none_of(other->choices.begin(), other->choices.end(),
                                           [&](const SearchChoice& choice) { return holds_first(choice.candidate); });
    if (const std::optional<SearchResult> runner_up = is_runner_up ? other : BestWithout(i, holds_first))
      NameRunnerUp(*runner_up, first, placement);
    return (other->cost - plan_.result.cost).ToMicroseconds();
  }

  void NameRunnerUp(const SearchResult& plan, size_t node, OperatorPlacement& placement) const {
    for (const SearchChoice& choice : plan.choices) {
      if (!problem_.candidates[choice.candidate].inside.Contains(node)) continue;
      const PricedCandidate& candidate = state_.candidates[choice.candidate];
      placement.runner_up = candidate.is_partition ? std::string(state_.targets[candidate.backend].priced.backend->Name()) : "host";
      if (candidate.is_partition) placement.runner_up += " " + candidate.variants[choice.variant].variant.name;
      placement.runner_up_extra_us = (plan.cost - plan_.result.cost).ToMicroseconds();
    }
  }

  [[nodiscard]] std::vector<Rejection> RejectionsOf(size_t node) const {
    std::vector<Rejection> rejections;
    std::set<std::string> seen;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      if (!problem_.candidates[c].inside.Contains(node)) continue;
      for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) {
        const std::string& reason = state_.prices->InvalidReason(c, v);
        if (reason.empty()) continue;
        Rejection rejection{state_.prices->KeyOf(c, v).backend, state_.prices->KeyOf(c, v).variant, reason};
        if (seen.insert(rejection.backend + "\n" + rejection.variant + "\n" + reason).second) rejections.push_back(std::move(rejection));
      }
    }
    return rejections;
  }

  const Placement::State& state_;
  const Plan& plan_;
  SearchProblem problem_;
  std::vector<std::string> names_;     // of nodes
  std::unordered_set<size_t> chosen_;  // candidates of the plan
  std::vector<size_t> owner_;          // choice that holds each node
};

}  // namespace

Result<CompileReport> ReportOf(const Placement::State& state, const Plan& plan) { return Reporter(state, plan).Run(); }

}  // namespace collage
