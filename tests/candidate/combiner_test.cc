#include "collage/candidate/combiner.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

std::vector<PostDfsIndex> Calls(const DataflowGraph& graph) {
  std::vector<PostDfsIndex> calls;
  for (PostDfsIndex i = 0; i < graph.size(); ++i) {
    if (CalledOp(graph[i].expr)) calls.push_back(i);
  }
  return calls;
}

std::vector<SubGraph> Singles(const DataflowGraph& graph) {
  std::vector<SubGraph> singles;
  for (const PostDfsIndex call : Calls(graph)) singles.emplace_back(graph, IndexSet({call}));
  return singles;
}

std::set<std::vector<size_t>> Insides(const std::vector<SubGraph>& sub_graphs) {
  std::set<std::vector<size_t>> sets;
  for (const SubGraph& sub_graph : sub_graphs) EXPECT_TRUE(sets.insert(sub_graph.inside().ToVector()).second) << "found twice";
  return sets;
}

bool IsConnected(const DataflowGraph& graph, const IndexSet& inside) {
  IndexSet reached({inside.First()});
  for (bool grown = true; grown;) {
    grown = false;
    inside.ForEach([&](PostDfsIndex node) {
      if (reached.Contains(node)) return;
      for (const auto* list : {&graph[node].inputs, &graph[node].outputs}) {
        for (const PostDfsIndex other : *list) {
          if (!reached.Contains(other)) continue;
          reached.Add(node);
          grown = true;
          return;
        }
      }
    });
  }
  return reached == inside;
}

/// "A graph-style backend joins anything to anything": every connected convex set of calls, with and without limits.
TEST(CombineClosure, AnyFindsEveryConnectedConvexSubset) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 3 + seed % 7));
    const std::vector<PostDfsIndex> calls = Calls(graph);
    if (calls.empty() || calls.size() > 11) continue;
    for (const CombineLimits& limits : {CombineLimits{}, CombineLimits{.max_exits = 1}, CombineLimits{.max_operators = 3}}) {
      std::set<std::vector<size_t>> expected;
      for (size_t bits = 1; bits < (size_t{1} << calls.size()); ++bits) {
        IndexSet inside;
        for (size_t k = 0; k < calls.size(); ++k) {
          if (bits >> k & 1) inside.Add(calls[k]);
        }
        const SubGraph sub(graph, inside);
        const bool single = inside.Count() == 1;
        if (!single && limits.max_exits != 0 && sub.exit().size() > limits.max_exits) continue;
        if (!single && limits.max_operators != 0 && inside.Count() > limits.max_operators) continue;
        if (IsConnected(graph, inside) && sub.IsConvex(graph)) expected.insert(inside.ToVector());
      }
      EXPECT_EQ(Insides(CombineClosure(graph, Singles(graph), {Combiner::Any()}, limits)), expected) << "seed " << seed;
      found += expected.size();
    }
  }
  EXPECT_GT(found, 1500u);
}

/// All pairs again and again until nothing is new: the definition of the closure, without any index.
std::set<std::vector<size_t>> SlowClosureByKind(const DataflowGraph& graph, const std::vector<Combiner>& combiners) {
  std::vector<SubGraph> pool = Singles(graph);
  std::set<std::vector<size_t>> seen = Insides(pool);
  for (size_t before = 0; before != pool.size();) {
    before = pool.size();
    for (size_t i = 0; i < before; ++i) {
      for (size_t j = 0; j < before; ++j) {
        const SubGraph up = pool[i];
        const SubGraph down = pool[j];
        if (up.inside().Intersects(down.inside())) continue;
        bool feeds = false;
        for (const PostDfsIndex input : down.input()) feeds = feeds || up.inside().Contains(input);
        bool allowed = false;
        for (const Combiner& c : combiners) {
          allowed = allowed || (c.kind == Combiner::Kind::kByKind && up.kind() <= c.up && down.kind() <= c.down);
        }
        if (!feeds || !allowed) continue;
        SubGraph both = up.DisjointUnion(graph, down);
        if (both.IsConvex(graph) && seen.insert(both.inside().ToVector()).second) pool.push_back(std::move(both));
      }
    }
  }
  return seen;
}

TEST(CombineClosure, ByKindIsCompleteOnRandomGraphs) {
  const std::vector<Combiner> combiners = {Combiner::ByKind(OpKind::kElementwise, OpKind::kBroadcast),
                                           Combiner::ByKind(OpKind::kBroadcast, OpKind::kElementwise)};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 8));
    EXPECT_EQ(Insides(CombineClosure(graph, Singles(graph), combiners, {})), SlowClosureByKind(graph, combiners)) << "seed " << seed;
  }
}

