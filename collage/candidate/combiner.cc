#include "collage/candidate/combiner.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "collage/candidate/number_tables.h"

namespace collage {
namespace {

/// Lists of numbers by node, each in the order in which it grew, all in one array.
class ListsByNode {
 public:
  explicit ListsByNode(size_t nodes) : ends_(nodes) {}

  void Add(PostDfsIndex node, size_t number) {
    const auto added = static_cast<uint32_t>(items_.size());
    items_.push_back({static_cast<uint32_t>(number), kNone});
    if (ends_[node].first == kNone) {
      ends_[node].first = added;
    } else {
      items_[ends_[node].last].next = added;
    }
    ends_[node].last = added;
  }
  /// As long as `visit` answers true.
  template <class Visitor>
  void ForEach(PostDfsIndex node, const Visitor& visit) const {
    for (uint32_t at = ends_[node].first; at != kNone; at = items_[at].next) {
      if (!visit(items_[at].number)) return;
    }
  }
  [[nodiscard]] bool empty() const { return ends_.empty(); }

 private:
  static constexpr auto kNone = static_cast<uint32_t>(-1);
  struct Item {
    uint32_t number;
    uint32_t next;
  };
  struct Ends {
    uint32_t first = kNone;
    uint32_t last = kNone;
  };
  std::vector<Item> items_;
  std::vector<Ends> ends_;
};

/// Sub-graphs are made in the order of their last nodes, and of those with one last node the smallest first. Joining two gives
/// one whose last node is the larger of theirs, so what is being made meets only what is made already, and duplicates are
/// looked for among the few that share the last node.
class Closure {
 public:
  Closure(const DataflowGraph& graph, const std::vector<Combiner>& combiners, const CombineLimits& limits)
      : graph_(graph),
        combiners_(combiners),
        limits_(limits),
        by_exit_(graph.size()),
        by_entry_(graph.size()),
        by_input_(HasSiblings(combiners) ? graph.size() : 0) {}

  void Run(const std::vector<SubGraph>& seeds, const std::function<void(SubGraph)>& visit) {
    ListsByNode seeds_of(graph_.size());
    for (size_t i = 0; i < seeds.size(); ++i) seeds_of.Add(seeds[i].inside().Last(), i);
    for (last_ = 0; last_ < graph_.size(); ++last_) {
      const size_t made_before = pool_.size();
      seeds_of.ForEach(last_, [&](size_t seed) {
        OfferHere({seeds[seed].inside(), {}, seeds[seed]});
        return true;
      });
      MakeAllWithThisLastNode();
      for (size_t i = made_before; i < pool_.size(); ++i) visit(pool_[i]);
    }
  }

 private:
  struct Offered {
    IndexSet inside;
    std::vector<NestedSubGraph> nested;
    std::optional<SubGraph> seed;  // seeds are taken as they are
  };

  static bool HasSiblings(const std::vector<Combiner>& combiners) {
    return std::any_of(combiners.begin(), combiners.end(),
                       [](const Combiner& combiner) { return combiner.kind == Combiner::Kind::kSiblings; });
  }

  void MakeAllWithThisLastNode() {
    if (const auto waiting = waiting_.find(last_); waiting != waiting_.end()) {
      for (Offered& offered : waiting->second) OfferHere(std::move(offered));
      waiting_.erase(waiting);
    }
    for (size_t size = 0; size < by_size_.size(); ++size) {
      for (size_t i = 0; i < by_size_[size].size(); ++i) Make(std::move(by_size_[size][i]));
      by_size_[size].clear();
    }
    tried_.clear();
    tried_tables_.Clear();
    seen_.Clear();
    count_ = 0;
  }

  void OfferHere(Offered offered) {
    size_t size = 0;
    offered.inside.ForEach([&](PostDfsIndex node) { size += graph_[node].op ? 1 : 0; });
    if (!offered.seed && limits_.max_operators != 0 && size > limits_.max_operators) return;
    if (size >= by_size_.size()) by_size_.resize(size + 1);
    by_size_[size].push_back(std::move(offered));
  }

