#include "collage/driver/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/backend/backend.h"
#include "collage/driver/more_candidates.h"
#include "collage/driver/placement.h"
#include "collage/ir/parse.h"
#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A library of single operators, with the reference kernels inside.
class Library : public Backend {
 public:
  Library(std::string name, std::vector<std::string> operators) : name_(std::move(name)), operators_(std::move(operators)) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const std::string& op : operators_) {
      rules.patterns.push_back({name_ + "." + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    }
    rules.patterns.push_back({name_ + ".exp", pattern::CallOf("exp", {pattern::Wildcard()}),
                              [](const Match&) { return Verdict::Reject("its kernel has a bug"); }});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function&, const Device&) const override { return {{"only", {Layout()}, {Layout()}}}; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileReference(function, device, variant);
  }

 private:
  std::string name_;
  std::vector<std::string> operators_;
};

constexpr const char* kProgram = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = nn.relu(%1); tanh(%2) }";

class ConstraintsTest : public testing::Test {
 protected:
  Result<PlacementPointer> Place(const UserConstraints& constraints, const std::string& program = kProgram) {
    return PlaceFunction(ParseExpr(program, Operators()).value().expr, constraints);
  }
  Result<PlacementPointer> PlaceFunction(const Expr& function, const UserConstraints& constraints) {
    return MakePlacement(function, {TargetOf(left_), TargetOf(right_)}, pricer_, progress_, constraints);
  }
  Decided Start(const Expr& function, const UserConstraints& constraints) {
    return Decided(function, {&left_, &right_}, cache_, {}, {}, constraints);
  }
  std::string UncoveredIn(const Expr& function, const UserConstraints& constraints) {
    return Start(function, constraints).Decide().error().message;
  }
  /// The program as if it had been read from a model with the nodes "relu_a", "sigmoid_b" and "relu_c", "tanh_d" (with "mul_e").
  static Expr Model() {
    const std::vector<std::vector<std::string>> nodes = {{"relu_a"}, {"sigmoid_b"}, {"relu_c"}, {"tanh_d", "mul_e"}};
    size_t next = 0;
    const auto name = [&](const Expr&, const Expr& expr) -> Result<Expr> {
      if (!CalledOp(expr)) return expr;
      std::vector<Origin> origins;
      for (const std::string& node : nodes[next++])
        origins.push_back(Origin({OriginPart::Kind::kOnnxNode, node, 10 * next + origins.size()}));
      return WithOrigin(expr, Origin::Union(origins));
    };
    return Rewrite(ParseExpr(kProgram, Operators()).value().expr, name).value();
  }
  std::vector<std::string> BackendsOf(const UserConstraints& constraints) {
    Decided decided = Start(Parsed(kProgram), constraints);
    EXPECT_TRUE(decided.Decide());
    std::vector<std::string> backends;
    const CompileReport report = decided.Report(decided.Plans().plans.front());
    for (const OperatorPlacement& op : report.operators) backends.push_back(op.backend);
    return backends;
  }
  std::string ErrorOf(const UserConstraints& constraints) {
    const Result<PlacementPointer> placement = Place(constraints);
    return placement ? "no error" : placement.error().message;
  }

  Library left_{"left", {"nn.relu", "sigmoid", "tanh"}};
  Library right_{"right", {"nn.relu", "sigmoid"}};
  Progress progress_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  Pricer pricer_{{}, cache_, {}};
};

TEST_F(ConstraintsTest, PinnedNodesRunWhereTheUserSays) {
  EXPECT_EQ(BackendsOf({{"%0=right", "%1=left", "%2=right"}, {}}), (std::vector<std::string>{"right", "left", "right", "left"}));
  EXPECT_EQ(BackendsOf({{"nn.relu=left", "sigmoid=right"}, {}}), (std::vector<std::string>{"left", "right", "left", "left"}));
  EXPECT_EQ(BackendsOf({{"result=left", "%0=right", "%0=right"}, {"right:sigmoid"}})[1], "left");
}

TEST_F(ConstraintsTest, TheClassicFlowGivesTheFallbackNothingThatIsPinned) {
  const Library all("reference", {"nn.relu", "sigmoid", "tanh"});
  PlacementTarget fallback = TargetOf(all);
  fallback.is_fallback = true;
  const Decided decided(Parsed(kProgram), Decided::On{{TargetOf(left_), TargetOf(right_), fallback}}, cache_, {}, {},
                        {{"sigmoid=left"}, {}});
  std::map<std::string, std::string> reasons;
  for (const GreedyPlan& plan : GreedyPlans(decided.placement())) {
    reasons[decided.placement().NameOf(plan.target)] = plan.reason;
    for (const PricedCandidate& candidate : plan.candidates) EXPECT_TRUE(decided.placement().constraints->Allow(candidate.candidate));
  }
  EXPECT_EQ(reasons, (std::map<std::string, std::string>{{"left", ""}, {"right", "the user's pins or forbids exclude it"}}));
}

TEST_F(ConstraintsTest, WhatIsForbiddenRunsElsewhere) {
  EXPECT_EQ(BackendsOf({{}, {"left:nn.relu", "right:sigmoid"}}), (std::vector<std::string>{"right", "left", "right", "left"}));
  EXPECT_EQ(BackendsOf({{}, {"right"}}), (std::vector<std::string>{"left", "left", "left", "left"}));
}

