#include "collage/partition/cover.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/candidate/gather.h"
#include "collage/dataflow/contraction.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "collage/op/table.h"
#include "collage/partition/single_backend.h"
#include "tests/dataflow/evaluate.h"
#include "tests/ir/programs.h"

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
                    {"library.relu", CallOf("nn.relu", {Wildcard()}), {}}};
  return rules;
}

BackendRules Compiler() {
  return {BackendRules::Style::kPredicate, {}, [](const Expr& call) {
            return CalledOp(call)->name == "nn.pad" || CalledOp(call)->name == "subtract" ? Verdict::Reject("unsupported")
                                                                                          : Verdict::Accept();
          }};
}

class Partition : public ::testing::Test {
 protected:
  Result<std::vector<CandidatePartition>> Candidates(const DataflowGraph& graph) const {
    const std::vector<Target> targets = {Target::Parse("cpu -compiler=library").value(), Target::Parse("cpu -compiler=compiler").value()};
    return AllCandidates(graph, GatherPartitionSpecs(targets, [&](const std::string& name) {
                                  return name == "library" ? &library_ : name == "compiler" ? &compiler_ : &native_;
                                }).value());
  }

  const BackendRules library_ = Library();
  const BackendRules compiler_ = Compiler();
  const BackendRules native_{BackendRules::Style::kNative, {}, {}};
};

void ExpectEquivalent(const IRModule& partitioned, const Expr& original, uint64_t seed) {
  const Status verified = Verify(partitioned);
  ASSERT_TRUE(verified) << verified.error().message << "\n" << Print(partitioned);
  ExpectSameResults(partitioned.MainExpr(), original, seed);
}

TEST_F(Partition, MnistInItsPartitionedForm) {
  std::unordered_map<std::string, Expr> names;
  const IRModule module = IRModule::FromMain(ParseFunction(kMnist, &names));
  const DataflowGraph graph(module.MainExpr());
  const auto cover = SingleBackendCover(graph, Candidates(graph).value(), "library", nullptr).value();
  ASSERT_TRUE(CheckCover(graph, cover));
  const IRModule partitioned = ApplyCover(module, graph, cover).value();
  const std::string text = Print(partitioned);
  for (const char* part : {"Primitive=1, Compiler=\"library\", global_symbol=\"collage_library_conv2d_bias_relu\"",
                           "global_symbol=\"collage_library_conv2d_bias_relu_1\"", "global_symbol=\"collage_library_dense_bias\"",
                           "Composite=\"library.conv2d_bias_relu\"", "= reshape("}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  ExpectEquivalent(partitioned, module.MainExpr(), 1);
}

TEST_F(Partition, EverySingleBackendPlanIsACover) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const IRModule module = IRModule::FromMain(RandomFunction(seed, 18));
    const DataflowGraph graph(module.MainExpr());
    const auto candidates = Candidates(graph).value();
    for (const char* backend : {"library", "compiler", "native"}) {
      const Result<Cover> cover = SingleBackendCover(graph, candidates, backend, FallbackSpec("reference"));
      if (!cover) {
        EXPECT_NE(cover.error().message.find("takes no part"), std::string::npos) << cover.error().message;
        continue;
      }
      const Status checked = CheckCover(graph, *cover);
      ASSERT_TRUE(checked) << checked.error().message;
      ExpectEquivalent(ApplyCover(module, graph, *cover).value(), module.MainExpr(), seed);
    }
  }
}

/// Random disjoint candidates of all specs, applied, saved, loaded, joined and inlined again.
TEST_F(Partition, RandomPlansKeepResults) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const IRModule module = IRModule::FromMain(RandomFunction(seed, 4 + random() % 25));
    const DataflowGraph graph(module.MainExpr());
    std::vector<CandidatePartition> candidates = Candidates(graph).value();
    std::shuffle(candidates.begin(), candidates.end(), random);
    Cover cover;
    IndexSet covered;
    for (const CandidatePartition& candidate : candidates) {
      if (candidate.spec->is_host || covered.Intersects(candidate.sub_graph.inside())) continue;
      cover.push_back({candidate, {{"Variant", "direct"}}});
      if (!IsAcyclicCover(graph, cover)) {
        EXPECT_FALSE(ApplyCover(module, graph, cover));
        cover.pop_back();
        continue;
      }
      covered |= candidate.sub_graph.inside();
    }
    const IRModule partitioned = ApplyCover(module, graph, cover).value();
    ExpectEquivalent(partitioned, module.MainExpr(), seed);

    const std::string saved = SavePlan(graph, cover);
    const IRModule again = ApplyCover(module, graph, LoadPlan(graph, saved).value()).value();
    EXPECT_TRUE(StructuralEqual(partitioned, again)) << "seed " << seed;

    const IRModule plain = InlinePartitions(partitioned, {}).value();
    EXPECT_EQ(Print(plain).find("Primitive"), std::string::npos);
    EXPECT_EQ(Print(plain).find("Composite"), std::string::npos);
    ExpectEquivalent(plain, module.MainExpr(), seed);
    EXPECT_NE(Print(InlinePartitions(partitioned, {"library"}).value()), std::string());
    EXPECT_EQ(Print(InlinePartitions(partitioned, {"library"}).value()).find("\"library\""), std::string::npos);

    const Cover joined = JoinAdjacent(graph, cover, [](const auto&, const auto&, const auto&) { return true; });
    EXPECT_LE(joined.size(), cover.size());
    ASSERT_TRUE(IsAcyclicCover(graph, joined));
    const Cover joined_from_file =
        JoinAdjacent(graph, LoadPlan(graph, saved).value(), [](const auto&, const auto&, const auto&) { return true; });
    EXPECT_TRUE(StructuralEqual(ApplyCover(module, graph, joined_from_file).value(), ApplyCover(module, graph, joined).value()));
    ExpectEquivalent(ApplyCover(module, graph, joined).value(), module.MainExpr(), seed);
  }
}

