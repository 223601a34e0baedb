#include "collage/driver/placement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "collage/backend/onnx_variants.h"
#include "collage/backend/tuning.h"
#include "collage/candidate/in_place.h"
#include "collage/candidate/library_calls.h"
#include "collage/driver/candidates.h"
#include "collage/driver/compile_time.h"
#include "collage/driver/device_statements.h"
#include "collage/driver/kernel_work.h"
#include "collage/driver/transitions.h"
#include "collage/ir/permitted_precision.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/onnx/original.h"
#include "collage/pricing/tuning.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

using KernelId = std::tuple<std::string, std::string, uint64_t, std::string, int>;  // backend, version, function, variant, threads

/// Numbers kernels and brings them into the form of a decision.
class Builder {
 public:
  Builder(Placement placement, Pricer& pricer) : placement_(std::move(placement)), pricer_(pricer) {
    facts_ = placement_.arms.kernels.kernels();
    for (size_t kernel = 0; kernel < placement_.kernels.size(); ++kernel) number_.emplace(IdOf(placement_.kernels[kernel]), kernel);
  }

  Result<PlacementPointer> Finish() {
    Placement& placement = placement_;
    const size_t first = placement.arms.kernel_of.size();
    for (size_t c = placement.arms.kernel_of.size(); c < placement.candidates.size(); ++c) COLLAGE_TRY_STATUS(AddKernels(c));
    placement.partitions_of.resize(placement.targets.size());
    for (size_t c = first; c < placement.candidates.size(); ++c) {
      const PricedCandidate& candidate = placement.candidates[c];
      if (candidate.is_partition) placement.partitions_of[candidate.backend].emplace(candidate.candidate.sub_graph.inside(), c);
    }
    AddInPlaceVariants(first);
    FunctionProblem built = COLLAGE_TRY(BuildProblem(placement.formed, placement.candidates, placement.targets.size(), {}));
    built.problem.transition = placement.built.problem.transition;
    placement.built = std::move(built);
    placement.arms.problem = placement.built.problem;
    AddConversions();
    placement.arms.kernels = KernelRelations(std::move(facts_));
    FindCoverable();
    return std::make_shared<const Placement>(std::move(placement));
  }

  /// A variant for everybody who shares the template's kernel.
  void AddTuned(size_t base, const Variant& tuned) {
    const PlacedKernel& of_template = placement_.kernels[base];
    MeasurementKey key = of_template.key;
    key.variant = tuned.name;
    const size_t kernel = NumberOf({key, of_template.candidate, tuned, {}}, facts_[base]);
    for (size_t c = 0; c < placement_.arms.kernel_of.size(); ++c) {
      std::vector<size_t>& kernels = placement_.arms.kernel_of[c];
      if (std::find(kernels.begin(), kernels.end(), base) == kernels.end()) continue;
      if (std::find(kernels.begin(), kernels.end(), kernel) != kernels.end()) continue;
      kernels.push_back(kernel);
      const size_t device = placement_.DeviceOf(placement_.candidates[c].backend);
      placement_.candidates[c].variants.push_back({tuned, Cost::Unknown(), placement_.MemoryOf(device)});
    }
  }

 private:
  static KernelId IdOf(const PlacedKernel& kernel) {
    return {kernel.key.backend, kernel.key.backend_version, kernel.key.function_hash, kernel.key.variant, kernel.key.threads};
  }

  size_t NumberOf(PlacedKernel kernel, KernelFacts facts) {
    const auto [at, is_new] = number_.emplace(IdOf(kernel), placement_.kernels.size());
    if (is_new) {
      facts.variant = HashBytes(kernel.key.variant);
      facts_.push_back(std::move(facts));
      placement_.kernels.push_back(std::move(kernel));
    }
    return at->second;
  }

