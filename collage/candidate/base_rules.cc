#include <unordered_map>

#include "collage/candidate/number_tables.h"
#include "collage/candidate/rules.h"
#include "collage/pattern/fusion.h"
#include "collage/pattern/matcher.h"

namespace collage {
namespace {

void Refuse(std::vector<Refusal>* refusals, const std::string& rule, IndexSet inside, std::string reason) {
  if (refusals) refusals->push_back({rule, std::move(inside), std::move(reason)});
}

class DFPattern final : public PartitionRule {
 public:
  DFPattern(std::string name, Pattern pattern, std::function<Verdict(const Match&)> check)
      : name_(std::move(name)), pattern_(std::move(pattern)), check_(std::move(check)) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    NumberTables tables;
    std::vector<IndexSet> seen;
    const auto is_new = [&](const IndexSet& inside) {
      return !tables.Contains(inside.Last(), inside.Hash(), [&](uint32_t number) { return seen[number] == inside; });
    };
    const auto take = [&](IndexSet inside) {
      tables.Insert(inside.Last(), inside.Hash(), seen.size(), [](uint32_t) { return false; });
      seen.push_back(inside);
      visit(SubGraph(graph, std::move(inside)));
    };
    if (!check_) {
      return ForEachMatchedSet(graph, pattern_, [&](IndexSet inside) {
        if (is_new(inside)) take(std::move(inside));
      });
    }
    ForEachMatch(graph, pattern_, [&](PatternMatch match) {
      if (!is_new(match.inside)) return;
      const Verdict verdict = check_(match.match);
      if (!verdict.accepted) return Refuse(refusals, name_, std::move(match.inside), verdict.reason);
      take(std::move(match.inside));
    });
  }

 private:
  std::string name_;
  Pattern pattern_;
  std::function<Verdict(const Match&)> check_;
};

/// Matches that grow, each labelled by what has joined.
class GrownMatches final : public PartitionRule {
 public:
  explicit GrownMatches(PatternRule rule) : rule_(std::move(rule)) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    std::unordered_map<std::string, SharedAttributes> attributes;
    ForEachMatch(graph, rule_, [&](PatternMatch match) {
      const std::string label = LabelOf(rule_, graph, match.inside);
      const Verdict verdict = rule_.check ? rule_.check(match.match) : Verdict::Accept();
      if (!verdict.accepted) return Refuse(refusals, label, std::move(match.inside), verdict.reason);
      const auto shared = attributes.try_emplace(label, Attributes{{"Composite", label}}).first;
      visit(SubGraph(graph, std::move(match.inside)).Wrapped(shared->second));
    });
  }

 private:
  PatternRule rule_;
};

class OpPredicate final : public PartitionRule {
 public:
  OpPredicate(std::string name, CallPredicate supports, bool pull_constants, bool take_opaque = true)
      : name_(std::move(name)), supports_(std::move(supports)), pull_constants_(pull_constants), take_opaque_(take_opaque) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const override {
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (!graph[node].op) continue;
      IndexSet inside({node});
      const Verdict verdict = Decide(graph[node]);
      if (!verdict.accepted) {
        Refuse(refusals, name_, std::move(inside), verdict.reason);
        continue;
      }
      for (const PostDfsIndex input : graph[node].inputs) {
        if (pull_constants_ && graph[input].Is<Constant>()) inside.Add(input);
      }
      visit(SubGraph(graph, std::move(inside)));
    }
  }

 private:
  [[nodiscard]] Verdict Decide(const DataflowGraph::Node& node) const {
    if (!take_opaque_ && node.kind == OpKind::kOpaque) return Verdict::Reject(node.op->name + " is opaque to fusion");
    return supports_ ? supports_(node.expr) : Verdict::Accept();
  }

  std::string name_;
  CallPredicate supports_;
  bool pull_constants_;
  bool take_opaque_;
};

/// One sub-graph for every node that a test accepts.
class Singles final : public PartitionRule {
 public:
  explicit Singles(bool (*accept)(const DataflowGraph::Node&)) : accept_(accept) {}

  void ForEach(const DataflowGraph& graph, std::vector<Refusal>*, const Visitor& visit) const override {
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (accept_(graph[node])) visit(SubGraph(graph, IndexSet({node})));
    }
  }

 private:
  bool (*accept_)(const DataflowGraph::Node&);
};

}  // namespace

Rule DFPatternRule(std::string name, Pattern pattern, std::function<Verdict(const Match&)> check) {
  return std::make_shared<DFPattern>(std::move(name), std::move(pattern), std::move(check));
}

Rule LabelledMatchesRule(PatternRule rule) {
  if (rule.fusion) return std::make_shared<GrownMatches>(std::move(rule));
  return CompositeRule(rule.label, DFPatternRule(rule.label, rule.pattern, rule.check));
}

Rule OpPredicateRule(std::string name, CallPredicate supports, bool pull_constants) {
  return std::make_shared<OpPredicate>(std::move(name), std::move(supports), pull_constants);
}

Rule OpCallByKindRule(CallPredicate supports) { return std::make_shared<OpPredicate>("OpCallByKind", std::move(supports), false, false); }

Rule SinglesRule(bool (*accept)(const DataflowGraph::Node&)) { return std::make_shared<Singles>(accept); }

Rule HostRule() {
  return SinglesRule([](const DataflowGraph::Node& node) { return node.op == nullptr || node.kind == OpKind::kOpaque; });
}

Rule NoCallRule() {
  return SinglesRule([](const DataflowGraph::Node& node) { return node.op == nullptr; });
}

Rule ViewRule() {
  return SinglesRule([](const DataflowGraph::Node& node) { return node.op && node.op->is_view; });
}

}  // namespace collage
