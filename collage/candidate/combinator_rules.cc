#include "collage/candidate/distinct.h"
#include "collage/candidate/regions.h"
#include "collage/candidate/rules.h"

namespace collage {
namespace {

/// Changes or drops each sub-graph of a sub-rule; `change` answers false to drop. Changes that keep different sub-graphs different
/// need no look for duplicates.
class Changed final : public PartitionRule {
 public:
  using Change = std::function<bool(const DataflowGraph&, SubGraph&)>;
  Changed(Rule sub_rule, Change change, bool keeps_distinct = true)
      : sub_rule_(std::move(sub_rule)), change_(std::move(change)), keeps_distinct_(keeps_distinct) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    DistinctSubGraphs distinct;
    sub_rule_->ForEach(graph, refusals, [&](SubGraph sub_graph) {
      if (change_(graph, sub_graph) && (keeps_distinct_ || distinct.Add(sub_graph))) visit(std::move(sub_graph));
    });
  }

 private:
  Rule sub_rule_;
  Change change_;
  bool keeps_distinct_;
};

class Union final : public PartitionRule {
 public:
  explicit Union(std::vector<Rule> sub_rules) : sub_rules_(std::move(sub_rules)) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    DistinctSubGraphs distinct;
    for (const Rule& rule : sub_rules_) {
      // A rule finds nothing twice, so what the last one finds need not be remembered.
      const bool is_last = &rule == &sub_rules_.back();
      rule->ForEach(graph, refusals, [&](SubGraph sub_graph) {
        if (is_last ? !distinct.Contains(sub_graph) : distinct.Add(sub_graph)) visit(std::move(sub_graph));
      });
    }
  }

 private:
  std::vector<Rule> sub_rules_;
};

class Combine final : public PartitionRule {
 public:
  Combine(std::vector<Combiner> combiners, CombineLimits limits, Rule sub_rule)
      : combiners_(std::move(combiners)), limits_(limits), sub_rule_(std::move(sub_rule)) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    CombineClosure(graph, sub_rule_->AllSubGraphs(graph, refusals), combiners_, limits_, visit);
  }

 private:
  std::vector<Combiner> combiners_;
  CombineLimits limits_;
  Rule sub_rule_;
};

/// The same without constants; false when nothing is left.
bool ReleaseConstants(const DataflowGraph& graph, SubGraph& sub_graph) {
  IndexSet inside = sub_graph.inside();
  sub_graph.inside().ForEach([&](PostDfsIndex node) {
    if (graph[node].Is<Constant>()) inside.Remove(node);
  });
  if (inside.Empty()) return false;
  std::vector<NestedSubGraph> nested;
  for (NestedSubGraph one : sub_graph.nested()) {
    if (ReleaseConstants(graph, one.sub_graph)) nested.push_back(std::move(one));
  }
  sub_graph = SubGraph(graph, std::move(inside), std::move(nested));
  return true;
}

Rule Wrap(Attributes attributes, Rule sub_rule) {
  return std::make_shared<Changed>(std::move(sub_rule),
                                   [shared = SharedAttributes(std::move(attributes))](const DataflowGraph&, SubGraph& sub_graph) {
                                     sub_graph = sub_graph.Wrapped(shared);
                                     return true;
                                   });
}

}  // namespace

std::optional<SubGraph> WithoutConstants(const DataflowGraph& graph, SubGraph sub_graph) {
  if (!ReleaseConstants(graph, sub_graph)) return std::nullopt;
  return sub_graph;
}

Rule CompositeRule(std::string label, Rule sub_rule) { return Wrap({{"Composite", std::move(label)}}, std::move(sub_rule)); }

Rule PrimitiveRule(std::string compiler, Rule sub_rule) {
  Attributes attributes = {{"Primitive", AttributeValue(1)}};
  if (!compiler.empty()) attributes.Set("Compiler", std::move(compiler));
  return Wrap(std::move(attributes), std::move(sub_rule));
}

Rule UnionRule(std::vector<Rule> sub_rules) { return std::make_shared<Union>(std::move(sub_rules)); }

Rule OnlyValidRule(SubGraphConfig config, Rule sub_rule) {
  return std::make_shared<Changed>(std::move(sub_rule),
                                   [config](const DataflowGraph& graph, SubGraph& sub_graph) { return sub_graph.IsValid(graph, config); });
}

Rule ReleaseConstantsRule(Rule sub_rule) { return std::make_shared<Changed>(std::move(sub_rule), ReleaseConstants, false); }

Rule CombineRule(std::vector<Combiner> combiners, CombineLimits limits, Rule sub_rule) {
  return std::make_shared<Combine>(std::move(combiners), limits, std::move(sub_rule));
}

}  // namespace collage
