#include "collage/partition/cover.h"

#include "collage/dataflow/contraction.h"

namespace collage {

Cover JoinAdjacent(const DataflowGraph& graph, Cover cover, const MayJoin& may_join) {
  constexpr size_t kNobody = static_cast<size_t>(-1);
  ContractedGraph contracted(graph);
  std::vector<size_t> holder(graph.size(), kNobody);
  std::vector<bool> gone(cover.size(), false);
  for (size_t i = 0; i < cover.size(); ++i) {
    if (cover[i].candidate.spec->is_host) continue;
    const IndexSet& inside = cover[i].candidate.sub_graph.inside();
    contracted.TryMerge(inside.ToVector());
    inside.ForEach([&](PostDfsIndex node) { holder[node] = i; });
  }
  const auto join = [&](size_t first, size_t second) {
    const CandidatePartition& a = cover[first].candidate;
    const CandidatePartition& b = cover[second].candidate;
    if (!IsForTheSame(*a.spec, *b.spec) || graph[a.sub_graph.inside().First()].block != graph[b.sub_graph.inside().First()].block) return;
    const std::vector<PostDfsIndex> ends = {a.sub_graph.inside().First(), b.sub_graph.inside().First()};
    if (!contracted.Between(ends).empty()) return;
    std::vector<NestedSubGraph> inner;
    for (const CandidatePartition* part : {&a, &b}) {
      if (part->sub_graph.nested().size() != 1) return;
      const std::span<const NestedSubGraph> nested = part->sub_graph.nested().front().sub_graph.nested();
      inner.insert(inner.end(), nested.begin(), nested.end());
    }
    const SubGraph flat(graph, a.sub_graph.inside() | b.sub_graph.inside(), std::move(inner));
    const CandidatePartition joined{flat.WithAttributes(graph, a.sub_graph.nested().front().attributes), a.spec};
    if (!may_join(joined, a, b)) return;
    if (!contracted.TryMerge(ends)) return;
    b.sub_graph.inside().ForEach([&](PostDfsIndex node) { holder[node] = first; });
    cover[first] = {joined, {}};
    gone[second] = true;
  };
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    for (const PostDfsIndex input : graph[node].inputs) {
      if (holder[node] == kNobody || holder[input] == kNobody || holder[node] == holder[input]) continue;
      join(holder[input], holder[node]);
    }
  }
  Cover left;
  for (size_t i = 0; i < cover.size(); ++i) {
    if (!gone[i]) left.push_back(std::move(cover[i]));
  }
  return left;
}

}  // namespace collage
