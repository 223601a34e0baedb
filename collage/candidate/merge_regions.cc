#include <algorithm>
#include <map>
#include <unordered_map>

#include "collage/candidate/regions.h"
#include "collage/dataflow/contraction.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

bool IsStructural(const Expr& expr) { return expr->As<Tuple>() || expr->As<TupleGetItem>(); }

class Merger {
 public:
  Merger(const DataflowGraph& graph, bool take_tuples)
      : graph_(graph), take_tuples_(take_tuples), contracted_(graph), owner_(graph.size(), kNobody) {}

  void AddPart(const Region& part) {
    if (!contracted_.TryMerge(part.nodes.ToVector())) return;
    part.nodes.ForEach([&](PostDfsIndex node) { owner_[node] = part.owner; });
  }

  void Run() {
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (owner_[node] == kNobody) continue;
      for (const PostDfsIndex input : graph_[node].inputs) {
        if (Fits(input, node)) contracted_.TryMerge({input, node});
      }
      if (!take_tuples_) continue;
      for (const PostDfsIndex input : graph_[node].inputs) JoinStructural(input, node);
      for (const PostDfsIndex output : graph_[node].outputs) JoinStructural(output, node);
    }
  }

  std::vector<Region> Regions() const {
    std::map<PostDfsIndex, Region> by_first;
    std::unordered_map<size_t, PostDfsIndex> first_of;
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (owner_[node] == kNobody) continue;
      const PostDfsIndex first = first_of.emplace(contracted_.GroupOf(node), node).first->second;
      Region& region = by_first[first];
      region.owner = owner_[node];
      region.nodes.Add(node);
    }
    std::vector<Region> regions;
    for (auto& [first, region] : by_first) regions.push_back(std::move(region));
    return regions;
  }

 private:
  [[nodiscard]] bool Fits(PostDfsIndex a, PostDfsIndex b) const {
    return owner_[a] != kNobody && owner_[a] == owner_[b] && graph_[a].block == graph_[b].block;
  }

  /// Takes a tuple or projection once `last`, the last of its neighbours, has been looked at.
  void JoinStructural(PostDfsIndex node, PostDfsIndex last) {
    if (owner_[node] != kNobody || !IsStructural(graph_[node].expr) || graph_[node].external) return;
    std::vector<PostDfsIndex> all = graph_[node].inputs;
    all.insert(all.end(), graph_[node].outputs.begin(), graph_[node].outputs.end());
    if (all.empty() || *std::max_element(all.begin(), all.end()) != last) return;
    const bool fits = std::all_of(all.begin(), all.end(), [&](PostDfsIndex other) { return Fits(other, last); }) &&
                      graph_[node].block == graph_[last].block;
    all.push_back(node);
    if (fits && contracted_.TryMerge(all)) owner_[node] = owner_[last];
  }

  const DataflowGraph& graph_;
  const bool take_tuples_;
  ContractedGraph contracted_;
  std::vector<size_t> owner_;
};

}  // namespace

std::vector<Region> MergeRegions(const DataflowGraph& graph, const std::vector<Region>& parts, bool take_tuples) {
  Merger merger(graph, take_tuples);
  for (const Region& part : parts) merger.AddPart(part);
  merger.Run();
  return merger.Regions();
}

}  // namespace collage
