#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "collage/candidate/regions.h"

namespace collage {
namespace {

/// What the consumer of a value means for fusion.
OpKind EdgeKind(const DataflowGraph::Node& producer, const DataflowGraph::Node& consumer, OpKind consumer_kind) {
  if (consumer.Is<Tuple>()) return producer.expr->type().AsTensor() ? OpKind::kInjective : OpKind::kOpaque;
  if (consumer.Is<TupleGetItem>()) {
    const std::vector<Type>& fields = producer.expr->type().AsTuple()->fields;
    const bool flat = std::all_of(fields.begin(), fields.end(), [](const Type& field) { return field.AsTensor() != nullptr; });
    return flat ? OpKind::kInjective : OpKind::kOpaque;
  }
  if (consumer_kind != OpKind::kBroadcast) return consumer_kind;
  // An operand as large as the result is read element by element.
  const TensorType* from = producer.expr->type().AsTensor();
  const TensorType* to = consumer.expr->type().AsTensor();
  return from && to && from->shape == to->shape ? OpKind::kElementwise : OpKind::kBroadcast;
}

/// The kinds of all edges. Expressions lie scattered in memory, and the pass asks about an edge again and again: they are looked at once.
class EdgeKinds {
 public:
  EdgeKinds(const DataflowGraph& graph, const std::vector<bool>& accepted) : own_kinds_(graph.size()), begin_(graph.size()) {
    for (PostDfsIndex node = 0; node < graph.size(); ++node) own_kinds_[node] = OwnKind(graph[node], accepted[node]);
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      begin_[node] = static_cast<uint32_t>(kinds_.size());
      if (own_kinds_[node] == OpKind::kOpaque) continue;  // it is never fused
      for (const PostDfsIndex next : graph[node].outputs) kinds_.push_back(EdgeKind(graph[node], graph[next], own_kinds_[next]));
    }
  }

  [[nodiscard]] OpKind Of(PostDfsIndex node) const { return own_kinds_[node]; }
  /// Of the edge from a node, which is not opaque, to its output at this position.
  [[nodiscard]] OpKind Of(PostDfsIndex node, size_t output) const { return kinds_[begin_[node] + output]; }

 private:
  static OpKind OwnKind(const DataflowGraph::Node& node, bool accepted) {
    if (node.op) return accepted ? node.kind : OpKind::kOpaque;
    if (node.Is<Tuple>()) return OpKind::kTuple;
    return node.Is<TupleGetItem>() ? OpKind::kInjective : OpKind::kOpaque;
  }

  std::vector<OpKind> own_kinds_;
  std::vector<uint32_t> begin_;
  std::vector<OpKind> kinds_;
};

/// One run of the fusion pass. A group is known by its root, the node through which all that it computes leaves it.
class Fusion {
 public:
  Fusion(const DataflowGraph& graph, const EdgeKinds& kinds, size_t max_operators, bool fuse_anchors)
      : graph_(graph),
        kinds_(kinds),
        max_operators_(max_operators),
        fuse_anchors_(fuse_anchors),
        groups_(graph.size()),
        seen_in_(graph.size(), 0),
        counted_in_(graph.size(), 0) {
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      groups_[node] = {static_cast<uint32_t>(node), graph[node].op ? 1u : 0u, kinds.Of(node)};
    }
  }

