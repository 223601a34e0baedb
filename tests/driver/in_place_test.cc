#include "collage/candidate/in_place.h"

#include <gmock/gmock.h>

#include "collage/lower/save.h"
#include "collage/op/interpreter.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Single operators, a millisecond each.
class Library : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "library"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "sigmoid", "tanh", "concatenate", "strided_slice", "split"})
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    const size_t results = FlattenTensors(function.body->type()).size();
    return {{"only", std::vector<Layout>(function.parameters.size()), std::vector<Layout>(results)}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [] { return 1e-3; });
  }
};

constexpr const char* kProgram = R"(fn (%x: Tensor[(1, 16, 2, 2), float32]) {
  %0 = nn.relu(%x);
  %1 = tanh(%x);
  %2 = (%0, %1);
  %3 = concatenate(%2, axis=1);
  %4 = sigmoid(%3);
  %5 = strided_slice(%4, begin=[16], end=[32], axes=[1]);
  tanh(%5)
})";

class InPlaceTest : public testing::Test {
 protected:
  static Expr Parsed(const std::string& text) { return ParseExpr(text, Operators()).value().expr; }
  Decided Start(const UserConstraints& constraints = {}) { return Decided(Parsed(kProgram), {&library_}, cache_, {}, {}, constraints); }
  size_t KernelsWith(const UserConstraints& constraints) {
    Decided decided = Start(constraints);
    EXPECT_TRUE(decided.Decide());
    return decided.Plans().plans.front().kernels.size();
  }
  std::vector<std::string> OfferedIn(const std::string& text) {
    Decided decided(Parsed(text), {&library_}, cache_);
    std::vector<std::string> operators;
    for (const PricedCandidate& candidate : decided.placement().candidates) {
      const DataflowGraph& graph = *decided.placement().graph;
      if (IsInPlace(candidate.candidate) && !candidate.variants.empty())
        operators.push_back(graph[candidate.candidate.sub_graph.inside().First()].op->name);
    }
    return operators;
  }

  SimulatedClock clock_;
  Library library_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(InPlaceTest, JoinsAndSlicesNeedNoKernel) {
  Decided decided = Start();
  ASSERT_TRUE(decided.Decide());
  const Plan plan = decided.Plans().plans.front();
  EXPECT_EQ(plan.kernels.size(), 4u);
  const IRModule module = Apply(decided.placement(), plan).value();
  LoweredModel model = Lower(module, decided.lower()).value();
  for (const StepProfile& step : model.executable.profile()) EXPECT_EQ(step.kind, "kernel");
  Tensor input(TensorType{{1, 16, 2, 2}, DType::kFloat32});
  FillRandom(input, 3);
  const Tensor expected = InterpretFunction(Parsed(kProgram), {input}).value().front();
  EXPECT_TRUE(BitwiseEqual(model.executable.Run(std::vector<Tensor>{input}).value().front(), expected));
  EXPECT_TRUE(BitwiseEqual(InterpretMain(module, {input}).value().front(), expected));
  const CompileReport report = decided.Report(plan);
  const std::string text = ExplanationText(report, ExplanationDetail::kOperators);
  EXPECT_THAT(text, HasSubstr("host in place plain"));
  EXPECT_THAT(ExplanationText(report, ExplanationDetail::kPartitions), HasSubstr("without a kernel"));
}

TEST_F(InPlaceTest, WhatTheUserSaysHolds) {
  EXPECT_EQ(KernelsWith({{}, {"in_place"}}), 6u);
  EXPECT_EQ(KernelsWith({{}, {"in_place:strided_slice"}}), 5u);
  EXPECT_EQ(KernelsWith({{"concatenate=library"}, {}}), 5u);
}

TEST_F(InPlaceTest, ASingleBackendJoinsByItself) {
  Decided decided = Start();
  ASSERT_TRUE(decided.Decide(decided.placement().AllowedFor(0)));
  const std::vector<Plan> plans = decided.Plans().plans;
  ASSERT_GE(plans.size(), 2u);
  EXPECT_EQ(plans[0].kernels.size(), 4u);
  EXPECT_EQ(plans[1].kernels.size(), 6u);
}

TEST_F(InPlaceTest, OfferedWhereTensorsMayLieTogether) {
  const std::string begin = "fn (%x: Tensor[(1, 16, 2, 2), float32]) { %0 = nn.relu(%x); %1 = tanh(%x); ";
  EXPECT_THAT(OfferedIn(begin + "%2 = (%0, %1); concatenate(%2, axis=1) }"), ElementsAre("concatenate"));
  EXPECT_THAT(OfferedIn(begin + "%2 = (%0, %x); concatenate(%2, axis=1) }"), IsEmpty()) << "an input lies elsewhere";
  EXPECT_THAT(OfferedIn(begin + "%2 = (%0, %0); %3 = concatenate(%2, axis=1); %4 = (%3, %1); %4 }"), IsEmpty()) << "it has one place";
  EXPECT_THAT(OfferedIn(begin + "%2 = (%0, %1); concatenate(%2, axis=3) }"), IsEmpty()) << "not one after another";
  EXPECT_THAT(OfferedIn("fn (%x: Tensor[(1, 12, 1, 2), float32]) { %0 = split(%x, indices_or_sections=4, axis=1); %0.1 }"), IsEmpty())
      << "not aligned";
  EXPECT_THAT(OfferedIn("fn (%x: Tensor[(1, 16, 2, 2), float32]) { %0 = split(%x, indices_or_sections=4, axis=1); tanh(%0.1) }"),
              ElementsAre("split"));
  EXPECT_THAT(OfferedIn("fn (%x: Tensor[(1, 16, 2, 2), float32]) { strided_slice(%x, begin=[0], end=[16], strides=[2], axes=[1]) }"),
              IsEmpty())
      << "every second one";
}

}  // namespace
}  // namespace collage
