#include "collage/driver/placement_report.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "collage/candidate/in_place.h"
#include "collage/candidate/library_calls.h"
#include "collage/driver/form_report.h"
#include "collage/search/alternatives.h"

namespace collage {
namespace {

/// Candidates at the centres of their prices. What is not known takes part in no alternative, nor does the fallback but where it has to.
SearchProblem KnownProblem(const Placement& placement, const KnownPrices& known, const Plan& plan) {
  SearchProblem problem = placement.built.problem;
  std::vector<bool> competes = placement.Competing();
  for (const SearchChoice& choice : plan.result.choices) competes[choice.candidate] = true;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    std::vector<SearchVariant>& variants = problem.candidates[c].variants;
    for (size_t v = 0; v < variants.size(); ++v) {
      const size_t kernel = placement.arms.kernel_of[c][v];
      const Cost cost = kernel == Arms::kNoKernel ? Cost() : known.prices[kernel].centre;
      variants[v].cost = competes[c] && cost.IsKnown() ? cost : Cost::Unknown();
    }
  }
  problem.conversion = [&placement, &known](size_t tensor, size_t from, size_t to) {
    const size_t kernel = from == to ? Arms::kNoKernel : placement.arms.conversion_kernel(tensor, from, to);
    return kernel == Arms::kNoKernel ? Cost() : known.prices[kernel].centre;
  };
  return problem;
}

class Reporter {
 public:
  Reporter(const Placement& placement, const KnownPrices& known, const Plan& plan)
      : placement_(placement),
        known_(known),
        plan_(plan),
        problem_(KnownProblem(placement, known, plan)),
        alternatives_(problem_, plan.result.choices),
        names_(placement.node_names) {
    owner_.assign(problem_.node_count, kNobody);
    for (size_t i = 0; i < plan.result.choices.size(); ++i) Own(i).ForEach([&](size_t node) { owner_[node] = i; });
  }

  CompileReport Run() {
    FindRejections();
    CompileReport report;
    report.estimated_us = plan_.result.cost.ToMicroseconds();
    report.lower_bound_us = plan_.result.lower_bound.ToMicroseconds();
    if (const std::optional<PlanTie>& tie = plan_.tie) report.tie = ReportedTie{tie->within, tie->partitions, tie->cost.ToMicroseconds()};
    report.pins = placement_.said.pin;
    report.forbids = placement_.said.forbid;
    report.stated_forms = DescribeStatedForms(placement_, plan_);
    std::vector<std::string> symbols(plan_.result.choices.size());
    for (const PlanKernel& kernel : plan_.kernels) symbols[kernel.choice] = kernel.symbol;
    std::vector<OperatorPlacement> by_choice;
    for (size_t i = 0; i < plan_.result.choices.size(); ++i) by_choice.push_back(PlacementOf(i, symbols[i], report));
    for (size_t node = 0; node < owner_.size(); ++node) {
      if (owner_[node] == kNobody) continue;  // the plan computes another form of it
      OperatorPlacement placement = by_choice[owner_[node]];
      const Expr& call = (*placement_.formed.graph)[placement_.built.nodes[node]].expr;
      placement.name = names_[node];
      placement.nodes = call->origin().OnnxNodes();
      placement.op = CalledOp(call)->name;
      placement.form = FormOf(node);
      placement.rejections = rejections_[node];
      placement.pinned = !placement_.constraints->PinOf(placement_.built.nodes[node]).empty();
      report.operators.push_back(std::move(placement));
    }
    report.precision = Precision();
    return report;
  }

 private:
  [[nodiscard]] const SearchCandidate& Candidate(size_t choice) const {
    return problem_.candidates[plan_.result.choices[choice].candidate];
  }

  [[nodiscard]] std::optional<ReportedPrecision> Precision() const {
    if (!placement_.precision) return std::nullopt;
    ReportedPrecision reported{NameOf(*placement_.precision), placement_.precision->tolerance};
    for (const PlacedKernel& kernel : placement_.kernels) reported.offered += kernel.variant.uses_precision ? 1 : 0;
    for (const SearchChoice& choice : plan_.result.choices) reported.taken += placement_.UsesPrecision(choice) ? 1 : 0;
    return reported;
  }

