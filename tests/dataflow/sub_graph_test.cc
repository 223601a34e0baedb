#include "collage/dataflow/sub_graph.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "collage/dataflow/contraction.h"
#include "collage/dataflow/extraction.h"
#include "tests/dataflow/evaluate.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NamedGraph {
 public:
  explicit NamedGraph(const std::string& text) : function_(ParseFunction(text, &names_)), graph_(function_) {}
  [[nodiscard]] IndexSet Set(const std::vector<std::string>& names) const {
    IndexSet set;
    for (const std::string& name : names) set.Add(graph_.IndexOf(names_.at(name)));
    return set;
  }
  [[nodiscard]] SubGraph Sub(const std::vector<std::string>& names) const { return {graph_, Set(names)}; }
  [[nodiscard]] const DataflowGraph& graph() const { return graph_; }
  [[nodiscard]] const Expr& function() const { return function_; }

 private:
  std::unordered_map<std::string, Expr> names_;
  Expr function_;
  DataflowGraph graph_;
};

NamedGraph Diamond() {
  return NamedGraph(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x); %1 = tanh(%0); %2 = exp(%0); %3 = add(%1, %2); sqrt(%3)
  })");
}

/// 1. "at most `max_exits` exits"
TEST(SubGraph, Condition1MaxExits) {
  const NamedGraph g = Diamond();
  const SubGraph sub = g.Sub({"1", "2"});
  EXPECT_THAT(sub.Violations(g.graph(), {.max_exits = 1}), ElementsAre(Violation::kMaxExits));
  EXPECT_THAT(sub.Violations(g.graph(), {.max_exits = 2}), IsEmpty());
}

/// 2. "depth at most `max_depth`, depth being the node count of the longest entry-to-exit path"
TEST(SubGraph, Condition2MaxDepth) {
  const NamedGraph g = Diamond();
  const SubGraph sub = g.Sub({"0", "1", "2", "3"});
  EXPECT_EQ(sub.depth(), 3u);
  EXPECT_THAT(sub.Violations(g.graph(), {.max_depth = 2}), ElementsAre(Violation::kMaxDepth));
  EXPECT_THAT(sub.Violations(g.graph(), {.max_depth = 3}), IsEmpty());
}

/// 5. "without `allow_taps` no exit feeds an inside node"
TEST(SubGraph, Condition5Taps) {
  const NamedGraph g = Diamond();
  const SubGraph sub = g.Sub({"0", "1"});
  EXPECT_THAT(sub.Violations(g.graph(), {}), ElementsAre(Violation::kTaps));
  EXPECT_THAT(sub.Violations(g.graph(), {.allow_taps = true}), IsEmpty());
}

/// 6. "convex: no path leaves the inside and comes back"
TEST(SubGraph, Condition6Convex) {
  const NamedGraph g = Diamond();
  EXPECT_THAT(g.Sub({"0", "3"}).Violations(g.graph(), {.allow_taps = true}), ElementsAre(Violation::kConvex));
  EXPECT_THAT(g.Sub({"0", "1", "3"}).Violations(g.graph(), {.allow_taps = true}), ElementsAre(Violation::kConvex));
}

/// 3. "all inside nodes in one basic block (Function, If branch, Match arm)"
TEST(SubGraph, Condition3BasicBlock) {
  const NamedGraph g(R"(fn (%c: bool, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %1 = if (%c) { %2 = tanh(%0); exp(%2) } else { %3 = exp(%0); sqrt(%3) };
    tanh(%1)
  })");
  EXPECT_THAT(g.Sub({"2", "3"}).Violations(g.graph(), {}), ElementsAre(Violation::kBasicBlock));
  EXPECT_THAT(g.Sub({"2"}).Violations(g.graph(), {}), IsEmpty());
}

/// 4. "nested sub-graphs pairwise disjoint subsets"
TEST(SubGraph, Condition4Nested) {
  const NamedGraph g = Diamond();
  const NestedSubGraph one{g.Sub({"1"}), {{"Composite", "a"}}};
  EXPECT_THAT(SubGraph(g.graph(), g.Set({"1", "2"}), {one, one}).Violations(g.graph(), {}), ElementsAre(Violation::kNested));
  EXPECT_THAT(SubGraph(g.graph(), g.Set({"2"}), {one}).Violations(g.graph(), {}), ElementsAre(Violation::kNested));
  EXPECT_THAT(SubGraph(g.graph(), g.Set({"1", "2"}), {one}).Violations(g.graph(), {}), IsEmpty());
}

TEST(SubGraph, NestedInACycleViolateNested) {
  const NamedGraph g(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x); %1 = tanh(%x); %2 = exp(%0); %3 = sqrt(%1); add(%2, %3)
  })");
  // {0, 3} feeds {2} of the other, and {1} of the other feeds {3}.
  const std::vector<NestedSubGraph> nested = {{g.Sub({"0", "3"}), {{"Composite", "a"}}}, {g.Sub({"1", "2"}), {{"Composite", "b"}}}};
  EXPECT_THAT(SubGraph(g.graph(), g.Set({"0", "1", "2", "3"}), nested).Violations(g.graph(), {}), ElementsAre(Violation::kNested));
}

