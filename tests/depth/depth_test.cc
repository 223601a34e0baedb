// Nothing recurses over the depth of a program: every stage takes programs of 100 000 operators on a stack of 1 MB, and lets go of them
// there too.

#include <gtest/gtest.h>

#include <algorithm>

#include "collage/candidate/gather.h"
#include "collage/dataflow/extraction.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "collage/ir/visit.h"
#include "collage/onnx/reader.h"
#include "collage/onnx/writer.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "collage/partition/classic_flow.h"
#include "collage/partition/cover.h"
#include "collage/partition/fuse.h"
#include "collage/pattern/matcher.h"
#include "collage/query/query.h"
#include "collage/search/searcher.h"
#include "collage/transform/pass.h"
#include "tests/dataflow/evaluate.h"
#include "tests/depth/programs.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace)

class Depth : public testing::TestWithParam<DeepProgram> {
 protected:
  /// The program is let go of on the small stack as well.
  static void With(const std::function<void(const Expr&)>& body) {
    OnSmallStack(GetParam().operators, [&] { body(GetParam().Make()); });
  }
};

BackendRules Supporting(std::vector<std::string> names) {
  BackendRules rules;
  rules.style = BackendRules::Style::kPredicate;
  rules.supports = [names = std::move(names)](const Expr& call) {
    return std::find(names.begin(), names.end(), CalledOp(call)->name) != names.end() ? Verdict::Accept() : Verdict::Reject("no");
  };
  return rules;
}

BackendRules Library() {
  BackendRules rules;
  rules.patterns = {{"library.tanh_relu", CallOf("tanh", {CallOf("nn.relu", {Wildcard()})}), {}},
                    {"library.abs", CallOf("abs", {Wildcard()}), {}},
                    {"library.add", CallOf("add", {Wildcard(), Wildcard()}), {}}};
  return rules;
}

size_t CountCalls(const Expr& function) {
  size_t count = 0;
  PostOrder(function, [&](const Expr& expr) { count += CalledOp(expr) ? 1 : 0; });
  return count;
}

TEST_P(Depth, TypesHashesAndEquality) {
  With([](const Expr& function) {
    const Expr again = GetParam().Make();
    EXPECT_TRUE(StructuralEqual(function, again));
    EXPECT_EQ(StructuralHash(function), StructuralHash(again));
    const Status verified = Verify(IRModule::FromMain(function));
    EXPECT_TRUE(verified) << verified.error().message;
    EXPECT_EQ(CountCalls(function), GetParam().operators);
    const auto rebuilt = Rewrite(function, [](const Expr&, const Expr& expr) -> Result<Expr> { return expr; });
    EXPECT_TRUE(rebuilt);
  });
}

TEST_P(Depth, Text) {
  if (!GetParam().can_be_printed) GTEST_SKIP() << "the text would be gigabytes of spaces";
  With([](const Expr& function) {
    const std::string text = Print(IRModule::FromMain(function));
    const auto parsed = ParseModule(text, Operators());
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_TRUE(StructuralEqual(parsed->module.MainExpr(), function));
    EXPECT_EQ(Print(parsed->module), text);
  });
}

TEST_P(Depth, OnnxAndTheFlatView) {
  if (!GetParam().is_straight_line) GTEST_SKIP() << "control flow has no flat view";
  With([](const Expr& function) {
    const auto flat = ToOpSequence(*function->As<Function>());
    ASSERT_TRUE(flat) << flat.error().message;
    EXPECT_EQ(flat->steps.size(), GetParam().operators);
    const Result<std::string> bytes = WriteOnnx(*function->As<Function>());
    ASSERT_TRUE(bytes) << bytes.error().message;
    const Result<OnnxModel> model = ReadOnnx(*bytes);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(CountCalls(model->module.MainExpr()), GetParam().operators);
  });
}

TEST_P(Depth, Interpreter) {
  With([](const Expr& function) {
    const auto outputs = InterpretFunction(function, RandomInputs(function, 1));
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->size(), 1u);
  });
}

TEST_P(Depth, SafeGlobalPasses) {
  With([](const Expr& function) {
    const auto result = RunPasses(IRModule::FromMain(function), SafeGlobalPasses());
    EXPECT_TRUE(result) << result.error().message;
  });
}

