#include "collage/driver/candidates.h"

#include <optional>
#include <unordered_map>

#include "collage/backend/registry.h"
#include "collage/candidate/gather.h"
#include "collage/candidate/in_place.h"
#include "collage/driver/whole_model.h"
#include "collage/ir/permitted_precision.h"
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

/// The candidate as the search wants it, once for each device on which it may lie. `claimed`: the nodes of the function that it decides.
void Take(const Placement& placement, PricedCandidate candidate, const IndexSet& claimed, const TargetsByName& targets,
          std::vector<PricedCandidate>& candidates) {
  const PartitionSpec& spec = *candidate.candidate.spec;
  candidate.is_partition = !spec.is_host;
  if (IsInPlace(candidate.candidate)) {
    candidates.push_back(std::move(candidate));  // its variants are the layouts of its neighbours
    return;
  }
  if (!candidate.is_partition) {
    for (size_t device = 0; device < placement.devices.size(); ++device)
      if (placement.MemoryOf(device) == device) candidate.variants.push_back(HostVariant(candidate.extracted, device));
    candidates.push_back(std::move(candidate));
    return;
  }
  for (const size_t target : targets.at(spec.name)) {
    if (!placement.MayTake(target, claimed)) continue;
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

/// Nothing when it is none of the search's business or cannot be extracted.
std::optional<PricedCandidate> Extracted(const DataflowGraph& graph, const CandidatePartition& found) {
  if (!HoldsACall(graph, found.sub_graph)) return std::nullopt;
  Result<ExtractedFunction> extracted = ExtractFunction(graph, found.sub_graph);
  if (extracted) return PricedCandidate{found, std::move(*extracted)};
  spdlog::debug("candidate of {} cannot be extracted: {}", found.spec->name, extracted.error().message);
  return std::nullopt;
}

/// The rules of a placement's targets.
struct Specs {
  TargetsByName targets;
  std::vector<SpecPointer> found;          ///< of all but the backend of last resort
  std::optional<std::string> last_resort;  ///< takes every call by itself: a candidate may turn out Invalid, so each call needs one
};

Result<Specs> SpecsOf(const Placement& placement) {
  const std::vector<PlacementTarget>& targets = placement.targets;
  Specs specs;
  std::vector<Target> named;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target target = COLLAGE_TRY(Target::Parse(targets[i].target));
    std::vector<size_t>& of_backend = specs.targets[target.CompilerName()];
    of_backend.push_back(i);
    if (of_backend.size() > 1) continue;  // on another device
    if (targets[i].is_fallback) {
      specs.last_resort = target.CompilerName();
    } else {
      named.push_back(target);
    }
  }
  const RulesOfCompiler rules_of = [&](const std::string& compiler) {
    const auto at = specs.targets.find(compiler);
    return at == specs.targets.end() ? nullptr : &targets[at->second.front()].rules;
  };
  GatherOptions options;
  options.stated_rules = placement.stated_rules;
  std::unordered_map<std::string, BackendRules> libraries;
  options.library_rules = [&](const std::string& library) -> const BackendRules* {
    const Result<const Backend*> backend = FindBackend(library, Device{});
    return backend ? &libraries.try_emplace(library, (*backend)->Rules()).first->second : nullptr;
  };
  specs.found = COLLAGE_TRY(GatherPartitionSpecs(named, rules_of, options));
  specs.found.push_back(InPlaceSpec());
  return specs;
}

}  // namespace

Result<FoundCandidates> FindCandidates(const Placement& placement) {
  const DataflowGraph& graph = *placement.graph;
  const Specs specs = COLLAGE_TRY(SpecsOf(placement));
  FoundCandidates result;
  std::vector<CandidatePartition> all = AllCandidates(graph, specs.found, &result.refusals);
  if (specs.last_resort) {
    const std::vector<CandidatePartition> fallback = AllCandidates(graph, FallbackSpec(*specs.last_resort));
    all.insert(all.end(), fallback.begin(), fallback.end());
  }
  std::erase_if(all, [&](const CandidatePartition& found) {
    const std::string& name = found.spec->name;
    if (found.spec->is_host || name == specs.last_resort || !found.sub_graph.inside().Intersects(placement.of_strings)) return false;
    result.refusals.push_back({"strings", found.sub_graph.inside(), "kernels for strings are the reference's alone", name});
    return true;
  });
  const size_t by_rules = all.size();
  for (CandidatePartition& whole : WholeModels(placement, specs.found)) all.push_back(std::move(whole));
  COLLAGE_TRY_STATUS(placement.constraints->Check(all, result.refusals));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!placement.constraints->Allow(all[i])) continue;
    const size_t before = result.candidates.size();
    if (std::optional<PricedCandidate> candidate = Extracted(graph, all[i]))
      Take(placement, std::move(*candidate), all[i].sub_graph.inside(), specs.targets, result.candidates);
    if (i >= by_rules) CarryModels(placement, before, result.candidates);
  }
  return result;
}

