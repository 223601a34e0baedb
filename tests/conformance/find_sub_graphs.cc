#include "tests/conformance/find_sub_graphs.h"

#include "collage/pattern/matcher.h"

namespace collage::conformance {
namespace {

constexpr SubGraphConfig kOneResult{1, 0, /*allow_taps=*/false};
constexpr SubGraphConfig kAnyShape{0, 0, /*allow_taps=*/true};

/// A call together with the tuple that it takes and the projections from the tuple that it gives.
IndexSet WithTuples(const DataflowGraph& graph, PostDfsIndex call) {
  IndexSet unit;
  unit.Add(call);
  for (PostDfsIndex input : graph[call].inputs) {
    if (graph[input].expr->As<Tuple>() && graph[input].outputs.size() == 1) unit.Add(input);
  }
  for (PostDfsIndex output : graph[call].outputs) {
    if (graph[output].expr->As<TupleGetItem>()) unit.Add(output);
  }
  return unit;
}

class RegionGrower {
 public:
  RegionGrower(const DataflowGraph& graph, const std::function<bool(const SubGraph&)>& takes) : graph_(graph), takes_(takes) {}

  void Refuse(std::string reason) { found_.reason = std::move(reason); }

  void Add(const IndexSet& unit) {
    const SubGraph alone(graph_, unit);
    if (!takes_(alone)) {
      Refuse("no variant runs " + alone.Label(graph_));
      return;
    }
    found_.sub_graphs.push_back(alone);
    const SubGraph grown(graph_, region_ | unit);
    if (!grown.IsValid(graph_, kAnyShape) || !takes_(grown)) Close();
    region_ |= unit;
    ++units_;
  }

  FoundSubGraphs Finish() {
    Close();
    return std::move(found_);
  }

 private:
  void Close() {
    if (units_ > 1) found_.sub_graphs.emplace_back(graph_, region_);
    region_ = IndexSet();
    units_ = 0;
  }

  const DataflowGraph& graph_;
  const std::function<bool(const SubGraph&)>& takes_;
  IndexSet region_;
  size_t units_ = 0;
  FoundSubGraphs found_;
};

}  // namespace

FoundSubGraphs FindMatches(const DataflowGraph& graph, const BackendRules& rules) {
  FoundSubGraphs found;
  found.reason = "no pattern matches";
  for (const PatternRule& rule : rules.patterns) {
    for (const PatternMatch& match : AllMatches(graph, rule.pattern)) {
      const SubGraph sub_graph(graph, match.inside);
      if (!sub_graph.IsValid(graph, kOneResult)) continue;
      const Verdict verdict = rule.check ? rule.check(match.match) : Verdict::Accept();
      if (verdict.accepted) {
        found.sub_graphs.push_back(sub_graph.WithAttributes(graph, {{"Composite", rule.label}}));
      } else {
        found.reason = rule.label + ": " + verdict.reason;
      }
    }
  }
  return found;
}

FoundSubGraphs FindRegions(const DataflowGraph& graph, const BackendRules& rules, const std::function<bool(const SubGraph&)>& takes) {
  RegionGrower grower(graph, takes);
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    const OpDef* op = CalledOp(graph[node].expr);
    if (!op) continue;
    const Verdict verdict = rules.supports(graph[node].expr);
    if (verdict.accepted) {
      grower.Add(WithTuples(graph, node));
    } else {
      grower.Refuse(op->name + ": " + verdict.reason);
    }
  }
  return grower.Finish();
}

}  // namespace collage::conformance