  Status AddKernels(size_t c) {
    PricedCandidate& candidate = placement_.candidates[c];
    std::vector<size_t>& kernels = placement_.arms.kernel_of.emplace_back();
    if (!candidate.is_partition) {
      kernels.assign(candidate.variants.size(), Arms::kNoKernel);
      return {};
    }
    const uint64_t hash = StructuralHash(candidate.extracted.function, ForPricing());
    if (placement_.precision) candidate.permitted = WithPrecision(candidate.extracted.function, *placement_.precision);
    const auto [at, is_new] = offers_.try_emplace({candidate.backend, hash});
    if (is_new) at->second = COLLAGE_TRY(OfferFor(c, hash));
    candidate.variants = at->second.variants;
    kernels = at->second.kernels;
    return {};
  }

  /// What a target has for a function.
  struct Offer {
    std::vector<PricedVariant> variants;
    std::vector<size_t> kernels;  ///< of each variant
  };

  Result<Offer> OfferFor(size_t c, uint64_t hash) {
    const PricedCandidate& candidate = placement_.candidates[c];
    const PlacementTarget& target = placement_.targets[candidate.backend];
    const size_t device = placement_.DeviceOf(candidate.backend);
    const uint64_t permitted_hash = placement_.precision ? StructuralHash(candidate.permitted, ForPricing()) : 0;
    const KernelFacts facts = FactsOf(candidate);
    Offer offer;
    for (Variant& variant : COLLAGE_TRY(VariantsOf(candidate.backend, candidate.extracted.function, hash))) {
      const uint64_t of_function = variant.uses_precision ? permitted_hash : hash;
      MeasurementKey key = pricer_.KeyOf(of_function, std::string(target.backend->Name()), target.version, variant.name);
      key.threads = placement_.devices[device].threads;
      offer.kernels.push_back(NumberOf({std::move(key), c, variant, {}}, variant.uses_precision ? WithFewerBits(facts) : facts));
      offer.variants.push_back({std::move(variant), Cost::Unknown(), placement_.MemoryOf(device)});
    }
    return offer;
  }

  [[nodiscard]] KernelFacts FactsOf(const PricedCandidate& candidate) const {
    const size_t device = placement_.DeviceOf(candidate.backend);
    KernelFacts facts = WorkOf(*candidate.extracted.function->As<Function>(), placement_.devices[device]);
    facts.device = device;
    facts.backend = candidate.backend;
    const PlacementTarget& target = placement_.targets[candidate.backend];
    // The fallback interprets.
    if (!target.is_fallback)
      facts.compile_seconds = UsualSecondsToCompile(target.rules, candidate.candidate.sub_graph.inside().Count(), facts.bytes);
    // What a library computes inside tells nothing of kernels that are generated whole.
    for (const LibraryPart& part : LibraryParts(candidate.candidate)) facts.backend = HashCombine(facts.backend, HashBytes(part.library));
    return facts;
  }

  /// What is done in place may be done in each layout that new candidates read or make, if its parts lie together there.
  void AddInPlaceVariants(size_t first) {
    std::set<Layout> layouts = {Layout()};
    for (size_t c = first; c < placement_.candidates.size(); ++c) {
      for (const PricedVariant& variant : placement_.candidates[c].variants) {
        if (variant.device != 0) continue;
        layouts.insert(variant.variant.inputs.begin(), variant.variant.inputs.end());
        layouts.insert(variant.variant.outputs.begin(), variant.variant.outputs.end());
      }
    }
    for (size_t c = 0; c < placement_.candidates.size(); ++c) {
      PricedCandidate& candidate = placement_.candidates[c];
      if (!IsInPlace(candidate.candidate)) continue;
      const Expr& call = (*placement_.formed.graph)[candidate.candidate.sub_graph.inside().First()].expr;
      for (const Layout& layout : layouts) {
        const auto is_it = [&](const PricedVariant& variant) { return variant.variant.name == layout.ToString(); };
        if (std::any_of(candidate.variants.begin(), candidate.variants.end(), is_it) || !LiesTogether(call, layout)) continue;
        PricedVariant variant;
        variant.variant.name = layout.ToString();
        variant.variant.inputs.assign(candidate.extracted.inputs.size(), layout);
        variant.variant.outputs.assign(candidate.extracted.outputs.size(), layout);
        variant.cost = Cost();
        candidate.variants.push_back(std::move(variant));
        placement_.arms.kernel_of[c].push_back(Arms::kNoKernel);
      }
    }
  }