namespace {

/// A function with a layer of forms applied, as a graph, and its nodes as those of the formed graph.
struct Layer {
  static Result<Layer> Create(const FormedGraph& formed, const std::vector<size_t>& forms) {
    const AppliedForms applied = COLLAGE_TRY(ApplyForms(formed, forms));
    Layer layer{DataflowGraph(applied.function), {}};
    layer.whole.reserve(applied.image.size());
    for (PostDfsIndex node = 0; node < formed.graph->size(); ++node) {
      const auto image = applied.image.find((*formed.graph)[node].expr.get());
      const PostDfsIndex at = image == applied.image.end() ? DataflowGraph::kNone : layer.graph.Find(image->second);
      if (at != DataflowGraph::kNone) layer.whole.emplace(at, node);
    }
    return layer;
  }

  [[nodiscard]] bool HoldsForms(const FormedGraph& formed, const IndexSet& inside) const {
    bool holds = false;
    inside.ForEach([&](PostDfsIndex node) {
      const auto at = whole.find(node);
      holds = holds || (at != whole.end() && formed.FormOf(at->second) != FormedGraph::kNoForm);
    });
    return holds;
  }

  /// A sub-graph as one of the formed graph. Without what projects from a call outside of it: where the form of that call is not taken, the
  /// same tensor comes from what the form stands for.
  [[nodiscard]] SubGraph InWhole(const FormedGraph& formed, const SubGraph& found) const {
    std::unordered_map<PostDfsIndex, PostDfsIndex> image;
    found.inside().ForEach([&](PostDfsIndex node) {
      const bool projects_from_outside = graph[node].Is<TupleGetItem>() && !found.inside().Contains(graph[node].inputs.front());
      if (!projects_from_outside) image.emplace(node, whole.at(node));
    });
    return found.Substitute(*formed.graph, image);
  }

  DataflowGraph graph;
  std::unordered_map<PostDfsIndex, PostDfsIndex> whole;
};

/// Nodes of the function that a candidate computes, or computes something in place of.
IndexSet Claimed(const FormedGraph& formed, const IndexSet& inside) {
  IndexSet claimed;
  inside.ForEach([&](PostDfsIndex node) {
    const size_t form = formed.FormOf(node);
    if (form != FormedGraph::kNoForm) claimed |= formed.forms[form].covered;
    if (form == FormedGraph::kNoForm && (*formed.graph)[node].op) claimed.Add(node);
  });
  return claimed;
}

}  // namespace

Result<std::vector<PricedCandidate>> FindFormCandidates(const Placement& placement) {
  const FormedGraph& formed = placement.formed;
  std::vector<PricedCandidate> candidates;
  if (formed.forms.empty()) return candidates;
  const Specs specs = COLLAGE_TRY(SpecsOf(placement));
  for (const std::vector<size_t>& forms : LayersOfForms(formed)) {
    const Layer layer = COLLAGE_TRY(Layer::Create(formed, forms));
    for (const CandidatePartition& found : AllCandidates(layer.graph, specs.found)) {
      if (found.sub_graph.operator_count() > kMostOperatorsAroundForms || !layer.HoldsForms(formed, found.sub_graph.inside())) continue;
      std::optional<PricedCandidate> candidate = Extracted(layer.graph, found);
      if (!candidate) continue;
      candidate->candidate.sub_graph = layer.InWhole(formed, found.sub_graph);
      const IndexSet claimed = Claimed(formed, candidate->candidate.sub_graph.inside());
      if (!placement.constraints->Allow({SubGraph(*placement.graph, claimed), found.spec})) continue;
      for (TensorSource& input : candidate->extracted.inputs) input.node = layer.whole.at(input.node);
      for (TensorSource& output : candidate->extracted.outputs) output.node = layer.whole.at(output.node);
      Take(placement, std::move(*candidate), claimed, specs.targets, candidates);
    }
  }
  return candidates;
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
  const std::vector<std::string> symbols = PartitionSymbols(*placement.formed.graph, placement.candidates, choices);
  Cover cover;
  for (size_t i = 0; i < choices.size(); ++i) {
    const PricedCandidate& candidate = placement.candidates[choices[i].candidate];
    const std::string& variant = candidate.variants[choices[i].variant].variant.name;
    if (IsInPlace(candidate.candidate)) cover.push_back({candidate.candidate, {{"Variant", variant}}});  // no kernel, but a layout
    if (!candidate.is_partition) continue;
    Attributes attributes{{"global_symbol", symbols[i]}, {"Variant", variant}};
    if (const std::string device = DeviceText(placement.targets[candidate.backend]); !device.empty()) attributes.Set("Device", device);
    if (placement.UsesPrecision(choices[i])) attributes.Set(std::string(kPrecisionAttribute), ToString(*placement.precision));
    cover.push_back({candidate.candidate, std::move(attributes)});
  }
  return cover;
}

}  // namespace collage
