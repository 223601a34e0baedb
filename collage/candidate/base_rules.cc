#include <unordered_set>

#include "collage/candidate/rules.h"
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

  std::vector<SubGraph> AllSubGraphs(const DataflowGraph& graph, std::vector<Refusal>* refusals) const override {
    std::vector<SubGraph> found;
    std::unordered_set<IndexSet> seen;
    for (const PatternMatch& match : AllMatches(graph, pattern_)) {
      if (seen.contains(match.inside)) continue;
      const Verdict verdict = check_ ? check_(match.match) : Verdict::Accept();
      if (!verdict.accepted) {
        Refuse(refusals, name_, match.inside, verdict.reason);
        continue;
      }
      seen.insert(match.inside);
      found.emplace_back(graph, match.inside);
    }
    return found;
  }

 private:
  std::string name_;
  Pattern pattern_;
  std::function<Verdict(const Match&)> check_;
};

class OpPredicate final : public PartitionRule {
 public:
  OpPredicate(std::string name, CallPredicate supports, bool pull_constants)
      : name_(std::move(name)), supports_(std::move(supports)), pull_constants_(pull_constants) {}

  std::vector<SubGraph> AllSubGraphs(const DataflowGraph& graph, std::vector<Refusal>* refusals) const override {
    std::vector<SubGraph> found;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (!CalledOp(graph[node].expr)) continue;
      IndexSet inside({node});
      const Verdict verdict = supports_ ? supports_(graph[node].expr) : Verdict::Accept();
      if (!verdict.accepted) {
        Refuse(refusals, name_, std::move(inside), verdict.reason);
        continue;
      }
      for (const PostDfsIndex input : graph[node].inputs) {
        if (pull_constants_ && graph[input].expr->As<Constant>()) inside.Add(input);
      }
      found.emplace_back(graph, std::move(inside));
    }
    return found;
  }

 private:
  std::string name_;
  CallPredicate supports_;
  bool pull_constants_;
};

/// One sub-graph for every node that a test accepts.
class Singles final : public PartitionRule {
 public:
  explicit Singles(std::function<bool(const Expr&)> accept) : accept_(std::move(accept)) {}

  std::vector<SubGraph> AllSubGraphs(const DataflowGraph& graph, std::vector<Refusal>*) const override {
    std::vector<SubGraph> found;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (accept_(graph[node].expr)) found.emplace_back(graph, IndexSet({node}));
    }
    return found;
  }

 private:
  std::function<bool(const Expr&)> accept_;
};

}  // namespace

Rule DFPatternRule(std::string name, Pattern pattern, std::function<Verdict(const Match&)> check) {
  return std::make_shared<DFPattern>(std::move(name), std::move(pattern), std::move(check));
}

Rule OpPredicateRule(std::string name, CallPredicate supports, bool pull_constants) {
  return std::make_shared<OpPredicate>(std::move(name), std::move(supports), pull_constants);
}

Rule OpCallByKindRule(CallPredicate supports) {
  return std::make_shared<OpPredicate>(
      "OpCallByKind",
      [supports = std::move(supports)](const Expr& call) {
        if (CalledOp(call)->kind == OpKind::kOpaque) return Verdict::Reject(CalledOp(call)->name + " is opaque to fusion");
        return supports ? supports(call) : Verdict::Accept();
      },
      false);
}

Rule HostRule() {
  return std::make_shared<Singles>([](const Expr& expr) { return CalledOp(expr) == nullptr; });
}

Rule ViewRule() {
  return std::make_shared<Singles>([](const Expr& expr) { return CalledOp(expr) != nullptr && CalledOp(expr)->is_view; });
}

}  // namespace collage
