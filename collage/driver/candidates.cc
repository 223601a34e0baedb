#include "collage/driver/candidates.h"

#include <unordered_map>

#include "collage/backend/registry.h"
#include "collage/candidate/gather.h"
#include "collage/driver/whole_model.h"
#include "collage/partition/cover.h"
#include "collage/support/log.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

// A view keeps its elements in row-major order, so it is one only of plain tensors; on whichever device.
PricedVariant HostVariant(const ExtractedFunction& extracted, size_t device) {
  PricedVariant variant;
  variant.device = device;
  variant.variant.name = "view";
  variant.variant.inputs.resize(extracted.inputs.size());
  variant.variant.outputs.resize(extracted.outputs.size());
  variant.cost = Cost();
  return variant;
}

bool HoldsACall(const DataflowGraph& graph, const SubGraph& sub_graph) {
  bool holds = false;
  sub_graph.inside().ForEach([&](PostDfsIndex index) { holds = holds || CalledOp(graph[index].expr); });
  return holds;
}

/// By the name of their backend, which has one for each device.
using TargetsByName = std::unordered_map<std::string, std::vector<size_t>>;

/// The candidate as the search wants it, once for each device on which it may lie; none when it is none of the search's business or cannot
/// be extracted.
void Take(const Placement& placement, const CandidatePartition& found, const TargetsByName& targets,
          std::vector<PricedCandidate>& candidates) {
  const DataflowGraph& graph = *placement.graph;
  if (!HoldsACall(graph, found.sub_graph)) return;
  Result<ExtractedFunction> extracted = ExtractFunction(graph, found.sub_graph);
  if (!extracted) {
    spdlog::debug("candidate of {} cannot be extracted: {}", found.spec->name, extracted.error().message);
    return;
  }
  PricedCandidate candidate{found, std::move(*extracted)};
  candidate.is_partition = !found.spec->is_host;
  if (!candidate.is_partition) {
    for (size_t device = 0; device < placement.devices.size(); ++device)
      candidate.variants.push_back(HostVariant(candidate.extracted, device));
    candidates.push_back(std::move(candidate));
    return;
  }
  for (const size_t target : targets.at(found.spec->name)) {
    if (!placement.MayTake(target, found.sub_graph.inside())) continue;
    candidate.backend = target;
    candidates.push_back(candidate);
  }
}

/// Whole models that cannot be carried after all are no candidates.
void CarryModels(const Placement& placement, size_t first, std::vector<PricedCandidate>& candidates) {
  for (size_t i = first; i < candidates.size(); ++i) {
    const Status carried = CarryModel(placement, candidates[i]);
    if (carried) continue;
    spdlog::debug("{} is not given the model as it came: {}", candidates[i].candidate.spec->name, carried.error().message);
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(first), candidates.end());
  }
}

/// Every call by itself, for a backend of last resort: a candidate may turn out Invalid, so each call needs one.
std::vector<CandidatePartition> LastResort(const DataflowGraph& graph, const std::string& compiler) {
  return AllCandidates(graph, FallbackSpec(compiler));
}

}  // namespace

Result<FoundCandidates> FindCandidates(const Placement& placement) {
  const DataflowGraph& graph = *placement.graph;
  const std::vector<PlacementTarget>& targets = placement.targets;
  std::vector<Target> named;
  TargetsByName backends;
  std::vector<CandidatePartition> fallback;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target target = COLLAGE_TRY(Target::Parse(targets[i].target));
    std::vector<size_t>& of_backend = backends[target.CompilerName()];
    of_backend.push_back(i);
    if (of_backend.size() > 1) continue;  // on another device
    if (targets[i].is_fallback) {
      fallback = LastResort(graph, target.CompilerName());
    } else {
      named.push_back(target);
    }
  }
  const RulesOfCompiler rules_of = [&](const std::string& compiler) {
    const auto at = backends.find(compiler);
    return at == backends.end() ? nullptr : &targets[at->second.front()].rules;
  };
  GatherOptions options;
  std::unordered_map<std::string, BackendRules> libraries;
  options.library_rules = [&](const std::string& library) -> const BackendRules* {
    const Result<const Backend*> backend = FindBackend(library, Device{});
    return backend ? &libraries.try_emplace(library, (*backend)->Rules()).first->second : nullptr;
  };
  FoundCandidates result;
  const std::vector<SpecPointer> specs = COLLAGE_TRY(GatherPartitionSpecs(named, rules_of, options));
  std::vector<CandidatePartition> all = AllCandidates(graph, specs, &result.refusals);
  all.insert(all.end(), fallback.begin(), fallback.end());
  const size_t by_rules = all.size();
  for (CandidatePartition& whole : WholeModels(placement, specs)) all.push_back(std::move(whole));
  COLLAGE_TRY_STATUS(placement.constraints->Check(all, result.refusals));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!placement.constraints->Allow(all[i])) continue;
    const size_t before = result.candidates.size();
    Take(placement, all[i], backends, result.candidates);
    if (i >= by_rules) CarryModels(placement, before, result.candidates);
  }
  return result;
}

std::vector<std::string> PartitionSymbols(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates,
                                          const std::vector<SearchChoice>& choices) {
  NameSupply names;
  std::vector<std::string> symbols;
  for (const SearchChoice& choice : choices) {
    const PricedCandidate& candidate = candidates[choice.candidate];
    std::string symbol;
    if (candidate.is_partition)
      symbol = names.Fresh("collage_" + candidate.candidate.spec->name + "_" + candidate.candidate.sub_graph.Label(graph));
    symbols.push_back(std::move(symbol));
  }
  return symbols;
}

Cover CoverOf(const Placement& placement, const std::vector<SearchChoice>& choices) {
  const std::vector<std::string> symbols = PartitionSymbols(*placement.graph, placement.candidates, choices);
  Cover cover;
  for (size_t i = 0; i < choices.size(); ++i) {
    const PricedCandidate& candidate = placement.candidates[choices[i].candidate];
    if (!candidate.is_partition) continue;
    const std::optional<Device>& device = placement.targets[candidate.backend].device;
    Attributes attributes{{"global_symbol", symbols[i]}, {"Variant", candidate.variants[choices[i].variant].variant.name}};
    if (device) attributes.Set("Device", ToString(*device));
    cover.push_back({candidate.candidate, std::move(attributes)});
  }
  return cover;
}

}  // namespace collage