  void Offer(IndexSet inside, std::vector<NestedSubGraph> nested) {
    const PostDfsIndex last = inside.Last();
    if (last != last_) {
      waiting_[last].push_back({std::move(inside), std::move(nested), {}});
      return;
    }
    if (nested.empty()) {
      const auto was_tried = [&](uint32_t number) { return tried_[number] == inside; };
      if (!tried_tables_.Insert(0, inside.Hash(), tried_.size(), was_tried)) return;
      tried_.push_back(inside);
    }
    OfferHere({std::move(inside), std::move(nested), {}});
  }

  void Make(Offered offered) {
    if (!offered.seed && limits_.max_per_last_node != 0 && count_ >= limits_.max_per_last_node) return;
    SubGraph made = offered.seed ? *offered.seed : SubGraph(graph_, std::move(offered.inside), std::move(offered.nested));
    if (!offered.seed) {
      if (limits_.max_depth != 0 && made.depth() > limits_.max_depth) return;
      if (limits_.max_exits != 0 && made.exit().size() > limits_.max_exits) return;
      if (!limits_.keep_invalid && (!made.IsInOneBlock(graph_) || !made.IsConvex(graph_))) return;
    }
    if (!seen_.Insert(0, made.Hash(), pool_.size(), [&](uint32_t number) { return pool_[number] == made; })) return;
    count_ += offered.seed ? 0 : 1;
    const size_t self = pool_.size();
    pool_.push_back(std::move(made));
    for (const PostDfsIndex node : pool_[self].exit()) by_exit_.Add(node, self);
    for (const PostDfsIndex node : pool_[self].entry()) by_entry_.Add(node, self);
    for (const Combiner& combiner : combiners_) Apply(combiner, self);
    if (by_input_.empty()) return;
    for (const PostDfsIndex node : pool_[self].input()) by_input_.Add(node, self);
  }

  void Apply(const Combiner& combiner, size_t self) {
    switch (combiner.kind) {
      case Combiner::Kind::kSiblings:
        JoinSiblings(self);
        break;
      case Combiner::Kind::kByKind:
      case Combiner::Kind::kAny:
        JoinTouching(combiner, self);
        break;
      case Combiner::Kind::kTupleArgument:
        JoinTupleArguments(self);
        break;
      case Combiner::Kind::kTupleProjection:
        for (const PostDfsIndex output : pool_[self].output()) {
          if (graph_[output].Is<TupleGetItem>()) Offer(pool_[self].inside() | IndexSet({output}), NestedOf(self));
        }
        break;
      case Combiner::Kind::kConstant:
        for (const PostDfsIndex input : pool_[self].input()) {
          if (graph_[input].Is<Constant>()) Offer(pool_[self].inside() | IndexSet({input}), NestedOf(self));
        }
        break;
    }
  }

  void JoinTouching(const Combiner& combiner, size_t self) {
    const auto try_pair = [&](size_t up, size_t down) {
      const SubGraph& upper = pool_[up];
      const SubGraph& lower = pool_[down];
      if (upper.kind() > combiner.up || lower.kind() > combiner.down) return true;
      if (!upper.inside().Intersects(lower.inside())) OfferUnion({up, down});
      return true;
    };
    for (const PostDfsIndex input : pool_[self].input()) by_exit_.ForEach(input, [&](size_t up) { return try_pair(up, self); });
    for (const PostDfsIndex output : pool_[self].output()) by_entry_.ForEach(output, [&](size_t down) { return try_pair(self, down); });
  }

  void JoinSiblings(size_t self) {
    for (const PostDfsIndex input : pool_[self].input()) {
      if (graph_[input].Is<Constant>()) continue;
      by_input_.ForEach(input, [&](size_t other) {
        const SubGraph& a = pool_[self];
        const SubGraph& b = pool_[other];
        const bool apart = !a.inside().Intersects(b.inside()) && !a.Touches(b);
        if (apart && SubGraph(graph_, a.inside() | b.inside()).IsConvex(graph_)) OfferUnion({self, other});
        return true;
      });
    }
  }