  std::vector<IndexSet> Run() {
    // Anchors take their pointwise tails first, then chains of data movement form, then what feeds a fused tuple joins it.
    for (int phase = 0; phase < 3; ++phase) {
      for (PostDfsIndex node = 0; node < graph_.size(); ++node) Visit(node, phase);
    }
    // By first node, which for disjoint sets is their order.
    constexpr uint32_t kNone = static_cast<uint32_t>(-1);
    std::vector<uint32_t> position_of_root(graph_.size(), kNone);
    std::vector<IndexSet> groups;
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      const PostDfsIndex root = Root(node);
      if (groups_[root].operators == 0 || kinds_.Of(node) == OpKind::kOpaque) continue;
      if (position_of_root[root] == kNone) {
        position_of_root[root] = static_cast<uint32_t>(groups.size());
        groups.emplace_back();
      }
      groups[position_of_root[root]].Add(node);
    }
    return groups;
  }

 private:
  struct Group {
    uint32_t parent = 0;
    uint32_t operators = 0;
    /// Of the root, raised by the anchor that joins; what else joins does not count, since all of it is computed on the way.
    OpKind kind = OpKind::kOpaque;
  };

  PostDfsIndex Root(PostDfsIndex node) {
    while (groups_[node].parent != node) node = groups_[node].parent = groups_[groups_[node].parent].parent;
    return node;
  }

  void Visit(PostDfsIndex node, int phase) {
    const OpKind kind = groups_[node].kind;
    const PostDfsIndex sink = graph_[node].dominator_parent;
    if (kind == OpKind::kOpaque || sink == DataflowGraph::kNone || Root(node) == Root(sink)) return;
    const bool into_tuple = kinds_.Of(sink) == OpKind::kTuple;
    if (phase == 2) {
      const bool moves_on = Root(sink) != sink && groups_[Root(sink)].kind <= OpKind::kInjective;
      if (kind <= OpKind::kInjective && into_tuple && moves_on) FuseIf(node, sink, kMoving);
    } else if (into_tuple) {
      return;
    } else if (kind == OpKind::kOutElementwiseFusable) {
      if (phase == 0 && fuse_anchors_) FuseIf(node, sink, {OpKind::kBroadcast, OpKind::kBroadcast, OpKind::kElementwise});
    } else if (kind <= OpKind::kBroadcast) {
      // The last node may have an anchor in its group: what feeds it from beside then joins that group.
      FuseIf(node, sink, {OpKind::kInjective, OpKind::kOutElementwiseFusable, OpKind::kCommReduce});
    } else if (kind == OpKind::kInjective || kind == OpKind::kTuple) {
      if (phase == 1) FuseIf(node, sink, kMoving);
    }
  }

  /// The largest kinds that are allowed: of groups on the way, of the last one's group, of the edges.
  struct Limits {
    OpKind between;
    OpKind at_sink;
    OpKind edges;
  };
  static constexpr Limits kMoving = {OpKind::kInjective, OpKind::kInjective, OpKind::kOpaque};

  /// Fuses all that lies between a node and its dominator when the limits hold.
  void FuseIf(PostDfsIndex node, PostDfsIndex sink, const Limits& limits) {
    ++tries_;
    path_.clear();
    stack_.assign(1, node);
    seen_in_[node] = counted_in_[Root(sink)] = tries_;
    size_t operators = groups_[Root(sink)].operators;
    while (!stack_.empty()) {
      const PostDfsIndex at = stack_.back();
      stack_.pop_back();
      path_.push_back(at);
      if (std::exchange(counted_in_[Root(at)], tries_) != tries_) operators += groups_[Root(at)].operators;
      if (operators > max_operators_) return;
      const NodeIndices& outputs = graph_[at].outputs;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const PostDfsIndex next = outputs[i];
        if (kinds_.Of(at, i) > limits.edges) return;
        if (std::exchange(seen_in_[next], tries_) == tries_) continue;
        const OpKind kind = groups_[Root(next)].kind;
        if (kind > (next == sink ? limits.at_sink : limits.between) || graph_[next].block != graph_[node].block) return;
        if (next != sink) stack_.push_back(next);
      }
    }
    for (const PostDfsIndex member : path_) Join(member, sink);
  }

  void Join(PostDfsIndex node, PostDfsIndex sink) {
    const PostDfsIndex from = Root(node);
    const PostDfsIndex into = Root(sink);
    if (from == into) return;
    groups_[from].parent = static_cast<uint32_t>(into);
    groups_[into].operators += groups_[from].operators;
    if (groups_[from].kind == OpKind::kOutElementwiseFusable) groups_[into].kind = std::max(groups_[into].kind, groups_[from].kind);
  }

  const DataflowGraph& graph_;
  const EdgeKinds& kinds_;
  const size_t max_operators_;
  const bool fuse_anchors_;
  std::vector<Group> groups_;
  // Of the try at hand; a node was met in it where its number is noted.
  uint32_t tries_ = 0;
  std::vector<uint32_t> seen_in_;
  std::vector<uint32_t> counted_in_;
  std::vector<PostDfsIndex> path_;
  std::vector<PostDfsIndex> stack_;
};

}  // namespace

std::vector<IndexSet> FusionGroups(const DataflowGraph& graph, const std::vector<bool>& accepted, size_t max_operators) {
  return Fusion(graph, EdgeKinds(graph, accepted), max_operators, true).Run();
}

std::vector<IndexSet> FusionGroupsWithAndWithoutAnchors(const DataflowGraph& graph, const std::vector<bool>& accepted,
                                                        size_t max_operators) {
  const EdgeKinds kinds(graph, accepted);
  const std::vector<IndexSet> groups = Fusion(graph, kinds, max_operators, true).Run();
  const std::vector<IndexSet> around = Fusion(graph, kinds, max_operators, false).Run();
  std::vector<IndexSet> all;
  std::set_union(groups.begin(), groups.end(), around.begin(), around.end(), std::back_inserter(all));
  return all;
}

}  // namespace collage