  /// What it computes itself, of forms that it takes and of operators that it does not replace.
  [[nodiscard]] const IndexSet& Own(size_t choice) const { return placement_.built.own[plan_.result.choices[choice].candidate]; }

  [[nodiscard]] std::string FormOf(size_t node) const {
    const size_t form = placement_.formed.FormOf(placement_.built.nodes[node]);
    return form == FormedGraph::kNoForm ? std::string() : placement_.formed.forms[form].rule;
  }

  OperatorPlacement PlacementOf(size_t i, const std::string& symbol, CompileReport& report) {
    const SearchChoice& choice = plan_.result.choices[i];
    const PricedCandidate& candidate = placement_.candidates[choice.candidate];
    OperatorPlacement placement;
    placement.sharers = Own(i).Count();
    if (!candidate.is_partition) {
      placement.backend = "host";
      if (IsInPlace(candidate.candidate)) placement.variant = "in place " + candidate.variants[choice.variant].variant.name;
      return placement;
    }
    placement.backend = placement_.NameOf(candidate.backend);
    if (placement_.targets[candidate.backend].device) placement.device = ToString(*placement_.targets[candidate.backend].device);
    placement.variant = candidate.variants[choice.variant].variant.name;
    placement.symbol = symbol;
    const size_t kernel = placement_.arms.kernel_of[choice.candidate][choice.variant];
    placement.cost_us = known_.prices[kernel].centre.ToMicroseconds();
    PlanEntry entry{symbol, placement.backend, placement.variant, {}, placement.cost_us};
    entry.device = placement.device;
    if (placement_.UsesPrecision(choice)) entry.precision = NameOf(*placement_.precision);
    const KernelFacts& facts = placement_.arms.kernels.kernels()[kernel];
    entry.work = PlanWork{facts.flops, facts.bytes, facts.roofline.ToMicroseconds()};
    entry.margin_us = FindAlternatives(i, placement);
    placement.left_out = !alternatives_.IsSearchable(i);
    report.decisions_left_out += placement.left_out ? 1 : 0;
    std::vector<Origin> origins;
    Own(i).ForEach([&](size_t node) {
      if (entry.form.empty()) entry.form = FormOf(node);
      const Expr& call = (*placement_.formed.graph)[placement_.built.nodes[node]].expr;
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
    const size_t first = Own(i).First();
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
      const PricedCandidate& candidate = placement_.candidates[choice.candidate];
      placement.runner_up = candidate.is_partition ? placement_.NameOf(candidate.backend) : "host";
      if (candidate.is_partition) placement.runner_up += " " + candidate.variants[choice.variant].variant.name;
      placement.runner_up_extra_us = plan.extra.ToMicroseconds();
    }
  }

  void FindRejections() {
    rejections_.resize(problem_.node_count);
    std::set<std::tuple<size_t, std::string, std::string, std::string>> seen;
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      for (const size_t kernel : placement_.arms.kernel_of[c]) {
        if (kernel == Arms::kNoKernel || known_.evidence[kernel].invalid_reason.empty()) continue;
        const std::string& reason = known_.evidence[kernel].invalid_reason;
        const Rejection rejection{placement_.kernels[kernel].key.backend, placement_.kernels[kernel].key.variant, reason};
        placement_.built.own[c].ForEach([&](size_t node) {
          if (seen.emplace(node, rejection.backend, rejection.variant, reason).second) rejections_[node].push_back(rejection);
        });
      }
    }
  }

  static constexpr size_t kNobody = static_cast<size_t>(-1);

  const Placement& placement_;
  const KnownPrices& known_;
  const Plan& plan_;
  const SearchProblem problem_;
  Alternatives alternatives_;
  std::vector<std::string> names_;                  // of nodes
  std::vector<size_t> owner_;                       // choice that computes each node
  std::vector<std::vector<Rejection>> rejections_;  // by node
};

}  // namespace

