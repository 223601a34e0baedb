#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "collage/candidate/regions.h"
#include "collage/dataflow/contraction.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

bool IsStructural(const Expr& expr) { return expr->As<Tuple>() || expr->As<TupleGetItem>(); }

/// Tuples and projections that are each other's neighbours: all of them belong to a region or none.
struct Bundle {
  std::vector<PostDfsIndex> members;
  std::vector<PostDfsIndex> neighbours;
};

std::vector<Bundle> FindBundles(const DataflowGraph& graph) {
  std::vector<Bundle> bundles;
  std::vector<bool> seen(graph.size(), false);
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (seen[node] || !IsStructural(graph[node].expr)) continue;
    Bundle bundle{{node}, {}};
    seen[node] = true;
    bool external = false;
    for (size_t i = 0; i < bundle.members.size(); ++i) {
      const DataflowGraph::Node& member = graph[bundle.members[i]];
      external = external || member.external || member.block != graph[node].block;
      for (const auto* list : {&member.inputs, &member.outputs}) {
        for (const PostDfsIndex other : *list) {
          if (!IsStructural(graph[other].expr)) {
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
    }
    do {
      failed_ = joined_ = false;
      std::fill(grown_.begin(), grown_.end(), false);
      for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
        if (owner_[node] != kNobody && !grown_[node]) Grow(node);
      }
      // A region that was joined later may hold what lay between two others.
    } while (failed_ && joined_);
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

  /// What can be joined only after something between is waits until that was; so downstream the nearest comes first, and
  /// upstream too.
  void Grow(PostDfsIndex seed) {
    Reach(contracted_.Members(contracted_.GroupOf(seed)));
    bool progress = true;
    while (progress) {
      progress = false;
      std::vector<Step> waiting;
      while (!down_.empty() || !up_.empty()) {
        const Step step = down_.empty() ? up_.top() : down_.top();
        down_.empty() ? up_.pop() : down_.pop();
        switch (Take(seed, step)) {
          case Outcome::kJoined:
            progress = true;
            break;
          case Outcome::kBlocked:
            waiting.push_back(step);
            break;
          case Outcome::kNothing:
            break;
        }
      }
      joined_ = joined_ || progress;
      if (!progress) failed_ = failed_ || !waiting.empty();
      if (progress) {
        for (const Step& step : waiting) (step.at > seed ? down_.push(step) : up_.push(step));
      }
    }
  }

  enum class Outcome { kJoined, kBlocked, kNothing };

  Outcome Take(PostDfsIndex seed, const Step& step) {
    std::vector<PostDfsIndex> nodes = {step.at};
    if (step.bundle != kNobody) {
      const Bundle& bundle = bundles_[step.bundle];
      if (owner_[bundle.members[0]] != kNobody) return Outcome::kNothing;
      nodes = bundle.neighbours;
      nodes.insert(nodes.end(), bundle.members.begin(), bundle.members.end());
    } else if (contracted_.GroupOf(step.at) == contracted_.GroupOf(seed)) {
      return Outcome::kNothing;
    }
    nodes.push_back(seed);
    std::vector<PostDfsIndex> added;
    for (const PostDfsIndex node : nodes) {
      const size_t group = contracted_.GroupOf(node);
      if (group == contracted_.GroupOf(seed)) continue;
      const std::vector<PostDfsIndex>& members = contracted_.Members(group);
      added.insert(added.end(), members.begin(), members.end());
    }
    if (!contracted_.TryMerge(nodes)) return Outcome::kBlocked;
    if (step.bundle != kNobody) {
      for (const PostDfsIndex member : bundles_[step.bundle].members) owner_[member] = owner_[seed];
    }
    Reach(added);
    return Outcome::kJoined;
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
  std::priority_queue<Step, std::vector<Step>, std::greater<>> down_;
  std::priority_queue<Step> up_;
  bool joined_ = false;
  bool failed_ = false;
};

}  // namespace

std::vector<Region> MergeRegions(const DataflowGraph& graph, const std::vector<Region>& parts, bool take_tuples) {
  Merger merger(graph, take_tuples);
  for (const Region& part : parts) merger.AddPart(part);
  merger.Run();
  return merger.Regions();
}

}  // namespace collage
