#include "collage/partition/classic_flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "collage/partition/cover.h"
#include "collage/partition/fuse.h"
#include "tests/dataflow/evaluate.h"
#include "tests/ir/programs.h"
#include "tests/partition/random_program.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace)

BackendRules Library() {
  BackendRules rules;
  const Pattern conv = CallOf("nn.conv2d", {Wildcard(), IsConstant()});
  rules.patterns = {{"library.conv2d_bias_relu", CallOf("nn.relu", {CallOf("add", {conv, IsConstant()})}), {}},
                    {"library.conv2d", conv, {}},
                    {"library.dense_bias", CallOf("add", {CallOf("nn.dense", {Wildcard(), Wildcard()}), IsConstant()}), {}},
                    {"library.add_tanh", CallOf("tanh", {CallOf("add", {Wildcard(), Wildcard()})}), {}},
                    {"library.multiply_add", CallOf("add", {CallOf("multiply", {Wildcard(), IsConstant()}), Wildcard()}), {}},
                    {"library.relu", CallOf("nn.relu", {Wildcard()}), {}}};
  return rules;
}

BackendRules Supporting(std::vector<std::string> refused) {
  BackendRules rules;
  rules.style = BackendRules::Style::kPredicate;
  rules.supports = [refused = std::move(refused)](const Expr& call) {
    const bool is_refused = std::find(refused.begin(), refused.end(), CalledOp(call)->name) != refused.end();
    return is_refused ? Verdict::Reject("unsupported") : Verdict::Accept();
  };
  return rules;
}

/// A function in text, and the sets of its nodes by name.
class Named {
 public:
  explicit Named(const std::string& text) : function_(ParseFunction(text, &names_)), graph_(function_) {}
  [[nodiscard]] const DataflowGraph& graph() const { return graph_; }
  [[nodiscard]] const Expr& function() const { return function_; }
  [[nodiscard]] PostDfsIndex operator[](const std::string& name) const { return graph_.IndexOf(names_.at(name)); }
  [[nodiscard]] IndexSet Set(const std::vector<std::string>& names) const {
    IndexSet set;
    for (const std::string& name : names) set.Add((*this)[name]);
    return set;
  }
  /// Single nodes of each backend in turn.
  [[nodiscard]] std::vector<SupportedRegion> Assigned(const std::vector<std::vector<std::string>>& by_backend) const {
    std::vector<SupportedRegion> assigned;
    for (size_t i = 0; i < by_backend.size(); ++i) {
      for (const std::string& name : by_backend[i]) assigned.push_back({i, IndexSet({(*this)[name]}), {}});
    }
    return assigned;
  }

 private:
  std::unordered_map<std::string, Expr> names_;
  Expr function_;
  DataflowGraph graph_;
};

std::vector<IndexSet> NodesOf(const std::vector<BackendRegion>& regions) {
  std::vector<IndexSet> nodes;
  for (const BackendRegion& region : regions) nodes.push_back(region.nodes);
  return nodes;
}

void ExpectSameModule(const IRModule& actual, const IRModule& expected, uint64_t seed, const char* what) {
  const Status verified = Verify(actual);
  ASSERT_TRUE(verified) << what << ", seed " << seed << ": " << verified.error().message << "\n" << Print(actual);
  const std::vector<Tensor> inputs = RandomInputs(expected.MainExpr(), seed);
  const auto a = InterpretMain(actual, inputs);
  const auto e = InterpretMain(expected, inputs);
  ASSERT_TRUE(e) << e.error().message;
  ASSERT_TRUE(a) << what << ", seed " << seed << ": " << a.error().message << "\n" << Print(actual);
  ASSERT_EQ(a->size(), e->size());
  for (size_t i = 0; i < a->size(); ++i) ASSERT_TRUE(BitwiseEqual((*a)[i], (*e)[i])) << what << ", seed " << seed;
}

constexpr const char* kDiamond = R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  %0 = nn.relu(%x); %1 = tanh(%0); %2 = sigmoid(%0); %3 = add(%1, %2); %4 = abs(%3); %4 })";

