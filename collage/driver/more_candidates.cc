#include "collage/driver/more_candidates.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "collage/backend/registry.h"
#include "collage/candidate/gather.h"
#include "collage/partition/cover.h"
#include "collage/partition/single_backend.h"

namespace collage {
namespace {

size_t TargetOf(const Placement& placement, const CandidatePartition& candidate, size_t device) {
  const auto is_its = [&](size_t target) {
    return placement.NameOf(target) == candidate.spec->name && placement.DeviceOf(target) == device;
  };
  size_t target = 0;
  while (target < placement.targets.size() && !is_its(target)) ++target;
  return target;
}

std::optional<PricedCandidate> ToPriced(const Placement& placement, const CandidatePartition& candidate, size_t device) {
  const size_t target = TargetOf(placement, candidate, device);
  if (target == placement.targets.size()) return std::nullopt;
  const std::optional<size_t> known = placement.FindPartition(target, candidate.sub_graph.inside());
  Result<ExtractedFunction> extracted =
      known ? placement.candidates[*known].extracted : ExtractFunction(*placement.graph, candidate.sub_graph);
  if (!extracted) return std::nullopt;
  PricedCandidate priced{candidate, std::move(*extracted)};
  priced.backend = target;
  return priced;
}

}  // namespace

bool IsSamePartition(const PricedCandidate& a, const PricedCandidate& b) {
  return a.backend == b.backend && a.candidate.sub_graph.inside() == b.candidate.sub_graph.inside();
}

std::vector<PricedCandidate> JoinedPartitions(const Placement& placement, const Plan& plan) {
  std::vector<Cover> by_device(placement.devices.size());
  for (const PlanKernel& kernel : plan.kernels) {
    const size_t c = plan.result.choices[kernel.choice].candidate;
    // The graph of the function has no nodes of forms.
    if (placement.IsOfForm(c)) continue;
    const PricedCandidate& candidate = placement.candidates[c];
    by_device[placement.DeviceOf(candidate.backend)].push_back({candidate.candidate, {}});
  }
  std::vector<PricedCandidate> joined;
  for (size_t device = 0; device < by_device.size(); ++device) {
    JoinAdjacent(*placement.graph, std::move(by_device[device]), [&](const CandidatePartition& whole, const auto&, const auto&) {
      // An operator library runs what its rules say, layouts flow between its partitions for nothing, and what of native code belongs
      // together is for operator fusion to say.
      if (placement.targets[TargetOf(placement, whole, device)].rules.style != BackendRules::Style::kPredicate) return false;
      if (!placement.constraints->Allow(whole)) return false;
      std::optional<PricedCandidate> candidate = ToPriced(placement, whole, device);
      if (candidate && !placement.FindPartition(*candidate)) joined.push_back(std::move(*candidate));
      return false;
    });
  }
  return joined;
}

std::vector<GreedyPlan> GreedyPlans(const Placement& placement) {
  constexpr size_t kHost = 0;
  std::map<std::string, SpecPointer> specs;
  for (const PricedCandidate& candidate : placement.candidates) specs.emplace(candidate.candidate.spec->name, candidate.candidate.spec);
  const auto single = [&](size_t target) {
    const auto found = specs.find(placement.NameOf(target));
    return SingleBackend{found == specs.end() ? nullptr : found->second, &placement.targets[target].rules};
  };
  SingleBackendOptions options;
  for (size_t target = 0; target < placement.targets.size(); ++target) {
    if (placement.targets[target].device) continue;
    if (placement.targets[target].is_fallback) options.fallback = single(target).spec;
    if (placement.targets[target].rules.style == BackendRules::Style::kNative) options.native = single(target);
  }
  const auto check_statements = [&](const CandidatePartition& partition) -> Status {
    if (!placement.constraints->Allow(partition)) return Fail("the user's pins or forbids exclude it");
    if (placement.MayTake(TargetOf(placement, partition, kHost), partition.sub_graph.inside())) return {};
    return Fail("what is said of devices excludes it, or it is of strings");
  };
  options.check = [&](const CandidatePartition& partition) -> Status {
    COLLAGE_TRY_STATUS(check_statements(partition));
    const size_t target = TargetOf(placement, partition, kHost);
    // Most partitions are candidates already.
    const std::optional<size_t> known = placement.FindPartition(target, partition.sub_graph.inside());
    bool has_any = known && !placement.candidates[*known].variants.empty();
    if (!known) {
      const ExtractedFunction extracted = COLLAGE_TRY(ExtractFunction(*placement.graph, partition.sub_graph));
      has_any = !placement.targets[target].backend->Variants(*extracted.function->As<Function>(), Device{}).empty();
    }
    return has_any ? Status{} : Fail("it has no variant");
  };
  std::vector<GreedyPlan> plans;
  for (const size_t target : placement.Singles()) {
    // The classic flow knows one device.
    if (placement.targets[target].device) continue;
    if (placement.HasStatedRule(target)) continue;
    GreedyPlan plan{target, {}, {}, {}};
    const SingleBackend backend = single(target);
    Result<SingleBackendPlan> found =
        backend.spec ? SingleBackendCover(*placement.graph, backend, options) : Fail("its rules state no candidate");
    if (!found) plan.reason = found.error().message;
    for (size_t i = 0; found && i < found->cover.size(); ++i) {
      const CandidatePartition& partition = found->cover[i].candidate;
      plan.inside.push_back(partition.sub_graph.inside());
      if (partition.spec->is_host) continue;
      // The flow gives to the fallback what nobody else takes, whatever is said of it.
      if (const Status allowed = check_statements(partition); !allowed) {
        if (plan.reason.empty()) plan.reason = allowed.error().message;
        continue;
      }
      std::optional<PricedCandidate> candidate = ToPriced(placement, partition, kHost);
      if (!candidate && plan.reason.empty()) plan.reason = "one of its partitions cannot be extracted";
      if (candidate) plan.candidates.push_back(std::move(*candidate));
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

Result<PlacementPointer> WithGreedyPlans(PlacementPointer placement, const std::vector<GreedyPlan>& greedy, Pricer& pricer) {
  PlacementAddition addition;
  std::vector<std::unordered_set<IndexSet>> added(placement->targets.size());
  for (const GreedyPlan& plan : greedy) {
    for (const PricedCandidate& wanted : plan.candidates) {
      const bool is_new = !placement->FindPartition(wanted) && added[wanted.backend].insert(wanted.candidate.sub_graph.inside()).second;
      if (is_new) addition.candidates.push_back(wanted);
    }
  }
  return addition.candidates.empty() ? placement : Extend(*placement, std::move(addition), pricer);
}

namespace {

/// The candidates of a placement that a greedy plan takes, by their position; those of the host included.
std::optional<std::vector<size_t>> CandidatesOf(const Placement& placement, const GreedyPlan& plan) {
  std::vector<size_t> taken;
  IndexSet covered;  // search nodes
  const auto take = [&](size_t c) {
    taken.push_back(c);
    covered |= placement.built.problem.candidates[c].inside;
  };
  for (const PricedCandidate& wanted : plan.candidates) {
    const std::optional<size_t> c = placement.FindPartition(wanted);
    if (!c) return std::nullopt;
    take(*c);
  }
  for (size_t c = 0; c < placement.candidates.size(); ++c) {
    const IndexSet& inside = placement.built.problem.candidates[c].inside;
    if (!placement.candidates[c].is_partition && !inside.Empty() && !inside.Intersects(covered)) take(c);
  }
  if (covered.Count() != placement.built.problem.node_count) return std::nullopt;
  std::sort(taken.begin(), taken.end(), [&](size_t a, size_t b) {
    return placement.built.problem.candidates[a].inside.First() < placement.built.problem.candidates[b].inside.First();
  });
  return taken;
}

}  // namespace

std::optional<std::vector<SearchChoice>> ChoicesOf(const Placement& placement, const GreedyPlan& plan, const std::vector<Price>& prices) {
  const std::optional<std::vector<size_t>> taken = CandidatesOf(placement, plan);
  if (!taken || !plan.reason.empty()) return std::nullopt;
  std::vector<SearchChoice> choices;
  for (const size_t c : *taken) {
    const std::vector<size_t>& kernels = placement.arms.kernel_of[c];
    size_t v = 0;
    while (v < kernels.size() && kernels[v] != Arms::kNoKernel && !prices[kernels[v]].centre.IsKnown()) ++v;
    if (v == kernels.size()) return std::nullopt;
    choices.push_back({c, v});
  }
  return choices;
}

std::vector<size_t> UnknownKernelsOf(const Placement& placement, const GreedyPlan& plan, const std::vector<Price>& prices) {
  std::vector<size_t> unknown;
  const std::optional<std::vector<size_t>> taken = CandidatesOf(placement, plan);
  for (size_t i = 0; taken && i < taken->size(); ++i) {
    const std::vector<size_t>& kernels = placement.arms.kernel_of[(*taken)[i]];
    const auto is_known = [&](size_t kernel) { return kernel == Arms::kNoKernel || prices[kernel].centre.IsKnown(); };
    if (std::any_of(kernels.begin(), kernels.end(), is_known)) continue;
    const auto first = std::find_if(kernels.begin(), kernels.end(), [&](size_t kernel) { return prices[kernel].centre.IsUnknown(); });
    if (first != kernels.end()) unknown.push_back(*first);
  }
  return unknown;
}

}  // namespace collage
