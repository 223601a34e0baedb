#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "collage/candidate/regions.h"
#include "collage/dataflow/contraction.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

bool IsStructural(const DataflowGraph::Node& node) { return node.Is<Tuple>() || node.Is<TupleGetItem>(); }

/// Tuples and projections that are each other's neighbours: all of them belong to a region or none.
struct Bundle {
  std::vector<PostDfsIndex> members;
  std::vector<PostDfsIndex> neighbours;
};

std::vector<Bundle> FindBundles(const DataflowGraph& graph) {
  std::vector<Bundle> bundles;
  std::vector<bool> seen(graph.size(), false);
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (seen[node] || !IsStructural(graph[node])) continue;
    Bundle bundle{{node}, {}};
    seen[node] = true;
    bool external = false;
    for (size_t i = 0; i < bundle.members.size(); ++i) {
      const DataflowGraph::Node& member = graph[bundle.members[i]];
      external = external || member.external || member.block != graph[node].block;
      for (const auto* list : {&member.inputs, &member.outputs}) {
        for (const PostDfsIndex other : *list) {
          if (!IsStructural(graph[other])) {
            bundle.neighbours.push_back(other);
          } else if (!seen[other]) {
            seen[other] = true;
            bundle.members.push_back(other);
          }
        }
      }
    }
    if (external || bundle.neighbours.empty()) continue;
    std::sort(bundle.neighbours.begin(), bundle.neighbours.end());
    bundles.push_back(std::move(bundle));
  }
  return bundles;
}

class Merger {
 public:
  Merger(const DataflowGraph& graph, bool take_tuples)
      : graph_(graph), contracted_(graph), owner_(graph.size(), kNobody), grown_(graph.size(), false) {
    if (take_tuples) bundles_ = FindBundles(graph);
  }

  void AddPart(const Region& part) {
    if (!contracted_.TryMerge(part.nodes.ToVector())) return;
    part.nodes.ForEach([&](PostDfsIndex node) { owner_[node] = part.owner; });
  }