/// Left to a rule further out, what is not convex is found as well: every connected set.
TEST(CombineClosure, KeepsInvalidWhenAsked) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 3 + seed % 6));
    const std::vector<PostDfsIndex> calls = Calls(graph);
    if (calls.empty() || calls.size() > 10) continue;
    std::set<std::vector<size_t>> expected;
    for (size_t bits = 1; bits < (size_t{1} << calls.size()); ++bits) {
      IndexSet inside;
      for (size_t k = 0; k < calls.size(); ++k) {
        if (bits >> k & 1) inside.Add(calls[k]);
      }
      if (IsConnected(graph, inside)) expected.insert(inside.ToVector());
    }
    EXPECT_EQ(Insides(CombineClosure(graph, Singles(graph), {Combiner::Any()}, {.keep_invalid = true})), expected) << "seed " << seed;
  }
}

/// Independent siblings that share an input: such as the projections of an attention block.
TEST(CombineClosure, SiblingsAreJoinedInAllWays) {
  std::unordered_map<std::string, Expr> names;
  const Expr function = ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = exp(%x); %1 = tanh(%x); %2 = sqrt(%x); %3 = add(%0, %x); %4 = add(%1, %2); add(%3, %4)
  })",
                                      &names);
  const DataflowGraph graph(function);
  const auto index = [&](const char* name) { return graph.IndexOf(names.at(name)); };
  std::vector<SubGraph> seeds;
  for (const char* name : {"0", "1", "2", "3"}) seeds.emplace_back(graph, IndexSet({index(name)}));
  const auto set = [&](const std::vector<const char*>& members) {
    IndexSet inside;
    for (const char* name : members) inside.Add(index(name));
    return inside.ToVector();
  };
  // %3 reads %0, so those two are no siblings.
  const std::set<std::vector<size_t>> expected = {set({"0"}),      set({"1"}),           set({"2"}),          set({"3"}),
                                                  set({"0", "1"}), set({"0", "2"}),      set({"1", "2"}),     set({"1", "3"}),
                                                  set({"2", "3"}), set({"0", "1", "2"}), set({"1", "2", "3"})};
  EXPECT_EQ(Insides(CombineClosure(graph, seeds, {Combiner::Siblings()}, {})), expected);
}

TEST(CombineClosure, TwoOldProducersOfOneConsumerCombineWithIt) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(R"(fn (%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x); %1 = tanh(%y); add(%0, %1)
  })",
                                          &names));
  const std::set<std::vector<size_t>> found = Insides(CombineClosure(graph, Singles(graph), NativeCombiners(), {.max_exits = 1}));
  EXPECT_EQ(found.size(), 6u);
  EXPECT_TRUE(found.contains(Calls(graph)));
}

TEST(CombineClosure, TupleArgumentTakesOneProducerForEveryField) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(R"(fn (%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> Tensor[(4), float32] {
    %0 = nn.relu(%x); %1 = tanh(%0); %2 = exp(%y); %3 = (%1, %2); concatenate(%3)
  })",
                                          &names));
  const auto set = [&](std::initializer_list<const char*> list) {
    IndexSet nodes({graph.size() - 2});
    for (const char* name : list) nodes.Add(graph.IndexOf(names.at(name)));
    return nodes.ToVector();
  };
  const std::set<std::vector<size_t>> found = Insides(
      CombineClosure(graph, Singles(graph), {Combiner::TupleArgument(), Combiner::ByKind(OpKind::kInjective, OpKind::kInjective)}, {}));
  EXPECT_TRUE(found.contains(set({"1", "2", "3"})));
  EXPECT_TRUE(found.contains(set({"0", "1", "2", "3"})));
  EXPECT_FALSE(found.contains(set({"1", "3"})));
  EXPECT_EQ(found.size(), 7u);  // four calls, {0, 1}, and the two above
}

TEST(CombineClosure, ConstantsAndProjections) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = split(%x, indices_or_sections=2); %1 = %0.0; %2 = %0.1; %3 = concatenate((%2, %1)); add(%3, meta[relay.Constant][0] /*Tensor[(2), float32]*/)
  })",
                                          &names));
  const std::vector<SubGraph> split = {SubGraph(graph, IndexSet({graph.IndexOf(names.at("0"))}))};
  EXPECT_EQ(CombineClosure(graph, split, {Combiner::TupleProjection()}, {}).size(), 4u);
  const std::vector<SubGraph> add = {SubGraph(graph, IndexSet({graph.size() - 2}))};
  EXPECT_EQ(CombineClosure(graph, add, {Combiner::Constant()}, {}).size(), 2u);
}

}  // namespace
}  // namespace collage
