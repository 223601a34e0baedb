#include "collage/driver/candidates.h"

#include <unordered_map>

#include "collage/backend/registry.h"
#include "collage/candidate/gather.h"
#include "collage/partition/cover.h"
#include "collage/support/log.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

// A view keeps its elements in row-major order, so the host can do it only on plain tensors.
PricedVariant HostVariant(const ExtractedFunction& extracted) {
  PricedVariant variant;
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

/// The candidate as the search wants it; false when it is none of the search's business or cannot be extracted.
bool Take(const DataflowGraph& graph, const CandidatePartition& found, const std::unordered_map<std::string, size_t>& backends,
          std::vector<PricedCandidate>& candidates) {
  if (!HoldsACall(graph, found.sub_graph)) return false;
  Result<ExtractedFunction> extracted = ExtractFunction(graph, found.sub_graph);
  if (!extracted) {
    spdlog::debug("candidate of {} cannot be extracted: {}", found.spec->name, extracted.error().message);
    return false;
  }
  PricedCandidate candidate{found, std::move(*extracted)};
  candidate.is_partition = !found.spec->is_host;
  if (candidate.is_partition) {
    candidate.backend = backends.at(found.spec->name);
  } else {
    candidate.variants.push_back(HostVariant(candidate.extracted));
  }
  candidates.push_back(std::move(candidate));
  return true;
}

/// Every call by itself, for a backend of last resort: a candidate may turn out Invalid, so each call needs one.
std::vector<CandidatePartition> LastResort(const DataflowGraph& graph, const std::string& compiler) {
  return AllCandidates(graph, FallbackSpec(compiler));
}

}  // namespace

Result<FoundCandidates> FindCandidates(const DataflowGraph& graph, const std::vector<PlacementTarget>& targets,
                                       const Constraints& constraints) {
  std::vector<Target> named;
  std::unordered_map<std::string, size_t> backends;
  std::vector<CandidatePartition> fallback;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target target = COLLAGE_TRY(Target::Parse(targets[i].target));
    backends.emplace(target.CompilerName(), i);
    if (targets[i].is_fallback) {
      fallback = LastResort(graph, target.CompilerName());
    } else {
      named.push_back(target);
    }
  }
  const RulesOfCompiler rules_of = [&](const std::string& compiler) {
    const auto at = backends.find(compiler);
    return at == backends.end() ? nullptr : &targets[at->second].rules;
  };
  GatherOptions options;
  std::unordered_map<std::string, BackendRules> libraries;
  options.library_rules = [&](const std::string& library) -> const BackendRules* {
    const Result<const Backend*> backend = FindBackend(library, Device{});
    return backend ? &libraries.try_emplace(library, (*backend)->Rules()).first->second : nullptr;
  };
  FoundCandidates result;
  std::vector<CandidatePartition> all = AllCandidates(graph, COLLAGE_TRY(GatherPartitionSpecs(named, rules_of, options)), &result.refusals);
  all.insert(all.end(), fallback.begin(), fallback.end());
  COLLAGE_TRY_STATUS(constraints.Check(all, result.refusals));
  for (const CandidatePartition& found : all) {
    if (constraints.Allow(found)) Take(graph, found, backends, result.candidates);
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

Cover CoverOf(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates, const std::vector<SearchChoice>& choices) {
  const std::vector<std::string> symbols = PartitionSymbols(graph, candidates, choices);
  Cover cover;
  for (size_t i = 0; i < choices.size(); ++i) {
    const PricedCandidate& candidate = candidates[choices[i].candidate];
    if (!candidate.is_partition) continue;
    cover.push_back(
        {candidate.candidate, {{"global_symbol", symbols[i]}, {"Variant", candidate.variants[choices[i].variant].variant.name}}});
  }
  return cover;
}

}  // namespace collage
