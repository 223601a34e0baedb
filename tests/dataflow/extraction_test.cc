#include "collage/dataflow/extraction.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/ir/print.h"
#include "tests/dataflow/evaluate.h"
#include "tests/ir/programs.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

SubGraph Wrap(const DataflowGraph& graph, const IndexSet& inside, const char* name) {
  return SubGraph(graph, inside).WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", name}});
}

TEST(Extraction, BindsWeightsAndNestsComposites) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(kMnist, &names));
  const SubGraph composite = SubGraph(graph, IndexSet({graph.IndexOf(names.at("1")), graph.IndexOf(names.at("2"))}))
                                 .WithAttributes(graph, {{"Composite", "library.conv2d_bias"}});
  const SubGraph both = composite.DisjointUnion(graph, SubGraph(graph, IndexSet({graph.IndexOf(names.at("3"))})));
  const SubGraph whole = both.WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", "library"}});
  const ExtractedFunction extracted = ExtractFunction(graph, whole).value();
  EXPECT_EQ(Print(extracted.function),
            R"(fn (%FunctionVar_0: Tensor[(1, 1, 32, 32), float32], Primitive=1, Compiler="library") -> Tensor[(1, 8, 28, 28), float32] {
  %1 = fn (%FunctionVar_0_1: Tensor[(1, 1, 32, 32), float32], Composite="library.conv2d_bias") -> Tensor[(1, 8, 28, 28), float32] {
    %0 = nn.conv2d(%FunctionVar_0_1, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5), float32]*/, padding=[0, 0, 0, 0], channels=8, kernel_size=[5, 5]);
    add(%0, meta[relay.Constant][1] /*Tensor[(8, 1, 1), float32]*/)
  };
  %2 = %1(%FunctionVar_0);
  nn.relu(%2)
}
)");
  ASSERT_EQ(extracted.inputs.size(), 1u);
  EXPECT_EQ(extracted.inputs[0], (TensorSource{graph.IndexOf(names.at("0")), 0}));
  EXPECT_EQ(extracted.outputs, (std::vector<TensorSource>{{graph.IndexOf(names.at("3")), 0}}));
}

TEST(Extraction, ConstantsOutsideBecomeParametersWhenAskedTo) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(kMnist, &names));
  const SubGraph pad(graph, IndexSet({graph.IndexOf(names.at("0"))}));
  const SubGraph add(graph, IndexSet({graph.IndexOf(names.at("2"))}));
  EXPECT_EQ(ExtractFunction(graph, pad, {.bind_constants = false})->inputs.size(), 1u);  // the scalar is inlined
  EXPECT_EQ(ExtractFunction(graph, add, {.bind_constants = false})->inputs.size(), 2u);
}

TEST(Extraction, TuplesAreSplitAndOnlyUsedFieldsGiven) {
  std::unordered_map<std::string, Expr> names;
  const Expr function = ParseFunction(R"(fn (%x: Tensor[(2, 4), float32], %p: (Tensor[(2, 4), float32], Tensor[(2, 4), float32]))
      -> Tensor[(2, 8), float32] {
    %0 = nn.relu(%x);
    %1 = (%0, %p.1);
    %2 = concatenate(%1, axis=1);
    %3 = split(%2, indices_or_sections=4, axis=1);
    %4 = tanh(%3.2);
    %5 = exp(%3.0);
    %6 = concatenate((%4, %5), axis=1);
    concatenate((%6, %6), axis=1)
  })",
                                      &names);
  const DataflowGraph graph(function);
  const PostDfsIndex split = graph.IndexOf(names.at("3"));
  const IndexSet inside({graph.IndexOf(names.at("2")), split});
  const ExtractedFunction extracted = ExtractFunction(graph, SubGraph(graph, inside)).value();
  const PostDfsIndex p = graph.IndexOf(names.at("p"));
  EXPECT_EQ(extracted.inputs, (std::vector<TensorSource>{{graph.IndexOf(names.at("0")), 0}, {p, 1}}));
  EXPECT_EQ(extracted.outputs, (std::vector<TensorSource>{{split, 0}, {split, 2}}));
  const Expr rewritten = RewriteFunction(graph, Wrap(graph, inside, "library").nested()).value();
  ExpectSameResults(rewritten, function, 1);
}

