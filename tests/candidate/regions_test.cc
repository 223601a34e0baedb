#include "collage/candidate/regions.h"

#include <gtest/gtest.h>

#include "collage/dataflow/contraction.h"
#include "collage/op/table.h"
#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

bool ContractedIsAcyclic(const DataflowGraph& graph, const std::vector<Region>& regions) {
  std::vector<const IndexSet*> sets;
  for (const Region& region : regions) sets.push_back(&region.nodes);
  return ContractionIsAcyclic(graph, sets);
}

/// Regions never form a cycle, none can be joined with a touching one of its owner, tuples lie with all their neighbours.
TEST(MergeRegions, LargestWithoutACycleOnRandomGraphs) {
  size_t joined = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 16));
    std::vector<Region> parts;
    std::vector<size_t> owner(graph.size(), 99);
    for (PostDfsIndex i = 0; i < graph.size(); ++i) {
      if (!CalledOp(graph[i].expr) || (i * 7 + seed) % 5 == 0) continue;
      owner[i] = (i * 3 + seed) % 11 == 0 ? 1 : 0;
      parts.push_back({owner[i], IndexSet({i})});
    }
    const std::vector<Region> regions = MergeRegions(graph, parts, true);
    ASSERT_TRUE(ContractedIsAcyclic(graph, regions)) << "seed " << seed;
    IndexSet covered;
    for (const Region& region : regions) {
      EXPECT_FALSE(covered.Intersects(region.nodes));
      covered |= region.nodes;
      joined += region.nodes.Count() > 1 ? 1 : 0;
      region.nodes.ForEach([&](PostDfsIndex node) {
        if (CalledOp(graph[node].expr)) {
          EXPECT_EQ(owner[node], region.owner);
          return;
        }
        for (const PostDfsIndex other : graph[node].inputs) EXPECT_TRUE(region.nodes.Contains(other));
        for (const PostDfsIndex other : graph[node].outputs) EXPECT_TRUE(region.nodes.Contains(other));
      });
    }
    for (size_t a = 0; a < regions.size(); ++a) {
      for (size_t b = 0; b < regions.size(); ++b) {
        if (a == b || regions[a].owner != regions[b].owner) continue;
        if (!SubGraph(graph, regions[a].nodes).Touches(SubGraph(graph, regions[b].nodes))) continue;
        std::vector<Region> merged = regions;
        merged[a].nodes |= regions[b].nodes;
        merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(b));
        EXPECT_FALSE(ContractedIsAcyclic(graph, merged)) << "seed " << seed << ": touching regions could be one";
      }
    }
  }
  EXPECT_GT(joined, 300u);
}

TEST(CutRegion, PiecesAreConvexAndFew) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 25));
    std::vector<Region> parts;
    for (PostDfsIndex i = 0; i < graph.size(); ++i) {
      if (CalledOp(graph[i].expr) && (i + seed) % 6 != 0) parts.push_back({0, IndexSet({i})});
    }
    for (const Region& region : MergeRegions(graph, parts, true)) {
      const std::vector<IndexSet> pieces = CutRegion(graph, region.nodes, {.cut_points = 3, .fine_cut_points = 5});
      EXPECT_EQ(pieces.front(), region.nodes);
      EXPECT_LE(pieces.size(), 10u + 6u);
      for (const IndexSet& piece : pieces) {
        EXPECT_TRUE(piece.IsSubsetOf(region.nodes));
        EXPECT_TRUE(SubGraph(graph, piece).IsConvex(graph)) << "seed " << seed;
      }
    }
  }
}

Expr ResidualNetwork(int blocks) {
  const auto call = [](const char* op, std::vector<Expr> args) { return MakeCall(Operators().Find(op), std::move(args)).value(); };
  const Expr x = MakeVar("x", TensorType{{1, 8, 4, 4}, DType::kFloat32});
  const Expr weight = MakeConstant(Tensor(TensorType{{8, 8, 1, 1}, DType::kFloat32}));
  const Expr bias = MakeConstant(Tensor(TensorType{{8}, DType::kFloat32}));
  Expr value = x;
  for (int i = 0; i < blocks; ++i) {
    const Expr first = call("nn.relu", {call("nn.bias_add", {call("nn.conv2d", {value, weight}), bias})});
    const Expr second = call("nn.bias_add", {call("nn.conv2d", {first, weight}), bias});
    value = call("nn.relu", {call("add", {second, value})});
  }
  return MakeFunction({x}, value).value();
}

TEST(CutRegion, NumberOfPiecesDoesNotGrowWithTheRegion) {
  for (const int blocks : {16, 200}) {
    const DataflowGraph graph(ResidualNetwork(blocks));
    std::vector<Region> parts;
    for (PostDfsIndex i = 0; i < graph.size(); ++i) {
      if (CalledOp(graph[i].expr)) parts.push_back({0, IndexSet({i})});
    }
    const std::vector<Region> regions = MergeRegions(graph, parts, true);
    ASSERT_EQ(regions.size(), 1u);
    const size_t pieces = CutRegion(graph, regions[0].nodes, {}).size();
    EXPECT_GE(pieces, 45u);
    EXPECT_LE(pieces, 45u + 65u);
  }
}

TEST(FusionGroups, ConvolutionsTakeTheirTails) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ResidualNetwork(2));
  const std::vector<IndexSet> groups = FusionGroups(graph, std::vector<bool>(graph.size(), true), 256);
  ASSERT_EQ(groups.size(), 4u);
  std::vector<size_t> sizes;
  for (const IndexSet& group : groups) {
    sizes.push_back(group.Count());
    EXPECT_EQ(SubGraph(graph, group).Violations(graph, {.max_exits = 1}), std::vector<Violation>());
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{3, 4, 3, 4}));
  for (const IndexSet& group : FusionGroups(graph, std::vector<bool>(graph.size(), true), 2)) EXPECT_LE(group.Count(), 2u);
  EXPECT_EQ(FusionGroups(graph, std::vector<bool>(graph.size(), false), 256).size(), 0u);
}

TEST(FusionGroups, AreValidAndDisjointOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 20));
    IndexSet covered;
    std::vector<Region> regions;
    for (const IndexSet& group : FusionGroups(graph, std::vector<bool>(graph.size(), true), 256)) {
      EXPECT_FALSE(covered.Intersects(group));
      covered |= group;
      EXPECT_EQ(SubGraph(graph, group).Violations(graph, {.max_exits = 1}), std::vector<Violation>())
          << "seed " << seed << group.ToString();
    }
    for (PostDfsIndex i = 0; i < graph.size(); ++i) {
      EXPECT_TRUE(!CalledOp(graph[i].expr) || covered.Contains(i)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace collage
