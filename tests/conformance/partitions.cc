#include "tests/conformance/partitions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "collage/candidate/gather.h"
#include "collage/candidate/library_calls.h"
#include "collage/dataflow/extraction.h"
#include "collage/op/quantisation_steps.h"
#include "collage/op/reference_sample.h"
#include "collage/partition/single_backend.h"
#include "tests/conformance/backends.h"

namespace collage::conformance {
namespace {

/// More of one program are thinned out evenly by size: code generators are offered hundreds, and take seconds for each ten.
constexpr size_t kMostPartitions = 12;

Partition Extract(const DataflowGraph& graph, const SubGraph& sub_graph) {
  auto extracted = ExtractFunction(graph, sub_graph);
  if (!extracted) throw std::runtime_error(extracted.error().message);
  Partition partition{sub_graph.Label(graph) + " " + sub_graph.inside().ToString(), extracted->function, {}};
  for (const TensorSource& source : extracted->inputs) partition.arguments.push_back({graph[source.node].expr, source.field});
  return partition;
}

/// Of the libraries that generated kernels may call.
const std::map<std::string, BackendRules>& LibraryRules(const Device& device) {
  static const std::map<std::string, BackendRules> all = [&] {
    std::map<std::string, BackendRules> found;
    for (const BackendRecord& record : PresentBackends({DeviceKind::kCpu, 0, device.threads})) {
      BackendRules rules = record.backend->Rules();
      if (!rules.callable.empty()) found.emplace(record.name, std::move(rules));
    }
    return found;
  }();
  return all;
}

/// The spec that a target with this compiler gets; for a backend that states no rules, that of a compiler of last resort. A code generator
/// may call every library, however small the results are.
SpecPointer SpecOf(const std::string& name, const BackendRules& rules, const Device& device) {
  Target target{DeviceKind::kCpu, {{"compiler", name}}};
  GatherOptions options;
  options.least_bytes_of_calls = 0;
  options.library_rules = [&](const std::string& library) { return &LibraryRules(device).at(library); };
  std::string libraries;
  for (const auto& [library, of] : LibraryRules(device)) libraries += (libraries.empty() ? "" : ",") + library;
  if (rules.style == BackendRules::Style::kNative && !libraries.empty()) target.attributes.emplace_back("libs", libraries);
  const auto specs = GatherPartitionSpecs(
      {target}, [&](const std::string& compiler) { return compiler == name ? &rules : nullptr; }, options);
  return specs ? specs->front() : FallbackSpec(name);
}

/// The candidates of the spec, and each supported call alone.
std::vector<SubGraph> FindSubGraphs(const DataflowGraph& graph, const std::string& name, const BackendRules& rules, const Device& device,
                                    std::vector<Refusal>* refusals) {
  Rule rule = SpecOf(name, rules, device)->rule;
  if (rules.supports) rule = UnionRule({PrimitiveRule(name, OpPredicateRule(name, rules.supports)), std::move(rule)});
  return rule->AllSubGraphs(graph, refusals);
}

/// The regions of several composites that partition_for_<backend> takes.
std::vector<SubGraph> MergedRegions(const DataflowGraph& graph, const std::string& name, const BackendRules& rules, const Device& device) {
  std::vector<SubGraph> merged;
  // The kernel of such a region has its intermediate tensors in the host's memory.
  if (rules.patterns.empty() || device.kind != DeviceKind::kCpu) return merged;
  const auto plan = SingleBackendCover(graph, {SpecOf(name, rules, device), &rules}, {.fallback = FallbackSpec("reference")});
  if (!plan) return merged;  // it takes nothing
  for (const ChosenPartition& chosen : plan->cover) {
    const SubGraph& region = chosen.candidate.sub_graph;
    if (chosen.candidate.spec->name == name && region.nested().front().sub_graph.nested().size() > 1) merged.push_back(region);
  }
  return merged;
}

/// Kernels that call a library are few, and stay.
std::vector<SubGraph> ThinOut(std::vector<SubGraph> all, const std::string& name) {
  if (all.size() <= kMostPartitions) return all;
  const auto calls = [&](const SubGraph& one) {
    const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{name, {}, nullptr});
    return !LibraryParts({one, spec}).empty();
  };
  const auto calling = std::stable_partition(all.begin(), all.end(), [&](const SubGraph& one) { return !calls(one); });
  std::vector<SubGraph> kept_anyway(calling, all.end());
  all.erase(calling, all.end());
  std::stable_sort(all.begin(), all.end(), [](const SubGraph& a, const SubGraph& b) { return a.inside().Count() < b.inside().Count(); });
  std::vector<SubGraph> kept = std::move(kept_anyway);
  if (all.size() <= kMostPartitions) {
    kept.insert(kept.end(), all.begin(), all.end());
    return kept;
  }
  for (size_t i = 0; i < kMostPartitions; ++i) kept.push_back(all[i * (all.size() - 1) / (kMostPartitions - 1)]);
  return kept;
}

/// A partition of another backend in one of its variants, to run on a share of the team.
struct Member {
  SubGraph sub_graph;
  Attributes attributes;
};

/// Of each backend whose kernels run on the team, what it takes of a program; its first variant and its last.
std::vector<Member> MembersOf(const DataflowGraph& graph, const Device& device) {
  std::vector<Member> members;
  for (const BackendRecord& record : PresentBackends(device)) {
    const BackendRules rules = record.backend->Rules();
    if (rules.style == BackendRules::Style::kPredicate || rules.runs_side_by_side) continue;
    for (const SubGraph& found : ThinOut(FindSubGraphs(graph, record.name, rules, device, nullptr), record.name)) {
      if (found.nested().size() != 1 || !found.IsInOneBlock(graph)) continue;
      const Partition alone = Extract(graph, found);
      const std::vector<Variant> variants = record.backend->Variants(*alone.function->As<Function>(), device);
      if (variants.empty()) continue;
      Attributes attributes = found.nested().front().attributes;
      attributes.Set("Primitive", 1);
      attributes.Set("Compiler", record.name);
      attributes.Set("Variant", (members.size() % 2 == 0 ? variants.front() : variants.back()).name);
      attributes.Set("Threads", static_cast<int64_t>(device.threads));
      members.push_back({found, std::move(attributes)});
    }
  }
  return members;
}

/// Pairs of partitions that do not depend on each other, neighbours in the order of backends and sizes first: so those of two backends, and
/// large ones beside small ones, are among them.
std::vector<SubGraph> PairsSideBySide(const DataflowGraph& graph, const std::string& name, const Device& device) {
  constexpr size_t kMostPairs = 6;
  const std::vector<Member> members = MembersOf(graph, device);
  std::vector<SubGraph> pairs;
  for (size_t apart = 1; apart < members.size() && pairs.size() < kMostPairs; ++apart) {
    for (size_t i = 0; i + apart < members.size() && pairs.size() < kMostPairs; ++i) {
      const SubGraph& first = members[i].sub_graph;
      const SubGraph& second = members[i + apart].sub_graph;
      if (first.inside().Intersects(second.inside()) || first.Touches(second) || second.Touches(first)) continue;
      std::vector<NestedSubGraph> shares;
      for (const size_t member : {i, i + apart}) {
        NestedSubGraph share{members[member].sub_graph.nested().front().sub_graph, members[member].attributes};
        share.attributes.Set("Share", static_cast<int64_t>(shares.size()));
        share.attributes.Set("global_symbol", "share_" + std::to_string(shares.size()));
        shares.push_back(std::move(share));
      }
      const SubGraph both = SubGraph(graph, first.inside() | second.inside(), std::move(shares));
      if (both.IsConvex(graph) && both.IsInOneBlock(graph)) pairs.push_back(both.Wrapped({{"Primitive", 1}, {"Compiler", name}}));
    }
  }
  return pairs;
}

}  // namespace