TEST_P(Depth, DataflowGraphAndSubGraphs) {
  With([](const Expr& function) {
    const DataflowGraph graph(function);
    EXPECT_GT(graph.size(), GetParam().operators);
    // All that stands in the block of the result.
    IndexSet inside;
    const PostDfsIndex result = graph.IndexOf(function->As<Function>()->body);
    for (PostDfsIndex node = 0; node + 1 < graph.size(); ++node) {
      if (graph[node].block == graph[result].block && !graph[node].inputs.empty()) inside.Add(node);
    }
    const SubGraph whole(graph, inside);
    if (whole.IsValid(graph, {.allow_taps = true})) {
      EXPECT_TRUE(ExtractFunction(graph, whole));
    }
    std::vector<NestedSubGraph> singles;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (CalledOp(graph[node].expr) && node % 3 == 0) {
        singles.push_back({SubGraph(graph, IndexSet({node})), {{"Primitive", AttributeValue(1)}}});
      }
    }
    const auto rewritten = RewriteFunction(graph, singles);
    ASSERT_TRUE(rewritten) << rewritten.error().message;
    EXPECT_EQ(CountCalls(*rewritten), GetParam().operators);
  });
}

TEST_P(Depth, PatternMatcher) {
  With([](const Expr& function) {
    const DataflowGraph graph(function);
    const auto count = [&](const Pattern& pattern) {
      size_t matches = 0;
      ForEachMatch(graph, pattern, [&](const PatternMatch&) { ++matches; });
      return matches;
    };
    EXPECT_GE(count(CallOf(Wildcard(), {Wildcard()})), GetParam().operators / 2);
    const Pattern optional = CallOf("tanh", {Wildcard()});
    count(Or({CallOf("abs", {optional}), optional}));
    count(Dominator(CallOf("abs", {Wildcard()}), Or({CallOf("nn.relu", {Wildcard()}), CallOf("tanh", {Wildcard()})}),
                    CallOf("add", {Wildcard(), Wildcard()})));
  });
}

std::vector<SpecPointer> Specs(const BackendRules& library, const BackendRules& compiler) {
  BackendRules native;
  native.style = BackendRules::Style::kNative;
  const auto spec = [](const std::string& name, Rule rule) {
    return std::make_shared<const PartitionSpec>(PartitionSpec{name, {Target{DeviceKind::kCpu, {{"compiler", name}}}}, std::move(rule)});
  };
  return {spec("library", RuleForPatterns("library", library)), spec("compiler", RuleForRegions("compiler", compiler, {})),
          spec("native", RuleForNative("native", native, {})), HostSpec()};
}

TEST_P(Depth, CandidateRules) {
  With([](const Expr& function) {
    const DataflowGraph graph(function);
    EXPECT_GE(AllCandidates(graph, Specs(Library(), Supporting({"tanh", "nn.relu"}))).size(), GetParam().operators);
    const Rule calls = OpCallByKindRule();
    EXPECT_GE(CombineRule({Combiner::Any()}, {.max_depth = 3}, calls)->AllSubGraphs(graph, nullptr).size(), GetParam().operators);
    EXPECT_GE(OnlyValidRule({.max_exits = 1}, MaximalRule(calls))->AllSubGraphs(graph, nullptr).size(), 1u);
    EXPECT_GE(MaxCoalesceRule(calls)->AllSubGraphs(graph, nullptr).size(), 1u);
  });
}

TEST_P(Depth, ClassicFlow) {
  With([](const Expr& function) {
    const IRModule module = IRModule::FromMain(function);
    const BackendRules library = Library();
    const BackendRules compiler = Supporting({"nn.relu", "add"});
    const auto partitioned = PartitionClassic(module, {{"library", &library}, {"compiler", &compiler}});
    ASSERT_TRUE(partitioned) << partitioned.error().message;
    EXPECT_TRUE(Verify(*partitioned));
    const auto inlined = InlinePartitions(*partitioned, {});
    ASSERT_TRUE(inlined) << inlined.error().message;
    EXPECT_EQ(CountCalls(inlined->MainExpr()), GetParam().operators);
    const auto fused = FuseOperators(module);
    ASSERT_TRUE(fused) << fused.error().message;
    EXPECT_EQ(CountCalls(fused->MainExpr()), GetParam().operators);
    // One region of everything that may be in one.
    const BackendRules all = Supporting({"nn.relu", "add", "tanh", "abs"});
    const auto whole = PartitionClassic(module, {{"compiler", &all}});
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_TRUE(Verify(*whole));
  });
}