TEST(Classic, AnnotateGivesEveryBackendWhatItSupportsAndNativeEverything) {
  const Named program(kMnist);
  const BackendRules library = Library();
  const BackendRules compiler = Supporting({"nn.pad"});
  const std::vector<SupportedRegion> supported = Annotate(program.graph(), {{"library", &library}, {"compiler", &compiler}});
  std::vector<size_t> count(3, 0);
  for (const SupportedRegion& region : supported) ++count[region.backend];
  EXPECT_EQ(count, (std::vector<size_t>{2 + 2 + 1 + 2, 11, 13}));
}

TEST(Classic, EveryCallHasExactlyOneTarget) {
  const Named program(kMnist);
  const BackendRules library = Library();
  const BackendRules compiler = Supporting({"nn.pad"});
  const std::vector<NamedRules> backends = {{"library", &library}, {"compiler", &compiler}};
  const std::vector<SupportedRegion> supported = Annotate(program.graph(), backends);
  const auto owners = [&](const PreferRegion& prefer) {
    std::vector<size_t> owner(program.graph().size(), 99);
    for (const SupportedRegion& region : Deconflict(program.graph(), supported, 2, prefer)) {
      region.nodes.ForEach([&](PostDfsIndex node) {
        EXPECT_TRUE(owner[node] == 99 || !program.graph()[node].expr->As<Call>());
        owner[node] = region.backend;
      });
    }
    return owner;
  };
  for (const PreferRegion& prefer : {PreferRegion(), PreferInOrder({"compiler"}, backends), PreferInOrder({"native"}, backends)}) {
    const std::vector<size_t> owner = owners(prefer);
    for (PostDfsIndex node = 0; node < owner.size(); ++node) {
      EXPECT_TRUE(owner[node] != 99 || !program.graph()[node].expr->As<Call>()) << node;
    }
  }
  EXPECT_EQ(owners({})[program["3"]], 0u);
  EXPECT_EQ(owners({})[program["0"]], 2u);  // a pad
  EXPECT_EQ(owners(PreferInOrder({"compiler", "library"}, backends))[program["3"]], 1u);
  EXPECT_EQ(owners(PreferInOrder({"native"}, backends))[program["3"]], 2u);
  // A callback: the earliest region wins, whoever's it is.
  const PreferRegion earliest = [](const SupportedRegion& a, const SupportedRegion& b) { return a.nodes < b.nodes; };
  EXPECT_EQ(owners(earliest)[program["3"]], 0u);
  EXPECT_EQ(owners(earliest)[program["4"]], 1u);
}

TEST(Classic, APathThatLeavesARegionMayNotReEnterIt) {
  const Named program(kDiamond);
  // %2 is not of the region, so %3 cannot be in one with %0; the region that grows from the earliest node takes %1.
  const std::vector<BackendRegion> regions = MergeAssigned(program.graph(), program.Assigned({{"0", "1", "3", "4"}}), 1);
  EXPECT_EQ(NodesOf(regions), (std::vector<IndexSet>{program.Set({"0", "1"}), program.Set({"3", "4"})}));
  EXPECT_EQ(MergeAssigned(program.graph(), program.Assigned({{"0", "1", "2", "3", "4"}}), 1).size(), 1u);
}

TEST(Classic, NotThroughOtherRegionsEither) {
  const Named program(R"(fn (%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> (Tensor[(2), float32], Tensor[(2), float32]) {
    %0 = nn.relu(%x); %1 = tanh(%y); %2 = add(%0, %1); %3 = subtract(%1, %0); (%2, %3) })");
  // {%0, %3} and {%1, %2} are convex, but each feeds the other: the earlier one wins.
  const std::vector<BackendRegion> regions = MergeAssigned(program.graph(), program.Assigned({{"0", "3"}, {"1", "2"}}), 2);
  EXPECT_EQ(NodesOf(regions), (std::vector<IndexSet>{program.Set({"0", "3"}), program.Set({"1"}), program.Set({"2"})}));
}