  /// Regions grow one after another, that of the earliest node first, each as far as it can: so of two ways to share out the
  /// parts the earlier region has the say.
  void Run() {
    for (size_t i = 0; i < bundles_.size(); ++i) {
      if (!MayJoin(bundles_[i])) continue;
      for (const PostDfsIndex node : bundles_[i].neighbours) bundles_of_[node].push_back(i);
      for (const PostDfsIndex node : bundles_[i].members) bundle_of_member_[node] = i;
    }
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (owner_[node] != kNobody && !grown_[node]) Grow(node);
    }
  }

  std::vector<Region> Regions() const {
    std::unordered_map<size_t, size_t> position_of_group;
    std::vector<Region> regions;
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (owner_[node] == kNobody) continue;
      const auto [position, is_new] = position_of_group.emplace(contracted_.GroupOf(node), regions.size());
      if (is_new) regions.push_back({owner_[node], {}});
      regions[position->second].nodes.Add(node);
    }
    return regions;
  }

 private:
  /// A way to grow: a neighbouring part, or a bundle by the last of its neighbours.
  struct Step {
    PostDfsIndex at;
    size_t bundle;  // kNobody: the part that holds `at`
    friend bool operator<(const Step& a, const Step& b) { return a.at != b.at ? a.at < b.at : a.bundle < b.bundle; }
    friend bool operator>(const Step& a, const Step& b) { return b < a; }
  };

  [[nodiscard]] bool Fits(PostDfsIndex a, PostDfsIndex b) const {
    return owner_[a] != kNobody && owner_[a] == owner_[b] && graph_[a].block == graph_[b].block;
  }

  /// Whether all neighbours could be in one region and no member is in a part already.
  [[nodiscard]] bool MayJoin(const Bundle& bundle) const {
    return std::all_of(bundle.neighbours.begin(), bundle.neighbours.end(),
                       [&](PostDfsIndex other) {
                         return Fits(other, bundle.neighbours[0]) && graph_[other].block == graph_[bundle.members[0]].block;
                       }) &&
           std::all_of(bundle.members.begin(), bundle.members.end(), [&](PostDfsIndex member) { return owner_[member] == kNobody; });
  }

  /// Downstream the nearest comes first, and upstream too. What cannot be joined now never can: a region only gets larger, and
  /// what lies between and may not be joined stays there.
  void Grow(PostDfsIndex seed) {
    refused_.clear();
    Reach(contracted_.Members(contracted_.GroupOf(seed)));
    while (!down_.empty() || !up_.empty()) {
      const Step step = down_.empty() ? up_.top() : down_.top();
      down_.empty() ? up_.pop() : down_.pop();
      if (!IsDone(seed, step) && !Join(seed, step)) refused_.insert(Key(step));
    }
  }

  /// Of what a step would join.
  [[nodiscard]] std::pair<size_t, size_t> Key(const Step& step) const {
    return step.bundle == kNobody ? std::pair(kNobody, contracted_.GroupOf(step.at)) : std::pair(step.bundle, kNobody);
  }

  [[nodiscard]] bool IsDone(PostDfsIndex seed, const Step& step) const {
    if (refused_.contains(Key(step))) return true;
    if (step.bundle != kNobody) return owner_[bundles_[step.bundle].members[0]] != kNobody;
    return contracted_.GroupOf(step.at) == contracted_.GroupOf(seed);
  }

  /// What a step joins.
  struct Together {
    std::vector<PostDfsIndex> nodes;
    std::vector<size_t> bundles;
  };

  void Add(size_t bundle, Together& together) const {
    const Bundle& added = bundles_[bundle];
    together.nodes.insert(together.nodes.end(), added.neighbours.begin(), added.neighbours.end());
    together.nodes.insert(together.nodes.end(), added.members.begin(), added.members.end());
    together.bundles.push_back(bundle);
  }

  /// Adds the parts and bundles that lie between, without which the nodes cannot be one region. False when something there may not be
  /// in it. (Two bundles that lie between each other's neighbours can only be joined at once.)
  bool AddBetween(PostDfsIndex seed, Together& together) {
    const std::vector<size_t> between = contracted_.Between(together.nodes);
    for (const size_t group : between) {
      const PostDfsIndex member = contracted_.Members(group)[0];
      if (owner_[member] != kNobody) {
        if (!Fits(member, seed)) return false;
        together.nodes.push_back(member);
        continue;
      }
      const auto bundle = bundle_of_member_.find(member);
      if (bundle == bundle_of_member_.end() || !Fits(bundles_[bundle->second].neighbours[0], seed)) return false;
      Add(bundle->second, together);
    }
    return !between.empty();
  }

  /// Joins a step, and whatever lies between it and the region, unless that closes a cycle.
  bool Join(PostDfsIndex seed, const Step& step) {
    Together together{{seed}, {}};
    if (step.bundle == kNobody) {
      together.nodes.push_back(step.at);
    } else {
      Add(step.bundle, together);
    }
    std::vector<PostDfsIndex> added = MembersBeside(seed, together.nodes);
    while (!contracted_.TryMerge(together.nodes)) {
      if (!AddBetween(seed, together)) return false;
      added = MembersBeside(seed, together.nodes);
    }
    for (const size_t bundle : together.bundles) {
      for (const PostDfsIndex member : bundles_[bundle].members) owner_[member] = owner_[seed];
    }
    Reach(added);
    return true;
  }

  /// All members of the groups of these nodes but those of the seed's own.
  [[nodiscard]] std::vector<PostDfsIndex> MembersBeside(PostDfsIndex seed, const std::vector<PostDfsIndex>& nodes) const {
    std::set<size_t> groups;
    for (const PostDfsIndex node : nodes) groups.insert(contracted_.GroupOf(node));
    groups.erase(contracted_.GroupOf(seed));
    std::vector<PostDfsIndex> members;
    for (const size_t group : groups) {
      const std::vector<PostDfsIndex>& more = contracted_.Members(group);
      members.insert(members.end(), more.begin(), more.end());
    }
    return members;
  }

  /// Members are new in the region that grows: notes where it can go from there.
  void Reach(const std::vector<PostDfsIndex>& members) {
    for (const PostDfsIndex node : members) {
      grown_[node] = true;
      for (const PostDfsIndex output : graph_[node].outputs) {
        if (Fits(output, node)) down_.push({output, kNobody});
      }
      for (const PostDfsIndex input : graph_[node].inputs) {
        if (Fits(input, node)) up_.push({input, kNobody});
      }
      const auto bundles = bundles_of_.find(node);
      if (bundles == bundles_of_.end()) continue;
      for (const size_t bundle : bundles->second) down_.push({bundles_[bundle].neighbours.back(), bundle});
    }
  }

  const DataflowGraph& graph_;
  ContractedGraph contracted_;
  std::vector<size_t> owner_;
  std::vector<bool> grown_;  // in the region of an earlier seed
  std::vector<Bundle> bundles_;
  std::unordered_map<PostDfsIndex, std::vector<size_t>> bundles_of_;  // by neighbour
  std::unordered_map<PostDfsIndex, size_t> bundle_of_member_;
  std::set<std::pair<size_t, size_t>> refused_;  // by the region that grows
  std::priority_queue<Step, std::vector<Step>, std::greater<>> down_;
  std::priority_queue<Step> up_;
};

}  // namespace

std::vector<Region> MergeRegions(const DataflowGraph& graph, const std::vector<Region>& parts, bool take_tuples) {
  Merger merger(graph, take_tuples);
  for (const Region& part : parts) merger.AddPart(part);
  merger.Run();
  return merger.Regions();
}

}  // namespace collage