  /// Those that the backend states, what earlier compiles have tuned of them, and those that use the permitted precision.
  Result<std::vector<Variant>> VariantsOf(size_t number, const Expr& literal, uint64_t hash) {
    const PlacementTarget& target = placement_.targets[number];
    const Device& device = placement_.devices[placement_.DeviceOf(number)];
    const Function& function = *literal->As<Function>();
    std::vector<Variant> variants = target.backend->Variants(function, device);
    for (size_t i = 0, count = variants.size(); i < count; ++i) {
      const Variant base = variants[i];
      const std::vector<TuningParameter> parameters = target.backend->Tuning(function, device, base);
      if (parameters.empty()) continue;
      MeasurementKey key = pricer_.KeyOf(hash, std::string(target.backend->Name()), target.version, base.name);
      key.threads = device.threads;
      const std::optional<TuningRecord> record = COLLAGE_TRY(FindTuning(pricer_.cache(), key, parameters));
      if (!record) continue;
      Variant tuned = TunedVariant(base, parameters, record->choice);
      if (tuned.name != base.name) variants.push_back(std::move(tuned));
    }
    if (!placement_.precision) return variants;
    const Expr permitted = WithPrecision(literal, *placement_.precision);
    for (Variant& variant : target.backend->Variants(*permitted->As<Function>(), device)) {
      if (variant.uses_precision) variants.push_back(std::move(variant));
    }
    return variants;
  }

  /// Whatever some candidate makes of a tensor, and some other may want it to be.
  void AddConversions() {
    const SearchProblem& problem = placement_.built.problem;
    const size_t layouts = problem.layout_count;
    std::vector<std::vector<bool>> made(problem.tensors.size(), std::vector<bool>(layouts, false));
    std::vector<std::vector<bool>> wanted = made;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      made[t][0] = problem.tensors[t].producer == SearchTensor::kOutside;
      wanted[t][0] = problem.tensors[t].is_result;
    }
    for (const SearchCandidate& candidate : problem.candidates) {
      for (const SearchVariant& variant : candidate.variants) {
        for (size_t i = 0; i < candidate.outputs.size(); ++i) made[candidate.outputs[i]][variant.output_layouts[i]] = true;
        for (size_t i = 0; i < candidate.inputs.size(); ++i) wanted[candidate.inputs[i]][variant.input_layouts[i]] = true;
      }
    }
    auto table = std::make_shared<std::vector<size_t>>(problem.tensors.size() * layouts * layouts, Arms::kNoKernel);
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      for (size_t from = 0; from < layouts; ++from) {
        for (size_t to = 0; to < layouts; ++to) {
          if (from != to && made[t][from] && wanted[t][to]) (*table)[(t * layouts + from) * layouts + to] = Conversion(t, from, to);
        }
      }
    }
    placement_.arms.conversion_kernel = [table, layouts](size_t tensor, size_t from, size_t to) {
      return (*table)[(tensor * layouts + from) * layouts + to];
    };
  }

  size_t Conversion(size_t tensor, size_t from, size_t to) {
    const TensorType& type = placement_.built.tensor_types[tensor];
    const Layout& before = placement_.built.layouts[from];
    const Layout& after = placement_.built.layouts[to];
    const size_t source = placement_.built.devices[from];
    const size_t target = placement_.built.devices[to];
    const MeasurementKey key = pricer_.KeyOfConversion(type, placement_.PlaceOf(source, before), placement_.PlaceOf(target, after));
    PlacedKernel kernel{key, PlacedKernel::kNone, {}, type, source, target};
    kernel.variant.inputs = {before};
    kernel.variant.outputs = {after};
    KernelFacts facts;
    facts.backend = placement_.targets.size();
    facts.bytes = 2 * static_cast<double>(type.ByteCount());
    facts.roofline = Cost::Seconds(facts.bytes / LimitsOf(pricer_.device()).bytes_per_second);
    return NumberOf(std::move(kernel), std::move(facts));
  }

  void FindCoverable() {
    placement_.coverable.assign(placement_.targets.size(), {});
    for (size_t c = 0; c < placement_.candidates.size(); ++c) {
      const SearchCandidate& searched = placement_.built.problem.candidates[c];
      const PricedCandidate& candidate = placement_.candidates[c];
      // What others run side by side is theirs.
      const bool is_own = candidate.is_partition && !placement_.targets[candidate.backend].rules.runs_side_by_side;
      if (is_own && !searched.variants.empty()) placement_.coverable[candidate.backend] |= placement_.built.own[c];
    }
  }

  Placement placement_;
  Pricer& pricer_;
  std::vector<KernelFacts> facts_;
  std::map<KernelId, size_t> number_;
  std::map<std::pair<size_t, uint64_t>, Offer> offers_;  // by target and function
};