TEST(Extraction, FunctionLiteralsAreInlinedWithWhatTheyCapture) {
  std::unordered_map<std::string, Expr> names;
  const Expr function = ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %2 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %1 = tanh(%y); add(%1, %0) };
    %3 = %2(%x);
    subtract(%3, %0)
  })",
                                      &names);
  const DataflowGraph graph(function);
  const IndexSet inside({graph.IndexOf(names.at("3"))});
  const ExtractedFunction extracted = ExtractFunction(graph, SubGraph(graph, inside)).value();
  EXPECT_EQ(extracted.inputs.size(), 2u);
  EXPECT_EQ(Print(extracted.function),
            R"(fn (%FunctionVar_0: Tensor[(2,), float32], %FunctionVar_1: Tensor[(2,), float32]) -> Tensor[(2,), float32] {
  %1 = fn (%y: Tensor[(2,), float32]) -> Tensor[(2,), float32] {
    %0 = tanh(%y);
    add(%0, %FunctionVar_0)
  };
  %1(%FunctionVar_1)
}
)");
  ExpectSameResults(RewriteFunction(graph, Wrap(graph, inside, "library").nested()).value(), function, 1);
}

TEST(Extraction, LetsAreCrossed) {
  std::unordered_map<std::string, Expr> names;
  const Expr function = ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    let %y = nn.relu(%x);
    let %z = tanh(%y);
    add(%y, %z)
  })",
                                      &names);
  const DataflowGraph graph(function);
  IndexSet inside;
  for (PostDfsIndex i = 0; i < graph.size(); ++i) {
    if (CalledOp(graph[i].expr) && CalledOp(graph[i].expr)->name != "add") inside.Add(i);
  }
  EXPECT_FALSE(SubGraph(graph, inside).IsConvex(graph));
  inside.Add(graph.IndexOf(names.at("y")));
  EXPECT_TRUE(SubGraph(graph, inside).IsConvex(graph));
  const Expr rewritten = RewriteFunction(graph, Wrap(graph, inside, "library").nested()).value();
  ExpectSameResults(rewritten, function, 3);
}

TEST(Rewrite, RefusesOverlapsAndCycles) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x); %1 = tanh(%x); %2 = exp(%0); %3 = sqrt(%1); add(%2, %3)
  })",
                                          &names));
  const auto set = [&](const char* a, const char* b) { return IndexSet({graph.IndexOf(names.at(a)), graph.IndexOf(names.at(b))}); };
  std::vector<NestedSubGraph> cyclic = {Wrap(graph, set("0", "3"), "a").nested()[0], Wrap(graph, set("1", "2"), "b").nested()[0]};
  EXPECT_NE(RewriteFunction(graph, cyclic).error().message.find("cycle"), std::string::npos);
  std::vector<NestedSubGraph> shared = {Wrap(graph, set("0", "2"), "a").nested()[0], Wrap(graph, set("1", "2"), "b").nested()[0]};
  EXPECT_NE(RewriteFunction(graph, shared).error().message.find("exp"), std::string::npos);
}

/// Random disjoint regions whose contraction is acyclic, with nested composites, rewritten all at once.
TEST(Rewrite, PreservesResultsOfRandomPrograms) {
  size_t regions_rewritten = 0;
  for (uint64_t seed = 0; seed < Rounds(400); ++seed) {
    std::mt19937_64 random(seed);
    const Expr function = RandomFunction(seed, 3 + random() % 20);
    const DataflowGraph graph(function);
    std::vector<NestedSubGraph> partitions;
    IndexSet taken;
    std::vector<IndexSet> sets;
    for (int attempt = 0; attempt < 12; ++attempt) {
      IndexSet inside;
      const PostDfsIndex start = random() % graph.size();
      for (PostDfsIndex i = start; i < std::min(graph.size(), start + 1 + random() % 12); ++i) {
        const Expr& expr = graph[i].expr;
        if (random() % 4 != 0 && !expr->As<Function>() && !expr->As<Var>() && !taken.Contains(i)) inside.Add(i);
      }
      if (inside.Empty()) continue;
      sets.push_back(inside);
      std::vector<const IndexSet*> pointers;
      for (const IndexSet& set : sets) pointers.push_back(&set);
      if (!SubGraph(graph, inside).IsConvex(graph)) {
        sets.pop_back();
        continue;
      }
      const IndexSet first(std::vector<size_t>{inside.First()});
      const SubGraph sub(graph, inside, {{SubGraph(graph, first), {{"Composite", "library.first"}}}});
      partitions.push_back({sub, {{"Primitive", AttributeValue(1)}, {"Compiler", "library"}}});
      Result<Expr> rewritten = RewriteFunction(graph, partitions, {.bind_constants = seed % 2 == 0});
      if (!rewritten) {
        EXPECT_NE(rewritten.error().message.find("cycle"), std::string::npos) << rewritten.error().message;
        partitions.pop_back();
        sets.pop_back();
        continue;
      }
      taken |= inside;
    }
    regions_rewritten += partitions.size();
    ExpectSameResults(RewriteFunction(graph, partitions, {.bind_constants = seed % 2 == 0}).value(), function, seed);
  }
  EXPECT_GT(regions_rewritten, Rounds(500));
}

