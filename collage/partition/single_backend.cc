#include "collage/partition/single_backend.h"

#include <algorithm>

#include "collage/candidate/gather.h"
#include "collage/candidate/regions.h"
#include "collage/dataflow/contraction.h"
#include "collage/dataflow/extraction.h"
#include "collage/partition/classic_flow.h"
#include "collage/partition/fuse.h"
#include "collage/pattern/check.h"

namespace collage {
namespace {

class Greedy {
 public:
  Greedy(const DataflowGraph& graph, const SingleBackend& backend, const SingleBackendOptions& options)
      : graph_(graph), backend_(backend), options_(options), contracted_(graph), covered_(graph.size(), false) {}

  Result<SingleBackendPlan> Plan() {
    COLLAGE_TRY_STATUS(CheckPatterns(backend_.rules->patterns));
    if (backend_.rules->style == BackendRules::Style::kNative) {
      TakeGroups(backend_);
    } else {
      TakeRegions();
    }
    if (plan_.cover.empty()) return TakesNothing();
    if (options_.native.spec && backend_.rules->style != BackendRules::Style::kNative) TakeGroups(options_.native);
    COLLAGE_TRY_STATUS(TakeTheRest());
    std::sort(plan_.cover.begin(), plan_.cover.end(), [](const ChosenPartition& a, const ChosenPartition& b) {
      return a.candidate.sub_graph.inside().First() < b.candidate.sub_graph.inside().First();
    });
    return std::move(plan_);
  }

 private:
  static constexpr size_t kBackend = 0;  // in the list of backends of the classic flow, which is this one
  static constexpr size_t kNative = 1;

  [[nodiscard]] tl::unexpected<Error> TakesNothing() const {
    const std::string start = "backend '" + backend_.spec->name + "' takes no part of this program";
    return Fail(plan_.refusals.empty() ? start : start + ": " + plan_.refusals.front().reason);
  }

  void TakeRegions() {
    BackendRules rules = *backend_.rules;
    rules.patterns.clear();  // what they match is composite already
    const std::vector<NestedSubGraph> composites = FindComposites(graph_, backend_.rules->patterns);
    const std::vector<SupportedRegion> supported = Annotate(graph_, {{backend_.spec->name, &rules}}, composites);
    const std::vector<SupportedRegion> assigned = Deconflict(graph_, supported, kNative);
    for (const BackendRegion& region : MergeAssigned(graph_, assigned, kNative)) {
      if (!Take(backend_, region.nodes, region.composites)) TakeParts(region);
    }
  }

  /// A region that cannot be built as a whole.
  void TakeParts(const BackendRegion& region) {
    IndexSet in_composites;
    for (const NestedSubGraph& composite : region.composites) {
      in_composites |= composite.sub_graph.inside();
      Take(backend_, composite.sub_graph.inside(), {composite});
    }
    region.nodes.ForEach([&](PostDfsIndex node) {
      const bool supported = graph_[node].op && backend_.rules->supports && backend_.rules->supports(graph_[node].expr).accepted;
      if (supported && !in_composites.Contains(node)) Take(backend_, IndexSet({node}), {});
    });
  }

  /// The groups of operator fusion among what is left, else its single calls.
  void TakeGroups(const SingleBackend& native) {
    std::vector<bool> may_fuse(graph_.size(), false);
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (!graph_[node].op || covered_[node]) continue;
      may_fuse[node] = !native.rules->supports || native.rules->supports(graph_[node].expr).accepted;
    }
    std::vector<bool> alone(graph_.size(), false);  // tried so already
    for (const IndexSet& group : FindFusionGroups(graph_, may_fuse, {})) {
      if (group.Count() == 1) alone[group.First()] = true;
      if (!IsOnlyViews(group)) Take(native, group, {});
    }
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (may_fuse[node] && !alone[node] && !graph_[node].op->is_view) Take(native, IndexSet({node}), {});
    }
  }

  Status TakeTheRest() {
    const SpecPointer host = HostSpec();
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (covered_[node]) continue;
      const OpDef* op = graph_[node].op;
      const bool stays = !op || op->is_view;
      if (!stays && !options_.fallback) {
        return Fail("no backend takes " + op->name + " (node " + std::to_string(node) + ") in the plan for '" + backend_.spec->name + "'" +
                    ReasonAt(node));
      }
      Add({stays ? SubGraph(graph_, IndexSet({node})) : Partition(*options_.fallback, IndexSet({node}), {}),
           stays ? host : options_.fallback});
    }
    return {};
  }

  [[nodiscard]] std::string ReasonAt(PostDfsIndex node) const {
    for (const Refusal& refusal : plan_.refusals) {
      if (refusal.inside.Contains(node)) return ": " + refusal.reason;
    }
    return {};
  }

  [[nodiscard]] bool IsOnlyViews(const IndexSet& nodes) const {
    bool only = true;
    nodes.ForEach([&](PostDfsIndex node) { only = only && (!graph_[node].op || graph_[node].op->is_view); });
    return only;
  }

  /// Candidates of native specs carry no Compiler.
  [[nodiscard]] SubGraph Partition(const PartitionSpec& spec, const IndexSet& nodes, std::vector<NestedSubGraph> composites) const {
    Attributes attributes{{"Primitive", AttributeValue(1)}};
    if (spec.name != "native") attributes.Set("Compiler", spec.name);
    const SubGraph partition(graph_, nodes, std::move(composites));
    return WithoutConstants(graph_, partition).value_or(partition).WithAttributes(graph_, std::move(attributes));
  }

  bool Take(const SingleBackend& taker, const IndexSet& nodes, std::vector<NestedSubGraph> composites) {
    CandidatePartition partition{Partition(*taker.spec, nodes, std::move(composites)), taker.spec};
    const std::vector<PostDfsIndex> members = partition.sub_graph.inside().ToVector();
    if (std::any_of(members.begin(), members.end(), [&](PostDfsIndex node) { return covered_[node]; })) return false;
    if (const Status built = CanBeBuilt(partition); !built) {
      plan_.refusals.push_back({taker.spec->name + " (greedy)", partition.sub_graph.inside(), built.error().message, taker.spec->name});
      return false;
    }
    // Regions and groups form no cycle among themselves, but they may with each other.
    if (!contracted_.TryMerge(members)) return false;
    Add(std::move(partition));
    return true;
  }

  [[nodiscard]] Status CanBeBuilt(const CandidatePartition& partition) const {
    if (options_.check) return options_.check(partition);
    COLLAGE_TRY_STATUS(ExtractFunction(graph_, partition.sub_graph));
    return {};
  }

  void Add(CandidatePartition partition) {
    partition.sub_graph.inside().ForEach([&](PostDfsIndex node) { covered_[node] = true; });
    plan_.cover.push_back({std::move(partition), {}});
  }

  const DataflowGraph& graph_;
  const SingleBackend& backend_;
  const SingleBackendOptions& options_;
  ContractedGraph contracted_;
  std::vector<bool> covered_;
  SingleBackendPlan plan_;
};

}  // namespace

Result<SingleBackendPlan> SingleBackendCover(const DataflowGraph& graph, const SingleBackend& backend,
                                             const SingleBackendOptions& options) {
  return Greedy(graph, backend, options).Plan();
}

}  // namespace collage
