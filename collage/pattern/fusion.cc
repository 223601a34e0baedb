#include "collage/pattern/fusion.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "collage/dataflow/sub_graph.h"

namespace collage {
namespace {

class Growth {
 public:
  Growth(const DataflowGraph& graph, const FusionRule& rule, const std::function<void(PatternMatch)>& visit)
      : graph_(graph), rule_(rule), visit_(visit) {}

  /// All matches that begin with this call.
  void From(PostDfsIndex first) {
    found_ = {IndexSet({first})};
    seen_ = {found_.front()};
    for (size_t i = 0; i < found_.size(); ++i) {
      const SubGraph calls(graph_, found_[i]);
      const std::vector<PostDfsIndex> joining = Joining(calls, first);
      if (calls.exit().size() == 1 && !calls.HasTaps(graph_) && calls.IsConvex(graph_) && MayEnd(calls, joining)) Visit(calls);
      if (calls.exit().size() <= rule_.max_exits && calls.operator_count() < rule_.max_operators) Grow(calls, joining);
    }
  }

 private:
  void Visit(const SubGraph& calls) {
    if (given_.insert(calls.inside()).second) visit_(MatchOf(calls));
    if (!rule_.stands_in_front) return;
    const IndexSet whole = WithFront(calls.inside());
    if (given_.insert(whole).second) visit_(MatchOf(SubGraph(graph_, whole)));
  }

  // Nothing leaves what is added but into the match, so its exit stays the only one and no path comes back.
  [[nodiscard]] IndexSet WithFront(IndexSet inside) const {
    const PostDfsIndex block = graph_[inside.First()].block;
    for (bool grows = true; grows;) {
      grows = false;
      const SubGraph calls(graph_, inside);
      for (const PostDfsIndex input : calls.input()) {
        const PostDfsIndex call = graph_[input].expr->As<TupleGetItem>() ? graph_[input].inputs[0] : input;
        if (inside.Contains(call) || !graph_[call].op || graph_[call].block != block || !rule_.stands_in_front(graph_[call].expr)) continue;
        IndexSet grown = inside;
        grown.Add(call);
        for (const PostDfsIndex user : graph_[call].outputs) {
          if (graph_[user].expr->As<TupleGetItem>()) grown.Add(user);
        }
        if (SubGraph(graph_, grown).exit().size() != 1) continue;
        inside = std::move(grown);
        grows = true;
      }
    }
    return inside;
  }

  [[nodiscard]] std::vector<PostDfsIndex> Joining(const SubGraph& calls, PostDfsIndex first) const {
    std::vector<PostDfsIndex> joining;
    const std::vector<Expr> inside = Inside(calls);
    for (const PostDfsIndex next : calls.output()) {
      if (graph_[next].op && graph_[next].block == graph_[first].block && rule_.joins(inside, graph_[next].expr)) joining.push_back(next);
    }
    return joining;
  }

  [[nodiscard]] std::vector<Expr> Inside(const SubGraph& calls) const {
    std::vector<Expr> inside;
    calls.inside().ForEach([&](PostDfsIndex node) { inside.push_back(graph_[node].expr); });
    return inside;
  }

  [[nodiscard]] bool MayEnd(const SubGraph& calls, const std::vector<PostDfsIndex>& joining) const {
    if (!rule_.ends) return true;
    std::vector<Expr> could_join;
    for (const PostDfsIndex next : joining) could_join.push_back(graph_[next].expr);
    return rule_.ends(Inside(calls), could_join);
  }

  void Grow(const SubGraph& calls, const std::vector<PostDfsIndex>& joining) {
    for (const PostDfsIndex next : joining) {
      IndexSet grown = calls.inside();
      grown.Add(next);
      if (seen_.insert(grown).second) found_.push_back(std::move(grown));
    }
  }

  [[nodiscard]] PatternMatch MatchOf(const SubGraph& calls) const {
    PatternMatch match{{graph_[calls.exit().front()].expr, {}}, calls.inside()};
    calls.inside().ForEach([&](PostDfsIndex node) {
      for (const PostDfsIndex input : graph_[node].inputs) {
        if (graph_[input].expr->As<Constant>()) match.inside.Add(input);
      }
    });
    size_t outside = 0;
    for (const PostDfsIndex input : calls.input()) {
      if (!graph_[input].expr->As<Constant>()) match.match.captures.emplace("outside" + std::to_string(outside++), graph_[input].expr);
    }
    return match;
  }

  const DataflowGraph& graph_;
  const FusionRule& rule_;
  const std::function<void(PatternMatch)>& visit_;
  std::vector<IndexSet> found_;  // sets of calls
  std::unordered_set<IndexSet> seen_;
  std::unordered_set<IndexSet> given_;  // from all first calls: what stands in front may begin a match itself
};

}  // namespace

void ForEachMatch(const DataflowGraph& graph, const PatternRule& rule, const std::function<void(PatternMatch)>& visit) {
  if (!rule.fusion) return ForEachMatch(graph, rule.pattern, visit);
  Growth growth(graph, *rule.fusion, visit);
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (graph[node].op && rule.fusion->begins(graph[node].expr)) growth.From(node);
  }
}

std::string LabelOf(const PatternRule& rule, const DataflowGraph& graph, const IndexSet& inside) {
  if (!rule.fusion) return rule.label;
  std::string label = rule.label;
  bool is_first = true;
  inside.ForEach([&](PostDfsIndex node) {
    if (!graph[node].op) return;
    const std::string& name = graph[node].op->name;
    if (!is_first) label += "_" + (name == "nn.bias_add" ? "bias" : name.starts_with("nn.") ? name.substr(3) : name);
    is_first = false;
  });
  return label;
}

}  // namespace collage