/// Those of a form by what it replaces: "%3'".
std::vector<std::string> NamesOfNodes(const FormedGraph& formed, const std::vector<PostDfsIndex>& nodes) {
  const auto names = PrintExpr(formed.function).names;
  std::vector<std::string> of_nodes;
  for (const PostDfsIndex index : nodes) {
    const FormRoot* root = formed.RootOf(index);
    const auto name = names.find((*formed.graph)[root ? root->gate : index].expr.get());
    of_nodes.push_back((name == names.end() ? "result" : name->second) + (root ? "'" : ""));
  }
  return of_nodes;
}

uint64_t HashOfStated(const Placement& placement) {
  uint64_t hash = 0;
  for (const PricedCandidate& candidate : placement.candidates) {
    if (candidate.is_partition && placement.HasStatedRule(candidate.backend))
      hash = HashCombine(HashCombine(hash, candidate.backend), candidate.candidate.sub_graph.inside().Hash());
  }
  return hash;
}

IndexSet CallsOfStrings(const DataflowGraph& graph) {
  const auto is_of_strings = [](const Expr& expr) {
    const std::vector<TensorType> tensors = FlattenTensors(expr->type());
    return std::any_of(tensors.begin(), tensors.end(), [](const TensorType& tensor) { return tensor.dtype == DType::kString; });
  };
  IndexSet calls;
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    const Expr& expr = graph[node].expr;
    if (!CalledOp(expr)) continue;
    const std::vector<Expr>& args = expr->As<Call>()->args;
    if (is_of_strings(expr) || std::any_of(args.begin(), args.end(), is_of_strings)) calls.Add(node);
  }
  return calls;
}

}  // namespace

Result<PlacementPointer> MakePlacement(const Expr& function, const std::vector<PlacementTarget>& targets, Pricer& pricer,
                                       const Progress& progress, const UserConstraints& said, const PlacementOptions& options) {
  progress.Report({"finding candidates", 0, 0, {}});
  Placement placement;
  placement.original = options.original;
  const DeviceConstraints stated = COLLAGE_TRY(ReadDeviceStatements(function, targets, pricer.device(), said, options.choose_devices));
  placement.graph = std::make_shared<const DataflowGraph>(stated.function);
  placement.targets = targets;
  placement.devices = DevicesOf(targets, pricer.device());
  placement.of_strings = CallsOfStrings(*placement.graph);
  placement.said = said;
  placement.precision = options.precision;
  placement.stated_rules = options.stated_rules;
  for (const std::vector<Expr>& calls : stated.may_take) {
    IndexSet& nodes = placement.may_take.emplace_back();
    for (const Expr& call : calls) nodes.Add(placement.graph->IndexOf(call));
  }
  std::vector<std::string> names;
  for (const PlacementTarget& target : targets) names.emplace_back(target.backend->Name());
  placement.constraints =
      std::make_shared<const Constraints>(COLLAGE_TRY(Constraints::Resolve(*placement.graph, names, stated.constraints, options.forms)));
  FoundCandidates found = COLLAGE_TRY(FindCandidates(placement));
  placement.candidates = std::move(found.candidates);
  placement.refusals = std::move(found.refusals);
  placement.found_by_stated_rules = HashOfStated(placement);
  const auto may_replace = [&](const FormRule& rule, const IndexSet& covered) {
    return !placement.constraints->ForbidsForm(rule.name, covered);
  };
  placement.formed = COLLAGE_TRY(FindForms(placement.graph, options.forms, may_replace, progress));
  for (const FormRule& rule : options.forms) {
    if (rule.is_stated) placement.stated_forms.push_back(rule.name);
  }
  // Of all replacements together: what a user's rule makes of a place, its name does not say.
  if (!placement.stated_forms.empty())
    placement.found_by_stated_rules =
        HashCombine(placement.found_by_stated_rules, StructuralHash(placement.formed.graph->function(), ForPricing()));
  for (PricedCandidate& candidate : COLLAGE_TRY(FindFormCandidates(placement))) placement.candidates.push_back(std::move(candidate));
  if (!options.free_transitions) {
    const TransitionCosts transitions = COLLAGE_TRY(TransitionsBetween(targets, pricer, progress));
    placement.built.problem.transition = TransitionMatrix(targets, transitions);
  }
  const FunctionProblem nodes = COLLAGE_TRY(BuildProblem(placement.formed, {}, targets.size(), {}));
  placement.node_names = NamesOfNodes(placement.formed, nodes.nodes);
  return Builder(std::move(placement), pricer).Finish();
}