TEST_F(ConstraintsTest, NodesOfAModelAreNamedByTheirNames) {
  Decided decided = Start(Model(), {{"relu_a=right"}, {"right:sigmoid_b", "right:relu_c"}});
  ASSERT_TRUE(decided.Decide());
  const Plan plan = decided.Plans().plans.front();
  const CompileReport report = decided.Report(plan);
  std::vector<std::string> backends;
  std::vector<std::string> nodes;
  for (const OperatorPlacement& op : report.operators) {
    backends.push_back(op.backend);
    nodes.push_back(op.nodes.front());
  }
  EXPECT_EQ(backends, (std::vector<std::string>{"right", "left", "left", "left"}));
  EXPECT_EQ(nodes, (std::vector<std::string>{"relu_a", "sigmoid_b", "relu_c", "tanh_d"}));
  EXPECT_TRUE(report.operators[0].pinned);
  EXPECT_EQ(report.plan.back().nodes, (std::vector<std::string>{"tanh_d", "mul_e"}));
  EXPECT_EQ(decided.Record(plan).onnx_nodes[1], std::vector<std::string>{"sigmoid_b"});
  EXPECT_THAT(PlaceFunction(Model(), {{"mul_e=right"}, {}}).error().message, HasSubstr("right does not take tanh_d, mul_e (tanh)"));
  EXPECT_THAT(PlaceFunction(Model(), {{"relu_z=right"}, {}}).error().message, HasSubstr("no node and calls no operator 'relu_z'"));
  EXPECT_THAT(UncoveredIn(Model(), {{}, {"left:mul_e"}}), HasSubstr("no backend can run operator tanh_d, mul_e (tanh)"));
}

TEST_F(ConstraintsTest, ANodeThatWasFoldedIsToldApartFromOneThatIsNotThere) {
  const Expr x = MakeVar("x", TensorType{{1}, DType::kFloat32});
  Tensor two(TensorType{{1}, DType::kFloat32});
  FillRandom(two, 1);
  const Expr folded = WithOrigin(MakeConstant(two), Origin({OriginPart::Kind::kOnnxNode, "shape_1", 0}));
  const Expr call = MakeCall(Operators().Find("add"), {x, folded}, {}, Origin({OriginPart::Kind::kOnnxNode, "add_2", 1})).value();
  EXPECT_THAT(PlaceFunction(MakeFunction({x}, call).value(), {{"shape_1=left"}, {}}).error().message,
              HasSubstr("node 'shape_1' was computed when the model was read, so nothing runs it"));
}

TEST_F(ConstraintsTest, SingleBackendPlansKeepToThemToo) {
  Decided decided = Start(Parsed(kProgram), {{"%0=right"}, {"right:sigmoid"}});
  ASSERT_TRUE(decided.Decide());
  const FinalPlans plans = decided.Plans();
  ASSERT_EQ(plans.missing.size(), 1u) << "right cannot run tanh";
  EXPECT_EQ(plans.missing[0].name, "right");
  const CompileReport report = decided.Report(plans.plans[1]);
  EXPECT_EQ(report.operators[0].backend, "right");
  EXPECT_TRUE(report.operators[0].pinned);
  EXPECT_EQ(report.operators[2].backend, "left");
  EXPECT_FALSE(report.operators[2].pinned);
  EXPECT_EQ(report.pins, std::vector<std::string>{"%0=right"});
  EXPECT_EQ(report.forbids, std::vector<std::string>{"right:sigmoid"});
}

TEST_F(ConstraintsTest, ContradictionsNameNodeBackendAndRule) {
  EXPECT_THAT(ErrorOf({{"%0=right", "%0=left"}, {}}),
              AllOf(HasSubstr("--pin %0=left: %0 (nn.relu)"), HasSubstr("right by --pin %0=right")));
  EXPECT_THAT(ErrorOf({{"nn.relu=right", "%2=left"}, {}}), AllOf(HasSubstr("--pin %2=left"), HasSubstr("--pin nn.relu=right")));
  EXPECT_THAT(ErrorOf({{"%1=left"}, {"left:sigmoid"}}), AllOf(HasSubstr("%1 (sigmoid)"), HasSubstr("left, which --forbid left:sigmoid")));
  EXPECT_THAT(ErrorOf({{"result=right"}, {}}),
              AllOf(HasSubstr("right does not take result (tanh)"), HasSubstr("none of the rules of right matches")));
}

TEST_F(ConstraintsTest, UnknownWordsAreErrors) {
  EXPECT_THAT(ErrorOf({{"%9=left"}, {}}), HasSubstr("no operator '%9'"));
  EXPECT_THAT(ErrorOf({{"%0=middle"}, {}}), HasSubstr("no backend 'middle' among the targets, expected one of left, right"));
  for (const char* malformed : {"%0", "=left", "%0=", ""}) EXPECT_THAT(ErrorOf({{malformed}, {}}), HasSubstr("NODE=BACKEND")) << malformed;
  EXPECT_THAT(ErrorOf({{}, {"middle:nn.relu"}}), HasSubstr("no backend 'middle'"));
  EXPECT_THAT(ErrorOf({{}, {"left:nn.conv2d"}}), HasSubstr("no operator 'nn.conv2d'"));
}

TEST_F(ConstraintsTest, AnUncoveredOperatorIsNamedWithTheRulesTried) {
  EXPECT_THAT(UncoveredIn(Parsed(kProgram), {{}, {"left:tanh"}}),
              AllOf(HasSubstr("operator result (tanh)"), HasSubstr("left: forbidden by --forbid left:tanh"), HasSubstr("right: none")));
  constexpr const char* kExponential = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); exp(%0) }";
  EXPECT_THAT(UncoveredIn(Parsed(kExponential), {}), HasSubstr("left: rule left.exp refused: its kernel has a bug"));
  const Result<PlacementPointer> pinned = Place({{"exp=right"}, {}}, kExponential);
  EXPECT_THAT(pinned.error().message, AllOf(HasSubstr("right does not take result (exp)"), HasSubstr("rule right.exp refused")));
}

}  // namespace
}  // namespace collage