TEST_F(Partition, PartitionedTextRoundTripsAndInlinesBack) {
  const IRModule module = IRModule::FromMain(ParseFunction(kMnist));
  const DataflowGraph graph(module.MainExpr());
  const auto cover = SingleBackendCover(graph, Candidates(graph).value(), "compiler", nullptr).value();
  const IRModule partitioned = ApplyCover(module, graph, cover).value();
  const PrintedText printed = PrintModule(partitioned);
  ParseOptions options;
  options.constants = printed.constants;
  EXPECT_TRUE(StructuralEqual(ParseModule(printed.text, Operators(), options)->module, partitioned));
  EXPECT_TRUE(StructuralEqual(InlinePartitions(partitioned, {}).value(), module));
}

TEST_F(Partition, PlansThatDoNotFitAreErrors) {
  const DataflowGraph graph(ParseFunction(kMnist));
  const DataflowGraph other(ParseFunction("fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.relu(%x) }"));
  const std::string saved = SavePlan(graph, SingleBackendCover(graph, Candidates(graph).value(), "native", nullptr).value());
  EXPECT_NE(LoadPlan(other, saved).error().message.find("another program"), std::string::npos);
  EXPECT_NE(LoadPlan(graph, "{").error().message.find("plan: "), std::string::npos);
  EXPECT_NE(LoadPlan(graph, "[]").error().message.find("plan: "), std::string::npos);
  EXPECT_NE(LoadPlan(graph, "{\"format\": 3}").error().message.find("format"), std::string::npos);
  std::string damaged = saved;
  damaged.replace(damaged.find("\"inside\": ["), 11, "\"inside\": [99999,");
  EXPECT_NE(LoadPlan(graph, damaged).error().message.find("99999"), std::string::npos);
  EXPECT_FALSE(SingleBackendCover(graph, {}, "library", nullptr));
  EXPECT_NE(CheckCover(graph, {}).error().message.find("nn.pad"), std::string::npos);
}

TEST_F(Partition, ACoverMustBeAcyclicAsAWhole) {
  std::unordered_map<std::string, Expr> names;
  const IRModule module = IRModule::FromMain(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = nn.relu(%x); %1 = tanh(%x); %2 = exp(%0); %3 = sqrt(%1); add(%2, %3)
  })",
                                                           &names));
  const DataflowGraph graph(module.MainExpr());
  const auto chosen = [&](const char* a, const char* b) {
    const SubGraph sub(graph, IndexSet({graph.IndexOf(names.at(a)), graph.IndexOf(names.at(b))}));
    const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{"compiler", {Target{}}, nullptr});
    return ChosenPartition{{sub.WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", "compiler"}}), spec}, {}};
  };
  // Each is convex by itself, and each feeds the other.
  const Cover cover = {chosen("0", "3"), chosen("1", "2")};
  for (const ChosenPartition& one : cover) EXPECT_TRUE(one.candidate.sub_graph.IsConvex(graph));
  EXPECT_FALSE(IsAcyclicCover(graph, cover));
  EXPECT_NE(ApplyCover(module, graph, cover).error().message.find("cycle"), std::string::npos);
  EXPECT_TRUE(IsAcyclicCover(graph, {chosen("0", "1"), chosen("2", "3")}));
}

TEST_F(Partition, ALiteralThatTwoPartitionsCallIsCopiedCleanly) {
  std::unordered_map<std::string, Expr> names;
  const IRModule module = IRModule::FromMain(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %2 = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { let %z = tanh(%y); add(%z, %x) };
    %3 = %2(%x);
    %4 = exp(%3);
    %5 = %2(%4);
    sqrt(%5)
  })",
                                                           &names));
  const DataflowGraph graph(module.MainExpr());
  const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{"compiler", {Target{}}, nullptr});
  Cover cover;
  for (const char* name : {"3", "5"}) {
    const SubGraph sub(graph, IndexSet({graph.IndexOf(names.at(name))}));
    cover.push_back({{sub.WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", "compiler"}}), spec}, {}});
  }
  ExpectEquivalent(ApplyCover(module, graph, cover).value(), module.MainExpr(), 1);
}

}  // namespace
}  // namespace collage
