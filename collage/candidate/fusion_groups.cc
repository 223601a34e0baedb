#include <algorithm>
#include <map>
#include <unordered_set>

#include "collage/candidate/regions.h"

namespace collage {
namespace {

/// One run of the fusion pass. A group is known by its root; its kind is the largest kind inside, tuples aside.
class Fusion {
 public:
  Fusion(const DataflowGraph& graph, const std::vector<bool>& accepted, size_t max_operators, bool fuse_anchors)
      : graph_(graph), max_operators_(max_operators), fuse_anchors_(fuse_anchors), groups_(graph.size()) {
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      const Expr& expr = graph[node].expr;
      Group& group = groups_[node];
      group.parent = node;
      if (CalledOp(expr)) {
        group.kind = accepted[node] ? CalledOp(expr)->kind : OpKind::kOpaque;
        group.operators = 1;
      } else if (expr->As<Tuple>()) {
        group.kind = OpKind::kTuple;
      } else {
        group.kind = expr->As<TupleGetItem>() ? OpKind::kInjective : OpKind::kOpaque;
      }
      group.may_join = group.kind != OpKind::kOpaque;
    }
  }

  std::vector<IndexSet> Run() {
    // Anchors take their pointwise tails first, then chains of data movement form, then what feeds a fused tuple joins it.
    for (int phase = 0; phase < 3; ++phase) {
      for (PostDfsIndex node = 0; node < graph_.size(); ++node) Visit(node, phase);
    }
    std::map<PostDfsIndex, IndexSet> by_root;
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (groups_[Root(node)].operators > 0 && groups_[node].may_join) by_root[Root(node)].Add(node);
    }
    std::vector<IndexSet> groups;
    for (auto& [root, nodes] : by_root) groups.push_back(std::move(nodes));
    std::sort(groups.begin(), groups.end());
    return groups;
  }

 private:
  struct Group {
    PostDfsIndex parent = 0;
    OpKind kind = OpKind::kOpaque;
    size_t operators = 0;
    bool may_join = false;  // of the node itself, unlike the rest
  };

  PostDfsIndex Root(PostDfsIndex node) {
    while (groups_[node].parent != node) node = groups_[node].parent = groups_[groups_[node].parent].parent;
    return node;
  }

  void Visit(PostDfsIndex node, int phase) {
    const OpKind kind = groups_[Root(node)].kind;
    const PostDfsIndex sink = graph_[node].dominator_parent;
    if (kind == OpKind::kOpaque || sink == DataflowGraph::kNone || Root(node) == Root(sink)) return;
    if (graph_[node].block != graph_[sink].block) return;
    const OpKind sink_kind = groups_[Root(sink)].kind;
    if (phase == 2) {
      const bool into_tuple = graph_[sink].expr->As<Tuple>() && Root(sink) != sink;
      if (kind <= OpKind::kInjective && into_tuple && sink_kind <= OpKind::kInjective) {
        FuseIf(node, sink, OpKind::kInjective, OpKind::kInjective);
      }
    } else if (graph_[sink].expr->As<Tuple>()) {
      return;
    } else if (kind == OpKind::kOutElementwiseFusable) {
      if (phase == 0 && fuse_anchors_) FuseIf(node, sink, OpKind::kBroadcast, OpKind::kBroadcast);
    } else if (kind <= OpKind::kBroadcast) {
      FuseIf(node, sink, OpKind::kInjective, OpKind::kCommReduce);
    } else if (kind == OpKind::kInjective || kind == OpKind::kTuple) {
      if (phase == 1) FuseIf(node, sink, OpKind::kInjective, OpKind::kInjective);
    }
  }

  /// Fuses all that lies between when no group on the way exceeds `between` and the last does not exceed `at_sink`.
  void FuseIf(PostDfsIndex node, PostDfsIndex sink, OpKind between, OpKind at_sink) {
    std::vector<PostDfsIndex> path;
    std::unordered_set<PostDfsIndex> seen = {node};
    std::vector<PostDfsIndex> stack = {node};
    while (!stack.empty()) {
      const PostDfsIndex at = stack.back();
      stack.pop_back();
      path.push_back(at);
      for (const PostDfsIndex next : graph_[at].outputs) {
        if (!seen.insert(next).second) continue;
        const OpKind kind = groups_[Root(next)].kind;
        if (kind > (next == sink ? at_sink : between) || graph_[next].block != graph_[node].block) return;
        if (next != sink) stack.push_back(next);
      }
    }
    size_t operators = groups_[Root(sink)].operators;
    std::unordered_set<PostDfsIndex> counted = {Root(sink)};
    for (const PostDfsIndex member : path) {
      if (counted.insert(Root(member)).second) operators += groups_[Root(member)].operators;
    }
    if (operators > max_operators_) return;
    for (const PostDfsIndex member : path) Join(member, sink);
  }

  void Join(PostDfsIndex node, PostDfsIndex sink) {
    const PostDfsIndex from = Root(node);
    const PostDfsIndex into = Root(sink);
    if (from == into) return;
    groups_[from].parent = into;
    groups_[into].operators += groups_[from].operators;
    if (groups_[from].kind != OpKind::kTuple) groups_[into].kind = std::max(groups_[into].kind, groups_[from].kind);
  }

  const DataflowGraph& graph_;
  const size_t max_operators_;
  const bool fuse_anchors_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<IndexSet> FusionGroups(const DataflowGraph& graph, const std::vector<bool>& accepted, size_t max_operators, bool fuse_anchors) {
  return Fusion(graph, accepted, max_operators, fuse_anchors).Run();
}

}  // namespace collage
