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
  Merger(const DataflowGraph& graph, bool take_tuples) : graph_(graph), contracted_(graph), owner_(graph.size(), kNobody) {
    if (take_tuples) FindBundles();
  }

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
      const auto bundles = bundles_.find(node);
      if (bundles == bundles_.end()) continue;
      for (const Bundle& bundle : bundles->second) JoinBundle(bundle, node);
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

  /// Tuples and projections that are each other's neighbours: all of them belong to a region or none.
  struct Bundle {
    std::vector<PostDfsIndex> members;
    std::vector<PostDfsIndex> neighbours;
  };

  void FindBundles() {
    std::vector<bool> seen(graph_.size(), false);
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (seen[node] || !IsStructural(graph_[node].expr)) continue;
      Bundle bundle{{node}, {}};
      seen[node] = true;
      bool external = false;
      for (size_t i = 0; i < bundle.members.size(); ++i) {
        const DataflowGraph::Node& member = graph_[bundle.members[i]];
        external = external || member.external || member.block != graph_[node].block;
        for (const auto* list : {&member.inputs, &member.outputs}) {
          for (const PostDfsIndex other : *list) {
            if (!IsStructural(graph_[other].expr)) {
              bundle.neighbours.push_back(other);
            } else if (!seen[other]) {
              seen[other] = true;
              bundle.members.push_back(other);
            }
          }
        }
      }
      if (external || bundle.neighbours.empty()) continue;
      const PostDfsIndex last = *std::max_element(bundle.neighbours.begin(), bundle.neighbours.end());
      bundles_[last].push_back(std::move(bundle));
    }
  }

  /// Takes a bundle; `last`, the last of its neighbours, is being looked at.
  void JoinBundle(const Bundle& bundle, PostDfsIndex last) {
    const bool fits =
        graph_[bundle.members[0]].block == graph_[last].block &&
        std::all_of(bundle.neighbours.begin(), bundle.neighbours.end(), [&](PostDfsIndex other) { return Fits(other, last); });
    std::vector<PostDfsIndex> all = bundle.neighbours;
    all.insert(all.end(), bundle.members.begin(), bundle.members.end());
    if (!fits || !contracted_.TryMerge(all)) return;
    for (const PostDfsIndex member : bundle.members) owner_[member] = owner_[last];
  }

  const DataflowGraph& graph_;
  ContractedGraph contracted_;
  std::vector<size_t> owner_;
  std::unordered_map<PostDfsIndex, std::vector<Bundle>> bundles_;  // by last neighbour
};

}  // namespace

std::vector<Region> MergeRegions(const DataflowGraph& graph, const std::vector<Region>& parts, bool take_tuples) {
  Merger merger(graph, take_tuples);
  for (const Region& part : parts) merger.AddPart(part);
  merger.Run();
  return merger.Regions();
}

}  // namespace collage