  void JoinTupleArguments(size_t self) {
    for (const PostDfsIndex input : pool_[self].input()) {
      if (graph_[input].Is<Tuple>()) JoinTuple(input, self, DataflowGraph::kNone);
    }
    for (const PostDfsIndex tuple : pool_[self].output()) {
      if (!graph_[tuple].Is<Tuple>()) continue;
      for (const PostDfsIndex consumer : graph_[tuple].outputs) {
        by_entry_.ForEach(consumer, [&](size_t down) {
          JoinTuple(tuple, down, self);
          return true;
        });
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
        by_exit_.ForEach(field, [&](size_t producer) {
          const bool again = std::find(choice.begin(), choice.end(), producer) != choice.end();
          const bool clash = std::any_of(choice.begin(), choice.end(), [&](size_t other) {
            return other != producer && pool_[other].inside().Intersects(pool_[producer].inside());
          });
          if (clash || producer == consumer) return true;
          extended.push_back(choice);
          if (!again) extended.back().push_back(producer);
          return limits_.max_per_last_node == 0 || extended.size() < limits_.max_per_last_node;
        });
      }
      choices = std::move(extended);
    }
    for (const std::vector<size_t>& choice : choices) {
      if (fixed != DataflowGraph::kNone && std::find(choice.begin(), choice.end(), fixed) == choice.end()) continue;
      OfferUnion(choice, IndexSet({tuple}));
    }
  }

  [[nodiscard]] std::vector<NestedSubGraph> NestedOf(size_t self) const {
    return {pool_[self].nested().begin(), pool_[self].nested().end()};
  }

  void OfferUnion(const std::vector<size_t>& parts, IndexSet inside = {}) {
    size_t operators = 0;
    for (const size_t part : parts) operators += pool_[part].operator_count();
    if (limits_.max_operators != 0 && operators > limits_.max_operators) return;
    std::vector<NestedSubGraph> nested;
    for (const size_t part : parts) {
      inside |= pool_[part].inside();
      const std::span<const NestedSubGraph> inner = pool_[part].nested();
      nested.insert(nested.end(), inner.begin(), inner.end());
    }
    std::sort(nested.begin(), nested.end(),
              [](const NestedSubGraph& a, const NestedSubGraph& b) { return a.sub_graph.inside().First() < b.sub_graph.inside().First(); });
    Offer(std::move(inside), std::move(nested));
  }

  const DataflowGraph& graph_;
  const std::vector<Combiner>& combiners_;
  const CombineLimits& limits_;
  std::vector<SubGraph> pool_;
  std::unordered_map<PostDfsIndex, std::vector<Offered>> waiting_;  // by last node, those that come later
  ListsByNode by_exit_;
  ListsByNode by_entry_;
  ListsByNode by_input_;  // only where siblings are joined
  // Of the last node at hand:
  PostDfsIndex last_ = 0;
  size_t count_ = 0;
  std::vector<std::vector<Offered>> by_size_;
  std::vector<IndexSet> tried_;
  NumberTables tried_tables_;
  NumberTables seen_;  // numbers in the pool
};

}  // namespace

std::vector<Combiner> NativeCombiners() {
  return {Combiner::ByKind(OpKind::kOutElementwiseFusable, OpKind::kBroadcast), Combiner::ByKind(OpKind::kBroadcast, OpKind::kCommReduce),
          Combiner::ByKind(OpKind::kInjective, OpKind::kInjective), Combiner::TupleArgument(), Combiner::TupleProjection()};
}

std::vector<SubGraph> CombineClosure(const DataflowGraph& graph, const std::vector<SubGraph>& seeds, const std::vector<Combiner>& combiners,
                                     const CombineLimits& limits) {
  std::vector<SubGraph> all;
  CombineClosure(graph, seeds, combiners, limits, [&](SubGraph sub_graph) { all.push_back(std::move(sub_graph)); });
  return all;
}

void CombineClosure(const DataflowGraph& graph, const std::vector<SubGraph>& seeds, const std::vector<Combiner>& combiners,
                    const CombineLimits& limits, const std::function<void(SubGraph)>& visit) {
  Closure(graph, combiners, limits).Run(seeds, visit);
}

}  // namespace collage