Result<PlacementPointer> Extend(const Placement& placement, PlacementAddition addition, Pricer& pricer) {
  Placement extended = placement;
  for (PricedCandidate& candidate : addition.candidates) extended.candidates.push_back(std::move(candidate));
  Builder builder(std::move(extended), pricer);
  for (const auto& [kernel, tuned] : addition.tuned) builder.AddTuned(kernel, tuned);
  return builder.Finish();
}

std::optional<size_t> Placement::FindPartition(size_t target, const IndexSet& inside) const {
  const std::unordered_map<IndexSet, size_t>& partitions = partitions_of[target];
  const auto found = partitions.find(inside);
  return found == partitions.end() ? std::nullopt : std::optional(found->second);
}

uint64_t Placement::ContextHash() const {
  uint64_t hash = StructuralHash(function(), ForPricing());
  for (const std::vector<Cost>& row : built.problem.transition) {
    for (const Cost cost : row) hash = HashCombine(hash, static_cast<uint64_t>(std::llround(cost.ToSeconds() * 1e12)));
  }
  // Around kernels of float32 there may be others.
  return precision ? HashCombine(hash, HashBytes(ToString(*precision))) : hash;
}

bool Placement::IsOfForm(size_t candidate) const {
  bool is = false;
  built.own[candidate].ForEach([&](size_t node) { is = is || formed.FormOf(built.nodes[node]) != FormedGraph::kNoForm; });
  return is;
}

std::string Placement::TitleOf(size_t target) const {
  return NameOf(target) + (targets[target].device ? "@" + ToString(*targets[target].device) : "");
}

size_t Placement::DeviceOf(size_t target) const {
  if (!targets[target].device) return 0;
  return static_cast<size_t>(std::find(devices.begin(), devices.end(), *targets[target].device) - devices.begin());
}

TensorPlace Placement::PlaceOf(size_t device, const Layout& layout) const {
  for (const PlacementTarget& target : targets) {
    if (target.device && *target.device == devices[device]) return {layout, target.context};
  }
  return {layout};
}

bool Placement::HasStatedRule(size_t target) const {
  const Result<Target> parsed = Target::Parse(targets[target].target);
  return parsed && !parsed->Attribute("partition_rule").empty();
}

bool Placement::MayLie(size_t candidate) const {
  if (kept_off.empty() || !candidates[candidate].is_partition) return true;
  const KeptOffDevice& off = kept_off[MemoryOf(DeviceOf(candidates[candidate].backend))];
  const auto is_off = [&](size_t tensor) { return off.tensors.contains(built.tensors[tensor]); };
  const SearchCandidate& searched = built.problem.candidates[candidate];
  return !off.is_whole && std::none_of(searched.inputs.begin(), searched.inputs.end(), is_off) &&
         std::none_of(searched.outputs.begin(), searched.outputs.end(), is_off) &&
         !candidates[candidate].candidate.sub_graph.inside().Intersects(off.calls);
}