TEST(Classic, TheRegionOfTheEarliestNodeWinsThoughAnotherEndsEarlier) {
  const Named program(R"(fn (%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> (Tensor[(2), float32], Tensor[(2), float32]) {
    %0 = nn.relu(%x); %1 = tanh(%y); %2 = add(%0, %1); %3 = subtract(%0, %1); (%2, %3) })");
  const std::vector<BackendRegion> regions = MergeAssigned(program.graph(), program.Assigned({{"0", "3"}, {"1", "2"}}), 2);
  EXPECT_EQ(NodesOf(regions), (std::vector<IndexSet>{program.Set({"0", "3"}), program.Set({"1"}), program.Set({"2"})}));
}

TEST(Classic, BranchesOfIfAreRespected) {
  const Named program(R"(fn (%x: Tensor[(2), float32], %c: Tensor[(), bool]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x);
    %6 = if (%c) { %1 = tanh(%0); %2 = abs(%1); %2 } else { %3 = sigmoid(%0); %4 = exp(%3); %4 };
    %7 = negative(%6);
    sqrt(%7) })");
  const std::vector<BackendRegion> regions = MergeAssigned(program.graph(), program.Assigned({{"0", "1", "2", "3", "4", "7"}}), 1);
  EXPECT_EQ(NodesOf(regions),
            (std::vector<IndexSet>{program.Set({"0"}), program.Set({"1", "2"}), program.Set({"3", "4"}), program.Set({"7"})}));
}

TEST(Classic, TuplesAndProjectionsBelongToTheRegionOfAllTheirNeighbours) {
  const Named program(R"(fn (%x: Tensor[(2, 4), float32]) -> (Tensor[(2, 2), float32], Tensor[(2, 4), float32]) {
    %0 = split(%x, indices_or_sections=2, axis=1);
    %1 = %0.0; %2 = %0.1;
    %3 = nn.relu(%1);
    %4 = tanh(%2);
    %5 = (%3, %1);
    %6 = concatenate(%5, axis=1);
    (%4, %6) })");
  const std::vector<BackendRegion> all = MergeAssigned(program.graph(), program.Assigned({{"0", "3", "4", "6"}}), 1);
  EXPECT_EQ(NodesOf(all), (std::vector<IndexSet>{program.Set({"0", "1", "2", "3", "4", "5", "6"})}));
  const std::vector<BackendRegion> some = MergeAssigned(program.graph(), program.Assigned({{"0", "3", "6"}}), 1);
  EXPECT_EQ(NodesOf(some), (std::vector<IndexSet>{program.Set({"0", "1", "3", "5", "6"})}));
}

TEST(Classic, PartitionSharesInputsAndOutputsAndTellsSeveralOutputsApart) {
  const IRModule module =
      IRModule::FromMain(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> (Tensor[(2), float32], Tensor[(2), float32]) {
    %0 = nn.relu(%x); %1 = add(%0, %x); %2 = abs(%1); %3 = exp(%2); %4 = subtract(%3, %2);
    (%1, %4) })"));
  const BackendRules compiler = Supporting({"exp", "subtract"});
  const IRModule partitioned = PartitionClassic(module, {{"c", &compiler}}).value();
  EXPECT_EQ(Print(partitioned), R"(def @main(%x: Tensor[(2,), float32]) -> (Tensor[(2,), float32], Tensor[(2,), float32]) {
  %3 = fn (%FunctionVar_0: Tensor[(2,), float32], Primitive=1, Compiler="c", global_symbol="collage_c_nn_relu_add_abs") -> (Tensor[(2,), float32], Tensor[(2,), float32]) {
    %0 = nn.relu(%FunctionVar_0);
    %1 = add(%0, %FunctionVar_0);
    %2 = abs(%1);
    (%1, %2)
  };
  %4 = %3(%x);
  %5 = %4.0;
  %6 = %4.1;
  %7 = exp(%6);
  %8 = subtract(%7, %6);
  (%5, %8)
}
)");
  EXPECT_TRUE(StructuralEqual(InlinePartitions(partitioned, {}).value(), module)) << Print(InlinePartitions(partitioned, {}).value());
}

