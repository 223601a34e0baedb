#include "collage/candidate/combiner.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace collage {
namespace {

struct SubGraphHash {
  size_t operator()(const SubGraph& sub_graph) const { return sub_graph.Hash(); }
};

class Closure {
 public:
  Closure(const DataflowGraph& graph, const std::vector<Combiner>& combiners, const CombineLimits& limits)
      : graph_(graph), combiners_(combiners), limits_(limits) {}

  std::vector<SubGraph> Run(const std::vector<SubGraph>& seeds) {
    for (const SubGraph& seed : seeds) {
      if (seen_.insert(seed).second) pool_.push_back(seed);
    }
    // Everything before `done` has met everything else before it.
    for (size_t done = 0; done < pool_.size(); ++done) {
      for (const PostDfsIndex node : pool_[done].exit()) by_exit_[node].push_back(done);
      for (const PostDfsIndex node : pool_[done].entry()) by_entry_[node].push_back(done);
      for (const Combiner& combiner : combiners_) Apply(combiner, done);
    }
    return std::move(pool_);
  }

 private:
  using Index = std::unordered_map<PostDfsIndex, std::vector<size_t>>;

  static const std::vector<size_t>& Find(const Index& index, PostDfsIndex node) {
    static const std::vector<size_t> kNone;
    const auto at = index.find(node);
    return at == index.end() ? kNone : at->second;
  }

  void Apply(const Combiner& combiner, size_t self) {
    switch (combiner.kind) {
      case Combiner::Kind::kByKind:
      case Combiner::Kind::kAny:
        JoinTouching(combiner, self);
        break;
      case Combiner::Kind::kTupleArgument:
        JoinTupleArguments(self);
        break;
      case Combiner::Kind::kTupleProjection:
        for (const PostDfsIndex output : Copy(pool_[self].output())) {
          if (graph_[output].expr->As<TupleGetItem>()) AddNode(self, output);
        }
        break;
      case Combiner::Kind::kConstant:
        for (const PostDfsIndex input : Copy(pool_[self].input())) {
          if (graph_[input].expr->As<Constant>()) AddNode(self, input);
        }
        break;
    }
  }

  // Adding to the pool moves it, so lists are copied before a loop that adds.
  static std::vector<PostDfsIndex> Copy(const std::vector<PostDfsIndex>& list) { return list; }

  void AddNode(size_t self, PostDfsIndex node) {
    const SubGraph old = pool_[self];
    Offer(old.inside() | IndexSet({node}), old.nested());
  }

  void JoinTouching(const Combiner& combiner, size_t self) {
    const auto try_pair = [&](size_t up, size_t down) {
      const SubGraph& upper = pool_[up];
      const SubGraph& lower = pool_[down];
      if (upper.kind() > combiner.up || lower.kind() > combiner.down) return;
      if (!upper.inside().Intersects(lower.inside())) OfferUnion({up, down});
    };
    for (const PostDfsIndex input : Copy(pool_[self].input())) {
      for (const size_t up : Find(by_exit_, input)) try_pair(up, self);
    }
    for (const PostDfsIndex output : Copy(pool_[self].output())) {
      for (const size_t down : Find(by_entry_, output)) try_pair(self, down);
    }
  }

  void JoinTupleArguments(size_t self) {
    for (const PostDfsIndex input : Copy(pool_[self].input())) {
      if (graph_[input].expr->As<Tuple>()) JoinTuple(input, self, DataflowGraph::kNone);
    }
    for (const PostDfsIndex tuple : Copy(pool_[self].output())) {
      if (!graph_[tuple].expr->As<Tuple>()) continue;
      for (const PostDfsIndex consumer : graph_[tuple].outputs) {
        for (const size_t down : Find(by_entry_, consumer)) JoinTuple(tuple, down, self);
      }
    }
  }