bool Placement::ReadsInputsOnly(const PricedCandidate& candidate) const {
  const std::vector<Expr>& parameters = function()->As<Function>()->parameters;
  return std::ranges::all_of(candidate.extracted.inputs, [&](const TensorSource& input) {
    return std::ranges::find(parameters, (*formed.graph)[input.node].expr) != parameters.end();
  });
}

std::vector<bool> Placement::Lying() const {
  std::vector<bool> lying(candidates.size());
  for (size_t c = 0; c < lying.size(); ++c) lying[c] = MayLie(c);
  return lying;
}

bool Placement::MayTake(size_t target, const IndexSet& inside) const {
  if (!targets[target].is_fallback && inside.Intersects(of_strings)) return false;
  if (may_take.empty()) return true;
  bool may = true;
  inside.ForEach([&](PostDfsIndex node) { may = may && (!CalledOp((*graph)[node].expr) || may_take[target].Contains(node)); });
  return may;
}

uint64_t Placement::DecisionHash() const {
  uint64_t hash = HashCombine(ContextHash(), HashBytes(constraints->ToString()));
  if (found_by_stated_rules != 0) hash = HashCombine(hash, found_by_stated_rules);
  for (const Form& form : formed.forms) hash = HashCombine(hash, HashCombine(HashBytes(form.rule), form.roots.front().gate));
  for (const PricedCandidate& candidate : candidates) {
    if (!IsInPlace(candidate.candidate)) continue;
    for (const PricedVariant& variant : candidate.variants) hash = HashCombine(hash, HashBytes(variant.variant.name));
    hash = HashCombine(hash, candidate.candidate.sub_graph.inside().Hash());
  }
  if (original) hash = HashCombine(hash, HashBytes(original->original->message));
  for (const IndexSet& calls : may_take) {
    calls.ForEach([&](PostDfsIndex node) { hash = HashCombine(hash, node); });
    hash = HashCombine(hash, calls.Count());
  }
  for (const PlacementTarget& target : targets)
    hash =
        HashCombine(hash, HashBytes(std::string(target.backend->Name()) + " " + target.version + " " + target.target + DeviceText(target)));
  uint64_t tuned = 0;
  for (const PlacedKernel& kernel : kernels) {
    // A sum, because those of earlier compiles come in another order.
    if (TemplateName(kernel.key.variant) != kernel.key.variant)
      tuned += HashCombine(kernel.key.function_hash, HashBytes(kernel.key.variant));
  }
  return HashCombine(hash, tuned);
}

std::vector<size_t> Placement::Singles() const {
  std::vector<size_t> singles;
  for (size_t target = 0; target < targets.size(); ++target) {
    // On one CPU of several a backend alone is the host's.
    const bool is_other_cpu = DeviceOf(target) > 0 && MemoryOf(DeviceOf(target)) == 0;
    if (!targets[target].is_fallback && !is_other_cpu && !coverable[target].Empty()) singles.push_back(target);
  }
  return singles;
}

namespace {

/// True when no other backend covers any operator of the candidate.
bool CoversOnlyOrphans(const Placement& placement, size_t candidate) {
  for (size_t target = 0; target < placement.targets.size(); ++target) {
    if (!placement.targets[target].is_fallback && placement.coverable[target].Intersects(placement.built.own[candidate])) return false;
  }
  return true;
}

bool IsOfOriginal(const PricedCandidate& candidate) {
  return std::any_of(candidate.variants.begin(), candidate.variants.end(),
                     [](const PricedVariant& variant) { return IsOriginal(variant.variant.name); });
}

bool IsFallback(const Placement& placement, size_t candidate) {
  return placement.candidates[candidate].is_partition && placement.targets[placement.candidates[candidate].backend].is_fallback;
}

}  // namespace

std::vector<bool> Placement::Competing() const {
  std::vector<bool> competing(candidates.size());
  for (size_t c = 0; c < competing.size(); ++c)
    competing[c] = MayLie(c) && !IsOfOriginal(candidates[c]) && (!IsFallback(*this, c) || CoversOnlyOrphans(*this, c));
  return competing;
}