/// "Operators, simple scalars and function literals are inlined, not passed as inputs"
TEST(SubGraph, InlinedExpressionsAreNoInputsAndMakeNoEntries) {
  const NamedGraph g(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %1 = multiply(%0, 2f);
    %2 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%y) };
    %2(%1)
  })");
  const SubGraph sub = g.Sub({"0", "1"});
  EXPECT_THAT(sub.entry(), ElementsAre(g.Set({"0"}).First()));
  EXPECT_THAT(sub.input(), ElementsAre(g.Set({"x"}).First()));
  IndexSet call = g.Set({"1"});
  call.Add(g.graph().size() - 2);
  EXPECT_THAT(SubGraph(g.graph(), call).input(), ElementsAre(g.Set({"0"}).First()));
}

/// A function literal is written where it is called, but what it reads still leads through it.
TEST(SubGraph, APathThroughAFunctionLiteralComesBack) {
  const NamedGraph g(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %1 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %2 = add(%y, %0); exp(%2) };
    %3 = %1(%x);
    %4 = add(%3, %0);
    tanh(%4)
  })");
  EXPECT_THAT(g.Sub({"0", "3"}).Violations(g.graph(), {}), ElementsAre(Violation::kConvex));
}

TEST(SubGraph, KindIsTheLargestInside) {
  const NamedGraph g = Diamond();
  EXPECT_EQ(g.Sub({"0", "1"}).kind(), OpKind::kElementwise);
  EXPECT_EQ(g.Sub({"1", "3"}).kind(), OpKind::kBroadcast);
  EXPECT_EQ(g.Sub({"0", "1", "3"}).Label(g.graph()), "nn_relu_tanh_add");
}

/// Every condition against its wording, for every subset of the calls of small random programs.
TEST(SubGraph, ConditionsAgreeWithTheirWordingOnEverySubset) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 7));
    std::vector<PostDfsIndex> nodes;
    for (PostDfsIndex i = 0; i < graph.size() && nodes.size() < 10; ++i) {
      if (!graph[i].expr->As<Var>() && !graph[i].expr->As<Constant>() && !graph[i].expr->As<Function>()) nodes.push_back(i);
    }
    std::vector<std::vector<bool>> reaches(graph.size(), std::vector<bool>(graph.size()));
    for (PostDfsIndex j = 0; j < graph.size(); ++j) {
      for (const PostDfsIndex input : graph[j].inputs) {
        reaches[input][j] = true;
        for (PostDfsIndex i = 0; i < graph.size(); ++i) reaches[i][j] = reaches[i][j] || reaches[i][input];
      }
    }
    for (size_t bits = 1; bits < (size_t{1} << nodes.size()); ++bits) {
      IndexSet inside;
      for (size_t k = 0; k < nodes.size(); ++k) {
        if (bits >> k & 1) inside.Add(nodes[k]);
      }
      const SubGraph sub(graph, inside);
      bool convex = true;
      bool taps = false;
      size_t exits = 0;
      for (PostDfsIndex v = 0; v < graph.size(); ++v) {
        bool from = false;
        bool into = false;
        inside.ForEach([&](PostDfsIndex u) { from = from || reaches[u][v], into = into || reaches[v][u]; });
        if (!inside.Contains(v)) {
          convex = convex && !(from && into);
          continue;
        }
        bool feeds_outside = graph[v].external;
        bool feeds_inside = false;
        for (const PostDfsIndex output : graph[v].outputs) (inside.Contains(output) ? feeds_inside : feeds_outside) = true;
        exits += feeds_outside ? 1 : 0;
        taps = taps || (feeds_outside && feeds_inside);
      }
      EXPECT_EQ(sub.IsConvex(graph), convex) << inside.ToString() << " seed " << seed;
      EXPECT_EQ(ContractionIsAcyclic(graph, {&inside}), convex);
      EXPECT_EQ(sub.HasTaps(graph), taps);
      EXPECT_EQ(sub.exit().size(), exits);
    }
  }
}

/// Merges are allowed exactly when the contracted graph stays acyclic.
TEST(ContractedGraph, MergesExactlyWhatStaysAcyclic) {
  for (uint64_t seed = 0; seed < Rounds(300); ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 14));
    ContractedGraph contracted(graph);
    std::vector<IndexSet> groups(graph.size());
    for (PostDfsIndex i = 0; i < graph.size(); ++i) groups[i].Add(i);
    for (size_t step = 0; step < 40; ++step) {
      const PostDfsIndex a = (seed * 31 + step * 17) % graph.size();
      const PostDfsIndex b = (seed * 13 + step * 29 + step * step) % graph.size();
      std::vector<IndexSet> merged;
      IndexSet both;
      for (const IndexSet& group : groups) {
        if (group.Contains(a) || group.Contains(b)) {
          both |= group;
        } else {
          merged.push_back(group);
        }
      }
      merged.push_back(both);
      std::vector<const IndexSet*> sets;
      for (const IndexSet& group : merged) sets.push_back(&group);
      const bool acyclic = ContractionIsAcyclic(graph, sets);
      ASSERT_EQ(contracted.TryMerge({a, b}), acyclic) << "seed " << seed << " step " << step;
      if (acyclic) groups = std::move(merged);
      ASSERT_EQ(contracted.GroupOf(a) == contracted.GroupOf(b), acyclic);
    }
  }
}

}  // namespace
}  // namespace collage