  /// All choices of one producer for every field; with `fixed`, those in which that sub-graph is one of them.
  void JoinTuple(PostDfsIndex tuple, size_t consumer, size_t fixed) {
    if (graph_[tuple].inputs.empty() || pool_[consumer].inside().Contains(tuple)) return;
    std::vector<std::vector<size_t>> choices = {{consumer}};
    for (const PostDfsIndex field : graph_[tuple].inputs) {
      std::vector<std::vector<size_t>> extended;
      for (const std::vector<size_t>& choice : choices) {
        for (const size_t producer : Find(by_exit_, field)) {
          const bool again = std::find(choice.begin(), choice.end(), producer) != choice.end();
          const bool clash = std::any_of(choice.begin(), choice.end(), [&](size_t other) {
            return other != producer && pool_[other].inside().Intersects(pool_[producer].inside());
          });
          if (clash || producer == consumer) continue;
          extended.push_back(choice);
          if (!again) extended.back().push_back(producer);
          if (limits_.max_per_last_node != 0 && extended.size() >= limits_.max_per_last_node) break;
        }
      }
      choices = std::move(extended);
    }
    for (const std::vector<size_t>& choice : choices) {
      if (fixed != DataflowGraph::kNone && std::find(choice.begin(), choice.end(), fixed) == choice.end()) continue;
      OfferUnion(choice, IndexSet({tuple}));
    }
  }

  void OfferUnion(const std::vector<size_t>& parts, IndexSet inside = {}) {
    std::vector<NestedSubGraph> nested;
    for (const size_t part : parts) {
      inside |= pool_[part].inside();
      const std::vector<NestedSubGraph>& inner = pool_[part].nested();
      nested.insert(nested.end(), inner.begin(), inner.end());
    }
    std::sort(nested.begin(), nested.end(),
              [](const NestedSubGraph& a, const NestedSubGraph& b) { return a.sub_graph.inside().First() < b.sub_graph.inside().First(); });
    Offer(std::move(inside), std::move(nested));
  }

  void Offer(IndexSet inside, std::vector<NestedSubGraph> nested) {
    if (nested.empty() && !tried_.insert(inside).second) return;
    const PostDfsIndex last = inside.Last();
    SubGraph joined(graph_, std::move(inside), std::move(nested));
    if (limits_.max_depth != 0 && joined.depth() > limits_.max_depth) return;
    if (limits_.max_operators != 0 && joined.operator_count() > limits_.max_operators) return;
    if (limits_.max_exits != 0 && joined.exit().size() > limits_.max_exits) return;
    if (limits_.max_per_last_node != 0 && count_[last] >= limits_.max_per_last_node) return;
    if (seen_.contains(joined) || !joined.IsInOneBlock(graph_) || !joined.IsConvex(graph_)) return;
    ++count_[last];
    seen_.insert(joined);
    pool_.push_back(std::move(joined));
  }

  const DataflowGraph& graph_;
  const std::vector<Combiner>& combiners_;
  const CombineLimits& limits_;
  std::vector<SubGraph> pool_;
  std::unordered_set<SubGraph, SubGraphHash> seen_;
  std::unordered_set<IndexSet> tried_;
  std::unordered_map<PostDfsIndex, size_t> count_;
  Index by_exit_;
  Index by_entry_;
};

}  // namespace

std::vector<Combiner> NativeCombiners() {
  return {Combiner::ByKind(OpKind::kOutElementwiseFusable, OpKind::kBroadcast), Combiner::ByKind(OpKind::kBroadcast, OpKind::kCommReduce),
          Combiner::ByKind(OpKind::kInjective, OpKind::kInjective), Combiner::TupleArgument(), Combiner::TupleProjection()};
}

std::vector<SubGraph> CombineClosure(const DataflowGraph& graph, const std::vector<SubGraph>& seeds, const std::vector<Combiner>& combiners,
                                     const CombineLimits& limits) {
  return Closure(graph, combiners, limits).Run(seeds);
}

}  // namespace collage