TEST(Classic, ConstantsAreBoundOrPassed) {
  const IRModule module = IRModule::FromMain(ParseFunction(kMnist));
  const BackendRules compiler = Supporting({"nn.pad"});
  const IRModule bound = PartitionClassic(module, {{"c", &compiler}}).value();
  const IRModule passed = PartitionClassic(module, {{"c", &compiler}}, {.bind_constants = false}).value();
  EXPECT_EQ(Print(bound).find("%FunctionVar_1:"), std::string::npos);
  EXPECT_NE(Print(passed).find("%FunctionVar_4:"), std::string::npos) << Print(passed);
  ExpectSameModule(bound, module, 1, "bound");
  ExpectSameModule(passed, module, 1, "passed");
}

TEST(Classic, EveryFunctionOfAModuleIsPartitionedWithUniqueSymbols) {
  const IRModule module = ParseModule(R"(
    def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { %0 = @f(%x); nn.relu(%0) }
    def @f(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.relu(%x) })",
                                      Operators())
                              ->module;
  const BackendRules compiler = Supporting({});
  const IRModule partitioned = PartitionClassic(module, {{"c", &compiler}}).value();
  EXPECT_NE(Print(partitioned).find("\"collage_c_nn_relu\""), std::string::npos);
  EXPECT_NE(Print(partitioned).find("\"collage_c_nn_relu_1\""), std::string::npos);
  ExpectSameModule(partitioned, module, 1, "two functions");
}

TEST(Classic, MergeCompositeIsGreedyInTableOrderAndLabelsNameTheirBackend) {
  const Expr function = ParseFunction(kMnist);
  const BackendRules library = Library();
  const Expr merged = MergeComposite(function, library.patterns).value();
  const std::string text = Print(merged);
  EXPECT_NE(text.find("Composite=\"library.conv2d_bias_relu\""), std::string::npos);
  EXPECT_EQ(text.find("Composite=\"library.conv2d\""), std::string::npos);
  ExpectSameModule(IRModule::FromMain(merged), IRModule::FromMain(function), 1, "merged");
  // Written into the program, or kept beside it: the same regions, and only for the backend that the label names.
  const BackendRules nothing;
  const DataflowGraph rewritten(merged);
  const DataflowGraph graph(function);
  const std::vector<NestedSubGraph> composites = FindComposites(graph, library.patterns);
  ASSERT_EQ(composites.size(), 3u);
  for (const auto& [name, count] : {std::pair{"library", 3u}, std::pair{"librar", 0u}}) {
    for (const auto& supported : {Annotate(rewritten, {{name, &nothing}}), Annotate(graph, {{name, &nothing}}, composites)}) {
      EXPECT_EQ(std::count_if(supported.begin(), supported.end(), [](const SupportedRegion& region) { return region.backend == 0; }),
                count);
    }
  }
  const std::vector<BackendRegion> regions =
      MergeAssigned(graph, Deconflict(graph, Annotate(graph, {{"library", &nothing}}, composites), 1), 1);
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_EQ(regions[0].composites.size(), 1u);
  // Without Primitive around, the label names the backend that is inlined.
  EXPECT_TRUE(StructuralEqual(InlinePartitions(IRModule::FromMain(merged), {"library"}).value(), IRModule::FromMain(function)));
  EXPECT_EQ(Print(InlinePartitions(IRModule::FromMain(merged), {"other"}).value()), Print(IRModule::FromMain(merged)));
}

TEST(Classic, AMalformedPatternIsAnErrorThatNamesOperatorAndRule) {
  const IRModule module = IRModule::FromMain(ParseFunction(kDiamond));
  BackendRules library = Library();
  library.patterns.push_back({"library.rely", CallOf("tanh", {CallOf("nn.rely", {Wildcard()})}), {}});
  EXPECT_EQ(PartitionClassic(module, {{"library", &library}}).error().message,
            "backend library: rule 'library.rely': there is no operator 'nn.rely'");
  EXPECT_EQ(MergeComposite(module.MainExpr(), library.patterns).error().message, "rule 'library.rely': there is no operator 'nn.rely'");
}

