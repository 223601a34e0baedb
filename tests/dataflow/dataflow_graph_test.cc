#include "collage/dataflow/dataflow_graph.h"

#include <gtest/gtest.h>

#include "collage/op/table.h"
#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

TEST(DataflowGraph, IndexesInPostOrder) {
  std::unordered_map<std::string, Expr> names;
  const Expr function = ParseFunction(R"(fn (%x: Tensor[(2), float32], %unused: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %1 = tanh(%0);
    add(%0, %1)
  })",
                                      &names);
  const DataflowGraph graph(function);
  ASSERT_EQ(graph.size(), 6u);
  EXPECT_EQ(graph.IndexOf(names.at("x")), 0u);
  EXPECT_EQ(graph.IndexOf(names.at("unused")), 1u);
  EXPECT_EQ(graph.IndexOf(names.at("0")), 2u);
  EXPECT_EQ(graph.IndexOf(names.at("1")), 3u);
  EXPECT_EQ(graph[2].outputs, (std::vector<size_t>{3, 4}));
  EXPECT_EQ(graph[4].inputs, (std::vector<size_t>{2, 3}));
  EXPECT_TRUE(graph[2].Is<Call>() && graph[0].Is<Var>() && graph[5].Is<Function>());
  EXPECT_FALSE(graph[2].Is<Constant>());
  EXPECT_EQ(graph[4].argument_count, 2u);
  EXPECT_EQ(graph.CallsOf("add"), std::vector<uint32_t>{4});
  EXPECT_TRUE(graph.CallsOf("nn.conv2d").empty());
  EXPECT_EQ(graph[2].dominator_parent, 4u);
  EXPECT_EQ(graph[4].dominator_parent, 5u);
  EXPECT_EQ(graph[5].dominator_parent, DataflowGraph::kNone);
  EXPECT_TRUE(graph[4].external);
  EXPECT_FALSE(graph[3].external);
  EXPECT_EQ(graph.function(), function);
}

TEST(DataflowGraph, BranchesAndLiteralsAreBlocksOfTheirOwn) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(R"(fn (%c: bool, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %1 = if (%c) { %2 = tanh(%0); exp(%2) } else { %3 = exp(%0); sqrt(%3) };
    %6 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %5 = tanh(%y); add(%5, %0) };
    %6(%1)
  })",
                                          &names));
  const auto block = [&](const char* name) { return graph[graph.IndexOf(names.at(name))].block; };
  EXPECT_EQ(block("0"), 0u);
  EXPECT_EQ(block("1"), 0u);
  EXPECT_NE(block("2"), 0u);
  EXPECT_NE(block("2"), block("3"));
  EXPECT_EQ(block("y"), block("5"));
  EXPECT_NE(block("5"), block("2"));
  EXPECT_TRUE(graph.BlockEncloses(block("0"), block("2")));
  EXPECT_FALSE(graph.BlockEncloses(block("2"), block("0")));
}

TEST(DataflowGraph, LetFlowsFromValueThroughVariable) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    let %y = nn.relu(%x);
    let %z = tanh(%y);
    add(%y, %z)
  })",
                                          &names));
  const PostDfsIndex y = graph.IndexOf(names.at("y"));
  ASSERT_EQ(graph[y].inputs.size(), 1u);
  EXPECT_EQ(CalledOp(graph[graph[y].inputs[0]].expr)->name, "nn.relu");
  for (PostDfsIndex i = 0; i < graph.size(); ++i) {
    for (const PostDfsIndex input : graph[i].inputs) EXPECT_LT(input, i);
  }
}

TEST(DataflowGraph, BackendFunctionsAreOneOperator) {
  const DataflowGraph graph(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %1 = fn (%y: Tensor[(2), float32], Composite="library.relu") -> Tensor[(2), float32] { nn.relu(%y) };
    %1(%x)
  })"));
  EXPECT_EQ(graph.size(), 4u);  // %x, the literal, the call, the function
}

/// Dominators by their definition: b is over a when every path from a to the result passes b.
TEST(DataflowGraph, DominatorsAgreeWithPathsOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 12));
    const auto reaches_without = [&](PostDfsIndex from, PostDfsIndex without) {
      std::vector<PostDfsIndex> stack = {from};
      std::vector<bool> seen(graph.size());
      while (!stack.empty()) {
        const PostDfsIndex node = stack.back();
        stack.pop_back();
        if (node == without || seen[node]) continue;
        seen[node] = true;
        if (graph[node].outputs.empty()) return true;
        for (const PostDfsIndex output : graph[node].outputs) stack.push_back(output);
      }
      return false;
    };
    for (PostDfsIndex i = 0; i + 1 < graph.size(); ++i) {
      PostDfsIndex expected = DataflowGraph::kNone;
      for (PostDfsIndex j = i + 1; j < graph.size() && expected == DataflowGraph::kNone; ++j) {
        if (!reaches_without(i, j)) expected = j;
      }
      EXPECT_EQ(graph[i].dominator_parent, expected) << "seed " << seed << " node " << i;
    }
  }
}

TEST(DataflowGraph, DeepChainNeedsNoDeepStack) {
  const Type type = TensorType{{2}, DType::kFloat32};
  const Expr x = MakeVar("x", type);
  Expr value = x;
  for (int i = 0; i < 100'000; ++i) value = MakeCall(Operators().Find("nn.relu"), {value}).value();
  const DataflowGraph graph(MakeFunction({x}, value).value());
  EXPECT_EQ(graph.size(), 100'002u);
  EXPECT_EQ(graph[5].dominator_parent, 6u);
  EXPECT_EQ(graph[100'000].level, 100'000u);
}

}  // namespace
}  // namespace collage