TEST_P(Depth, CoversAndPlans) {
  With([](const Expr& function) {
    const DataflowGraph graph(function);
    const IRModule module = IRModule::FromMain(function);
    const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{"c", {Target{DeviceKind::kCpu, {}}}, HostRule()});
    Cover cover;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (!CalledOp(graph[node].expr)) continue;
      const SubGraph call = SubGraph(graph, IndexSet({node})).WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", "c"}});
      cover.push_back({{call, spec}, {}});
    }
    const auto loaded = LoadPlan(graph, SavePlan(graph, cover));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->size(), cover.size());
    EXPECT_TRUE(ApplyCover(module, graph, cover));
    const Cover joined =
        JoinAdjacent(graph, cover, [](const CandidatePartition& one, const CandidatePartition&, const CandidatePartition&) {
          return one.sub_graph.operator_count() <= 4;
        });
    EXPECT_LE(joined.size(), cover.size());
    EXPECT_TRUE(ApplyCover(module, graph, joined));
  });
}

INSTANTIATE_TEST_SUITE_P(Programs, Depth, testing::ValuesIn(DeepPrograms()), [](const auto& info) { return info.param.name; });

/// A chain that two backends take operator by operator, or two at once.
SearchProblem ChainProblem(size_t nodes) {
  SearchProblem problem;
  problem.node_count = nodes;
  problem.backend_count = 2;
  for (size_t node = 0; node < nodes; ++node) {
    problem.tensors.push_back({node, node + 1 < nodes ? std::vector<size_t>{node + 1} : std::vector<size_t>{}, node + 1 == nodes});
    for (size_t backend = 0; backend < 2; ++backend) {
      for (size_t length = 1; length <= std::min<size_t>(2, nodes - node); ++length) {
        SearchCandidate candidate{length == 1 ? IndexSet({node}) : IndexSet({node, node + 1}), backend, {}, {node + length - 1}, {}, true};
        if (node > 0) candidate.inputs = {node - 1};
        const double price = static_cast<double>(1 + (node * 7 + backend * 3) % 5) * static_cast<double>(length) * 0.9e-6;
        candidate.variants = {{Cost::Seconds(price), std::vector<size_t>(candidate.inputs.size(), 0), {0}}};
        problem.candidates.push_back(std::move(candidate));
      }
    }
  }
  return problem;
}

class DeepSearch : public testing::TestWithParam<std::string> {};

TEST_P(DeepSearch, AChain) {
  // A covered set holds a bit for each node, and the queue of this one keeps them all.
  const size_t operators = GetParam() == "dijkstra" ? 10'000 : 100'000;
  OnSmallStack(operators, [operators] {
    const SearchProblem problem = ChainProblem(operators);
    const auto found = FindSearcher(GetParam(), {.is_graph_backend = {false, false}, .priority = {0, 1}})->search(problem);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GE(found->choices.size(), operators / 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Searchers, DeepSearch, testing::Values("sweep", "dijkstra", "op-level", "greedy"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(DeepQuery, EveryPassOfAChain) {
  constexpr size_t kOperators = 20'000;
  OnSmallStack(kOperators, [] {
    std::string program = "fn (%x: Tensor[(2), float32]) {";
    std::string last = "%x";
    for (size_t i = 0; i < kOperators; ++i) {
      const std::string name = "%" + std::to_string(i);
      program += name + (i % 2 ? " = tanh(" : " = nn.relu(") + last + ");";
      last = name;
    }
    const std::string text = R"([{"name": "deep", "program": ")" + program + last +
                             R"(}", "query": {"passes": ["merge-composite", "annotate", "deconflict", "merge",
      "partition", "fuse", "inline"], "pattern": {"call": "tanh", "args": [{"call": "nn.relu", "args": ["*"]}]}, "label": "a.pair", "supports": {"b": [{"operator": "tanh"}]}}}])";
    const Result<Json> answers = AnswerQueries(text);
    ASSERT_TRUE(answers);
    EXPECT_EQ((*answers)[0]["answer"]["merge-composite"]["count"], kOperators / 2);
    EXPECT_EQ((*answers)[0]["answer"]["merge"]["count"], 1);
  });
}

}  // namespace
}  // namespace collage