CompileReport ReportOf(const Placement& placement, const KnownPrices& known, const Plan& plan) {
  return Reporter(placement, known, plan).Run();
}

CandidateCounts CountCandidates(const Placement& placement, const KnownPrices& known, const PricerCounts& pricer) {
  CandidateCounts counts;
  counts.found = placement.candidates.size();
  std::set<std::pair<std::string, uint64_t>> distinct;
  std::set<std::pair<std::string, uint64_t>> measured;
  for (size_t number = 0; number < placement.kernels.size(); ++number) {
    const PlacedKernel& kernel = placement.kernels[number];
    if (kernel.candidate == PlacedKernel::kNone) continue;
    distinct.emplace(kernel.key.backend, kernel.key.function_hash);
    const Price& price = known.prices[number];
    if (price.known == Price::Known::kRelatives && price.low > price.proved_low) ++counts.variants.assumed;
    if (price.centre.IsUnknown())
      ++counts.variants.unpriced;
    else
      measured.emplace(kernel.key.backend, kernel.key.function_hash);
  }
  counts.distinct = distinct.size();
  counts.measured = measured.size();
  counts.variants.measured = pricer.measured;
  counts.variants.cached = pricer.cached;
  for (const Evidence& evidence : known.evidence) counts.rejected += evidence.invalid_reason.empty() ? 0 : 1;
  return counts;
}

RecordedProblem RecordOf(const Placement& placement, const KnownPrices& known, const Plan& plan) {
  const SearchProblem problem = KnownProblem(placement, known, plan);
  std::vector<std::vector<Cost>> bounds;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    bounds.emplace_back();
    for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v) {
      const Cost cost = problem.candidates[c].variants[v].cost;
      const size_t kernel = placement.arms.kernel_of[c][v];
      const bool is_invalid = kernel != Arms::kNoKernel && known.prices[kernel].known == Price::Known::kInvalid;
      bounds.back().push_back(cost.IsKnown()              ? cost
                              : is_invalid                ? Cost::Invalid()
                              : kernel == Arms::kNoKernel ? Cost()
                                                          : known.prices[kernel].low);
    }
  }
  std::vector<std::string> backends;
  for (size_t target = 0; target < placement.targets.size(); ++target) backends.push_back(placement.NameOf(target));
  std::vector<std::string> operators;
  for (const PostDfsIndex index : placement.built.nodes) operators.push_back(CalledOp((*placement.formed.graph)[index].expr)->name);
  RecordedProblem recorded = Record(problem, std::move(bounds), std::move(backends), placement.node_names, std::move(operators));
  for (const PostDfsIndex index : placement.built.nodes)
    recorded.onnx_nodes.push_back((*placement.formed.graph)[index].expr->origin().OnnxNodes());
  for (const PricedCandidate& candidate : placement.candidates) {
    std::vector<std::string>& names = recorded.variants.emplace_back();
    for (const PricedVariant& variant : candidate.variants) names.push_back(variant.variant.name);
  }
  std::unordered_map<PostDfsIndex, size_t> node_of;
  for (size_t node = 0; node < placement.built.nodes.size(); ++node) node_of.emplace(placement.built.nodes[node], node);
  for (size_t c = 0; c < placement.candidates.size(); ++c) {
    for (const LibraryPart& part : LibraryParts(placement.candidates[c].candidate)) {
      const auto library = std::find(recorded.backends.begin(), recorded.backends.end(), part.library);
      if (library == recorded.backends.end()) continue;
      RecordedCall& call = recorded.calls.emplace_back(RecordedCall{c, static_cast<size_t>(library - recorded.backends.begin()), {}});
      part.inside.ForEach([&](PostDfsIndex index) {
        if (const auto node = node_of.find(index); node != node_of.end()) call.nodes.Add(node->second);
      });
    }
  }
  recorded.chosen = plan.result.choices;
  return recorded;
}

}  // namespace collage