TEST(Classic, ABackendsOwnPassSeesItsOwnPartitionsOnly) {
  const IRModule module = IRModule::FromMain(ParseFunction(kDiamond));
  size_t seen = 0;
  BackendRules first = Supporting({"tanh", "sigmoid"});
  BackendRules second = Supporting({"nn.relu", "add", "abs"});
  first.on_partition = [&](const Expr& function) -> Result<Expr> {
    ++seen;
    EXPECT_EQ(*function->As<Function>()->attributes.Find("Compiler")->AsString(), "first");
    Attributes attributes = function->As<Function>()->attributes;
    attributes.Set("Seen", AttributeValue(1));
    return MakeFunction(function->As<Function>()->parameters, function->As<Function>()->body, attributes);
  };
  const IRModule partitioned = PartitionClassic(module, {{"first", &first}, {"second", &second}}).value();
  EXPECT_EQ(seen, 2u);
  EXPECT_NE(Print(partitioned).find("Seen=1"), std::string::npos);
  ExpectSameModule(partitioned, module, 1, "own pass");
  first.on_partition = [](const Expr& function) -> Result<Expr> { return function->As<Function>()->body; };
  EXPECT_NE(PartitionClassic(module, {{"first", &first}}).error().message.find("expected fn"), std::string::npos);
}

/// The property that the whole flow must have: what it makes computes the same, and can be undone.
class ClassicOnRandomPrograms : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ClassicOnRandomPrograms, PartitioningInliningAndFusingKeepResults) {
  const BackendRules library = Library();
  const std::vector<std::string> names = {"nn.relu",  "tanh",    "sigmoid", "abs",         "add", "multiply",
                                          "subtract", "maximum", "split",   "concatenate", "sum", "greater"};
  constexpr uint64_t kSeeds = Rounds(1000);
  for (uint64_t seed = GetParam() * kSeeds; seed < (GetParam() + 1) * kSeeds; ++seed) {
    const IRModule module = RandomProgram(seed).Make();
    const BackendRules compiler = Supporting({names[seed % names.size()], names[seed / 7 % names.size()], names[seed / 3 % names.size()]});
    std::vector<NamedRules> backends = {{"library", &library}, {"compiler", &compiler}};
    if (seed % 2 == 0) std::swap(backends[0], backends[1]);
    if (seed % 5 == 0) backends.resize(1);
    const auto partitioned = PartitionClassic(module, backends, {.bind_constants = seed % 3 != 0});
    ASSERT_TRUE(partitioned) << "seed " << seed << ": " << partitioned.error().message;
    ExpectSameModule(*partitioned, module, seed, "partitioned");
    const auto plain = InlinePartitions(*partitioned, {});
    ASSERT_TRUE(plain) << "seed " << seed << ": " << plain.error().message;
    EXPECT_EQ(Print(*plain).find("Primitive"), std::string::npos);
    EXPECT_EQ(Print(*plain).find("Composite"), std::string::npos);
    ExpectSameModule(*plain, module, seed, "inlined");
    const auto fused = FuseOperators(*partitioned, {.level = static_cast<int>(seed % 4), .max_operators = 1 + seed % 9});
    ASSERT_TRUE(fused) << "seed " << seed << ": " << fused.error().message;
    ExpectSameModule(*fused, module, seed, "fused");
    const auto unfused = InlinePartitions(*fused, {"native"});
    ASSERT_TRUE(unfused) << "seed " << seed << ": " << unfused.error().message;
    ExpectSameModule(*unfused, module, seed, "unfused");
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    if (seed % 10 != 0) continue;
    const PrintedText printed = PrintModule(*fused);
    ParseOptions options;
    options.constants = printed.constants;
    const auto parsed = ParseModule(printed.text, Operators(), options);
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << printed.text;
    ASSERT_TRUE(StructuralEqual(parsed->module, *fused)) << "seed " << seed;
    EXPECT_EQ(Print(parsed->module), printed.text);
  }
}

INSTANTIATE_TEST_SUITE_P(Thousands, ClassicOnRandomPrograms, ::testing::Range<uint64_t>(0, 10));

}  // namespace
}  // namespace collage
