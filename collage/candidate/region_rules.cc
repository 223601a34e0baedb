#include <algorithm>
#include <compare>
#include <map>
#include <string>

#include "collage/candidate/regions.h"
#include "collage/candidate/rules.h"

namespace collage {
namespace {

std::vector<bool> AcceptedCalls(const DataflowGraph& graph, const CallPredicate& supports, std::vector<Refusal>* refusals,
                                const char* rule) {
  std::vector<bool> accepted(graph.size(), false);
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (!graph[node].op) continue;
    const Verdict verdict = supports ? supports(graph[node].expr) : Verdict::Accept();
    accepted[node] = verdict.accepted;
    if (!verdict.accepted && refusals) refusals->push_back({rule, IndexSet({node}), verdict.reason});
  }
  return accepted;
}

std::string LabelOf(const SubGraph& sub_graph) {
  for (const NestedSubGraph& nested : sub_graph.nested()) {
    const AttributeValue* label = nested.attributes.Find("Composite");
    if (label && label->AsString()) return *label->AsString();
  }
  return {};
}

/// What greedy partitioning takes first: labelled ones in the order of their table, of one label the last root first, then the
/// larger; then the rest, larger ones first and of equally large ones the earlier.
void SortByPreference(std::vector<SubGraph>& sub_graphs) {
  struct Key {
    bool plain;
    size_t rank;
    size_t root;
    size_t size;
    size_t first;
    size_t position;
    auto operator<=>(const Key&) const = default;
  };
  std::map<std::string, size_t> ranks;
  std::vector<Key> keys;
  for (size_t i = 0; i < sub_graphs.size(); ++i) {
    const std::string label = LabelOf(sub_graphs[i]);
    const size_t rank = label.empty() ? 0 : ranks.emplace(label, ranks.size()).first->second;
    // Larger comes first, so these are counted downwards.
    const size_t root = label.empty() ? 0 : ~sub_graphs[i].inside().Last();
    keys.push_back({label.empty(), rank, root, ~sub_graphs[i].operator_count(), sub_graphs[i].inside().First(), i});
  }
  std::sort(keys.begin(), keys.end());
  std::vector<SubGraph> sorted;
  for (const Key& key : keys) sorted.push_back(std::move(sub_graphs[key.position]));
  sub_graphs = std::move(sorted);
}

class Maximal final : public PartitionRule {
 public:
  Maximal(bool take_tuples, Rule sub_rule) : take_tuples_(take_tuples), sub_rule_(std::move(sub_rule)) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    std::map<PostDfsIndex, SubGraph> chosen;  // by first node
    std::vector<Region> parts;
    IndexSet taken;
    std::vector<SubGraph> found = sub_rule_->AllSubGraphs(graph, refusals);
    SortByPreference(found);
    for (SubGraph& sub_graph : found) {
      if (taken.Intersects(sub_graph.inside()) || !sub_graph.IsValid(graph, {.allow_taps = true})) continue;
      taken |= sub_graph.inside();
      parts.push_back({0, sub_graph.inside()});
      chosen.emplace(sub_graph.inside().First(), std::move(sub_graph));
    }
    for (Region& region : MergeRegions(graph, parts, take_tuples_)) {
      std::vector<NestedSubGraph> nested;
      region.nodes.ForEach([&](PostDfsIndex node) {
        const auto part = chosen.find(node);
        if (part == chosen.end()) return;
        const std::span<const NestedSubGraph> inner = part->second.nested();
        nested.insert(nested.end(), inner.begin(), inner.end());
      });
      visit(SubGraph(graph, std::move(region.nodes), std::move(nested)));
    }
  }

 private:
  bool take_tuples_;
  Rule sub_rule_;
};

class RegionCuts final : public PartitionRule {
 public:
  RegionCuts(CallPredicate supports, RegionCutLimits limits) : supports_(std::move(supports)), limits_(limits) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    const std::vector<bool> accepted = AcceptedCalls(graph, supports_, refusals, "RegionCuts");
    std::vector<Region> parts;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (accepted[node]) parts.push_back({0, IndexSet({node})});
    }
    for (const Region& region : MergeRegions(graph, parts, true)) {
      for (IndexSet& piece : CutRegion(graph, region.nodes, limits_)) visit(SubGraph(graph, std::move(piece)));
    }
  }

 private:
  CallPredicate supports_;
  RegionCutLimits limits_;
};

class Fused final : public PartitionRule {
 public:
  Fused(CallPredicate supports, size_t max_operators) : supports_(std::move(supports)), max_operators_(max_operators) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>*, const Visitor& visit) const override {
    const std::vector<bool> accepted = AcceptedCalls(graph, supports_, nullptr, "");
    // Where a library takes the anchor, what is fused around it is left as a whole.
    std::vector<IndexSet> all = FusionGroupsWithAndWithoutAnchors(graph, accepted, max_operators_);
    for (IndexSet& group : all) visit(SubGraph(graph, std::move(group)));
  }

 private:
  CallPredicate supports_;
  size_t max_operators_;
};

}  // namespace

Rule MaximalRule(Rule sub_rule) { return std::make_shared<Maximal>(true, std::move(sub_rule)); }

Rule MaxCoalesceRule(Rule sub_rule) { return std::make_shared<Maximal>(false, std::move(sub_rule)); }

Rule RegionCutsRule(CallPredicate supports, RegionCutLimits limits) { return std::make_shared<RegionCuts>(std::move(supports), limits); }

Rule FusionGroupsRule(CallPredicate supports, size_t max_operators) { return std::make_shared<Fused>(std::move(supports), max_operators); }

}  // namespace collage