TEST(Rewrite, LongChainNeedsNoDeepStack) {
  const Expr function = [] {
    const Type type = TensorType{{2}, DType::kFloat32};
    Expr value = MakeVar("x", type);
    const std::vector<Expr> parameters = {value};
    const OpDef* relu =
        CalledOp(ParseFunction("fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.relu(%x) }")->As<Function>()->body);
    for (size_t i = 0; i < Rounds(100'000); ++i) value = MakeCall(relu, {value}).value();
    return MakeFunction(parameters, value).value();
  }();
  const DataflowGraph graph(function);
  std::vector<NestedSubGraph> partitions;
  for (PostDfsIndex i = 1; i + 3 < graph.size(); i += 3) partitions.push_back(Wrap(graph, IndexSet({i, i + 1}), "library").nested()[0]);
  const Expr rewritten = RewriteFunction(graph, partitions).value();
  EXPECT_EQ(DataflowGraph(rewritten).size(), graph.size());
}

// Its units were looked for in a time that is cubic in the parts: a fifth of these took seconds.
TEST(Rewrite, TakesTenThousandParts) {
  constexpr size_t kParts = 10'000;
  const std::string text = "fn (%x: Tensor[(10000), float32]) { concatenate(split(%x, indices_or_sections=10000), axis=0) }";
  const Expr joined_whole = ParseFunction(text)->As<Function>()->body;
  const Expr split = joined_whole->As<Call>()->args[0];
  std::vector<Expr> parts;
  for (size_t i = 0; i < kParts; ++i) parts.push_back(MakeTupleGetItem(split, i).value());
  const Expr joined = MakeCall(CalledOp(joined_whole), {MakeTuple(parts)}, joined_whole->As<Call>()->attributes).value();
  const DataflowGraph graph(MakeFunction({split->As<Call>()->args[0]}, joined).value());
  const SubGraph wrapped = Wrap(graph, IndexSet({graph.IndexOf(joined)}), "library");
  const Expr rewritten = RewriteFunction(graph, wrapped.nested()).value();
  EXPECT_EQ(rewritten->As<Function>()->body->As<Call>()->args.size(), kParts);
}

TEST(Extraction, CallsOfPartitionsComeFromWhatIsInside) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction("fn (%x: Tensor[(4,), float32]) {\n%0 = exp(%x);\n%1 = tanh(%0);\nabs(%1)\n}", &names));
  const IndexSet inside({graph.IndexOf(names.at("0")), graph.IndexOf(names.at("1"))});
  const std::vector<NestedSubGraph> partitions = {{SubGraph(graph, inside), {{"Primitive", AttributeValue(1)}, {"Compiler", "library"}}}};
  const Expr rewritten = RewriteFunction(graph, partitions).value();
  const Expr& result = rewritten->As<Function>()->body;
  EXPECT_EQ(result->origin().ToString(), "4:1");
  const Expr& partition = result->As<Call>()->args[0];
  EXPECT_EQ(partition->origin().ToString(), "2:6, 3:6");
  EXPECT_EQ(partition->As<Call>()->callee->As<Function>()->body->origin().ToString(), "3:6");
}

}  // namespace
}  // namespace collage
