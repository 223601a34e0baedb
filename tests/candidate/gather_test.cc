#include "collage/candidate/gather.h"

#include <gmock/gmock.h>

#include <map>

#include "collage/dataflow/extraction.h"
#include "collage/op/table.h"
#include "tests/dataflow/evaluate.h"
#include "tests/ir/programs.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace)

class Gather : public ::testing::Test {
 protected:
  Gather() {
    BackendRules library;
    const Pattern conv = CallOf("nn.conv2d", {Wildcard(), IsConstant()});
    const Pattern bias = CallOf("add", {conv, IsConstant()});
    library.patterns = {
        {"library.conv2d_bias_relu", CallOf("nn.relu", {bias}), {}},
        {"library.conv2d_bias", bias, {}},
        {"library.conv2d", conv, {}},
        {"library.dense", CallOf("nn.dense", {Wildcard(), Wildcard()}), [](const Match&) { return Verdict::Reject("too small"); }}};
    BackendRules graph_compiler{BackendRules::Style::kPredicate, {}, [](const Expr& call) {
                                  return CalledOp(call)->name == "nn.pad" ? Verdict::Reject("no pad") : Verdict::Accept();
                                }};
    rules_["library"] = library;
    rules_["compiler"] = graph_compiler;
    rules_["native"] = {BackendRules::Style::kNative, {}, {}};
    rules_["silent"] = {};
  }
  const BackendRules* Of(const std::string& name) const {
    const auto at = rules_.find(name);
    return at == rules_.end() ? nullptr : &at->second;
  }
  Result<std::vector<SpecPointer>> Specs(const std::vector<std::string>& texts, const GatherOptions& options = {}) const {
    std::vector<Target> targets;
    for (const std::string& text : texts) targets.push_back(Target::Parse(text).value());
    return GatherPartitionSpecs(
        targets, [&](const std::string& name) { return Of(name); }, options);
  }

  std::map<std::string, BackendRules> rules_;
};

TEST_F(Gather, NativeAndHostAreAlwaysThere) {
  const auto specs = Specs({"cpu -compiler=library", "cpu -compiler=compiler"}).value();
  std::vector<std::string> names;
  for (const SpecPointer& spec : specs) names.push_back(spec->name);
  EXPECT_EQ(names, (std::vector<std::string>{"library", "compiler", "native", "host"}));
  EXPECT_EQ(Specs({"cpu"})->size(), 2u);
}

TEST_F(Gather, AMalformedPatternIsAnErrorThatNamesOperatorAndRule) {
  rules_["library"].patterns.push_back({"library.rely", CallOf("nn.rely", {Wildcard()}), {}});
  EXPECT_EQ(Specs({"cpu -compiler=library"}).error().message,
            "target 'cpu -compiler=library': rule 'library.rely': there is no operator 'nn.rely'");
  rules_["library"].patterns = {{"library.nothing", CallOf("nn.relu", {Or({})}), {}}};
  EXPECT_EQ(Specs({"cpu -compiler=library"}).error().message,
            "target 'cpu -compiler=library': rule 'library.nothing': an alternative of nothing matches nothing");
  rules_["library"].patterns = {{"", CallOf("nn.relu", {Wildcard()}), {}}};
  EXPECT_NE(Specs({"cpu -compiler=library"}).error().message.find("has no label"), std::string::npos);
}

TEST_F(Gather, ErrorsNameTheTarget) {
  EXPECT_NE(Specs({"cpu -compiler=nobody"}).error().message.find("nobody"), std::string::npos);
  EXPECT_NE(Specs({"cpu -compiler=library", "cpu -compiler=library"}).error().message.find("twice"), std::string::npos);
  EXPECT_NE(Specs({"cpu -compiler=silent"}).error().message.find("neither"), std::string::npos);
  EXPECT_NE(Specs({"cpu -compiler=library -partition_rule=mine"}).error().message.find("mine"), std::string::npos);
}

TEST_F(Gather, NamedRulesAreTakenAsTheyAre) {
  GatherOptions options;
  const Rule rule = OpPredicateRule("mine", {});
  options.stated_rules["mine"] = [&](const std::string& compiler) { return compiler == "library" ? rule : nullptr; };
  const auto specs = Specs({"cpu -compiler=library -partition_rule=mine"}, options).value();
  EXPECT_EQ(specs[0]->rule, rule);
}

TEST_F(Gather, MnistCandidates) {
  const DataflowGraph graph(ParseFunction(kMnist));
  const auto specs = Specs({"cpu -compiler=library", "cpu -compiler=compiler", "cpu"}).value();
  std::vector<Refusal> refusals;
  const std::vector<CandidatePartition> candidates = AllCandidates(graph, specs, &refusals);
  std::map<std::string, size_t> count;
  for (const CandidatePartition& candidate : candidates) {
    ++count[candidate.spec->name];
    if (candidate.spec->is_host) continue;
    EXPECT_TRUE(candidate.sub_graph.IsConvex(graph));
    EXPECT_TRUE(candidate.sub_graph.nested().front().attributes.Has("Primitive"));
    const Expr function = ExtractFunction(graph, candidate.sub_graph)->function;
    EXPECT_EQ(function->As<Function>()->attributes.Has("Compiler"), candidate.spec->name != "native");
  }
  EXPECT_EQ(count["library"], 6u);  // two convolutions, three ways each; the dense is refused
  EXPECT_GT(count["compiler"], 5u);
  EXPECT_GT(count["native"], 13u);
  EXPECT_EQ(count["host"], graph.size() - 12u);  // 13 calls, one of them (reshape) a view
  size_t too_small = 0;
  for (const Refusal& refusal : refusals) too_small += refusal.reason == "too small" ? 1 : 0;
  EXPECT_EQ(too_small, 1u);
}

TEST_F(Gather, FallbackTakesEachCallAlone) {
  const DataflowGraph graph(ParseFunction(kMnist));
  const std::vector<CandidatePartition> fallback = AllCandidates(graph, FallbackSpec("reference"));
  EXPECT_EQ(fallback.size(), 13u);
  for (const CandidatePartition& candidate : fallback) EXPECT_EQ(candidate.spec->name, "reference");
}

TEST_F(Gather, ChainOfTenThousandStaysNearLinear) {
  const Type type = TensorType{{2}, DType::kFloat32};
  const auto count = [&](size_t length) {
    const Expr x = MakeVar("x", type);
    Expr value = x;
    for (size_t i = 0; i < length; ++i) value = MakeCall(Operators().Find(i % 3 == 0 ? "tanh" : "nn.relu"), {value}).value();
    const DataflowGraph graph(MakeFunction({x}, value).value());
    return AllCandidates(graph, Specs({"cpu -compiler=library", "cpu -compiler=compiler", "cpu"}).value()).size();
  };
  EXPECT_LT(count(Rounds(10'000)), 11 * count(Rounds(1'000)));
}

}  // namespace
}  // namespace collage
