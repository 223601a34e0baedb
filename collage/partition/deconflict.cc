#include <algorithm>

#include "collage/dataflow/contraction.h"
#include "collage/partition/classic_flow.h"

namespace collage {
namespace {

bool InDefaultOrder(const SupportedRegion& a, const SupportedRegion& b) {
  if (a.backend != b.backend) return a.backend < b.backend;
  const size_t count_a = a.nodes.Count();
  const size_t count_b = b.nodes.Count();
  return count_a != count_b ? count_a > count_b : a.nodes < b.nodes;
}

}  // namespace

std::vector<SupportedRegion> Deconflict(const DataflowGraph& graph, std::vector<SupportedRegion> supported, size_t native,
                                        const PreferRegion& prefer) {
  std::stable_sort(supported.begin(), supported.end(), prefer ? prefer : InDefaultOrder);
  ContractedGraph contracted(graph);
  std::vector<bool> taken(graph.size(), false);
  std::vector<SupportedRegion> assigned;
  for (SupportedRegion& region : supported) {
    const std::vector<PostDfsIndex> members = region.nodes.ToVector();
    if (std::any_of(members.begin(), members.end(), [&](PostDfsIndex node) { return taken[node]; })) continue;
    // What is native stays in place, so it is contracted only as far as a library's operator is.
    if (members.size() > 1 && !contracted.TryMerge(members)) continue;
    for (const PostDfsIndex node : members) taken[node] = true;
    assigned.push_back(std::move(region));
  }
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (graph[node].expr->As<Call>() && !taken[node]) assigned.push_back({native, IndexSet({node}), {}});
  }
  std::sort(assigned.begin(), assigned.end(),
            [](const SupportedRegion& a, const SupportedRegion& b) { return a.nodes.First() < b.nodes.First(); });
  return assigned;
}

PreferRegion PreferInOrder(const std::vector<std::string>& priority, const std::vector<NamedRules>& backends) {
  std::vector<size_t> rank;
  const auto rank_of = [&](const std::string& name, size_t otherwise) {
    const auto at = std::find(priority.begin(), priority.end(), name);
    return at == priority.end() ? otherwise : static_cast<size_t>(at - priority.begin());
  };
  for (size_t i = 0; i < backends.size(); ++i) rank.push_back(rank_of(backends[i].name, priority.size() + i));
  rank.push_back(rank_of("native", priority.size() + backends.size()));
  return [rank = std::move(rank)](const SupportedRegion& a, const SupportedRegion& b) {
    if (a.backend != b.backend) return rank[a.backend] < rank[b.backend];
    return InDefaultOrder(a, b);
  };
}

}  // namespace collage