std::vector<bool> Placement::OfOriginals() const {
  std::vector<bool> of_originals(candidates.size());
  for (size_t c = 0; c < of_originals.size(); ++c)
    of_originals[c] = MayLie(c) && (!candidates[c].is_partition || IsOfOriginal(candidates[c]));
  return of_originals;
}

std::vector<bool> Placement::OfFallback() const {
  std::vector<bool> of_fallback(candidates.size());
  for (size_t c = 0; c < of_fallback.size(); ++c) of_fallback[c] = MayLie(c) && (!candidates[c].is_partition || IsFallback(*this, c));
  return of_fallback;
}

std::vector<bool> Placement::AllowedFor(size_t target) const {
  std::vector<bool> allowed(candidates.size());
  for (size_t c = 0; c < candidates.size(); ++c) {
    const PricedCandidate& candidate = candidates[c];
    // What is said of devices may leave nothing of the target's own.
    const IndexSet& inside = candidate.candidate.sub_graph.inside();
    const bool is_elsewhere = !may_take.empty() && !inside.Intersects(may_take[target]);
    const bool is_generated = candidate.is_partition && targets[candidate.backend].rules.style == BackendRules::Style::kNative &&
                              !targets[candidate.backend].device;
    const bool fills_a_gap = is_generated && !coverable[target].Intersects(built.own[c]);
    const bool is_pinned = constraints->HoldsPinned(inside);
    // A single backend is what its library alone would run: in no other form, and with its own joins of tensors.
    if (IsOfForm(c) || !MayLie(c) || IsInPlace(candidate.candidate)) continue;
    allowed[c] = !candidate.is_partition || candidate.backend == target || fills_a_gap || is_pinned || is_elsewhere ||
                 (IsFallback(*this, c) && CoversOnlyOrphans(*this, c));
  }
  return allowed;
}

namespace {

/// Of kernels that compute a search node, each reason once.
std::vector<std::string> WhyInvalid(const Placement& placement, size_t node, const std::vector<Evidence>& evidence) {
  std::vector<std::string> reasons;
  for (size_t c = 0; c < placement.candidates.size() && !evidence.empty(); ++c) {
    if (!placement.built.own[c].Contains(node)) continue;
    for (const size_t kernel : placement.arms.kernel_of[c]) {
      if (kernel == Arms::kNoKernel || evidence[kernel].invalid_reason.empty()) continue;
      std::string reason = placement.kernels[kernel].key.backend + ": " + evidence[kernel].invalid_reason;
      if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(std::move(reason));
    }
  }
  return reasons;
}

}  // namespace

// An error of the search counts its own nodes; people know operators.
std::string Placement::NameNode(const std::string& message, const std::vector<Evidence>& evidence) const {
  const std::string prefix = "no valid candidate covers node ";
  if (message.rfind(prefix, 0) != 0) return message;
  const size_t node = std::stoul(message.substr(prefix.size()));
  if (node >= built.nodes.size()) return message;
  const FormRoot* root = formed.RootOf(built.nodes[node]);
  const PostDfsIndex index = root ? root->gate : built.nodes[node];
  const bool is_covered = std::any_of(candidates.begin(), candidates.end(), [&](const PricedCandidate& candidate) {
    return candidate.is_partition && !targets[candidate.backend].is_fallback && candidate.candidate.sub_graph.inside().Contains(index);
  });
  if (is_covered) {
    const std::vector<std::string> reasons = WhyInvalid(*this, node, evidence);
    return "of all that can run operator " + constraints->NameOf(index) + " nothing was measured, or nothing is valid" +
           (reasons.empty() ? "" : "; " + fmt::format("{}", fmt::join(reasons, "; ")));
  }
  const std::string tried = constraints->RulesTried(index, refusals);
  return "no backend can run operator " + constraints->NameOf(index) + " of type " + ToString((*graph)[index].expr->type()) + "; " +
         (tried.empty() ? "there is none: collage backends says why" : "rules tried: " + tried);
}

}  // namespace collage