Partitions PartitionsOf(const Program& program, const Backend& backend, const Device& device) {
  const DataflowGraph graph(program.function);
  const BackendRules rules = backend.Rules();
  const std::string name(backend.Name());
  std::vector<Refusal> refusals;
  Partitions partitions{{}, "it takes nothing of this"};
  std::vector<SubGraph> found =
      rules.runs_side_by_side ? PairsSideBySide(graph, name, device) : ThinOut(FindSubGraphs(graph, name, rules, device, &refusals), name);
  for (SubGraph& region : MergedRegions(graph, name, rules, device)) found.push_back(std::move(region));
  for (const SubGraph& sub_graph : found) {
    Partition partition = Extract(graph, sub_graph);
    // A code generator is offered what operator fusion would join, and may decline; but a single call only in its predicate.
    const bool may_decline = rules.style == BackendRules::Style::kNative && sub_graph.operator_count() > 1;
    if (may_decline && backend.Variants(*partition.function->As<Function>(), device).empty()) continue;
    partitions.taken.push_back(std::move(partition));
  }
  if (!refusals.empty()) partitions.reason = refusals.back().reason;
  return partitions;
}

Sample MakeSample(const ReferenceRun& whole, const Partition& partition) {
  Sample sample;
  for (const TensorOf& argument : partition.arguments) sample.inputs.push_back(whole.Of(argument.expr).at(argument.field));
  sample.expected = ReferenceRun(*partition.function->As<Function>(), sample.inputs).Results();
  sample.tolerance = RoundingTolerance(partition.function);
  sample.steps = QuantisationSteps(ToOpSequence(*partition.function->As<Function>()).value());
  return sample;
}

}  // namespace collage::conformance
