#include "collage/driver/estimated_compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/op_sequence.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A library whose kernels nobody may make: prices are not found by running.
class PaperBackend : public Backend {
 public:
  explicit PaperBackend(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "tanh", "exp"})
      rules.patterns.push_back({name_ + "." + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // No regions, which the classic flow would make of neighbours.
    if (ToOpSequence(function).value().steps.size() != 1) return {};
    return {{"only", std::vector<Layout>(function.parameters.size()), {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function&, const Device&, const Variant&) const override {
    ADD_FAILURE() << "a kernel is made";
    return Fail("no");
  }

 private:
  std::string name_;
};

constexpr const char* kProgram = "fn (%x: Tensor[(2), float32]) { %0 = nn.relu(%x); %1 = tanh(%0); nn.relu(%1) }";

class EstimatedTest : public testing::Test {
 protected:
  Result<EstimatedPlan> Plan(std::vector<PlacementTarget> targets) { return PlanByEstimates(Parsed(kProgram), targets, options_); }

  static std::vector<std::string> BackendsOf(const EstimatedPlan& planned) {
    std::vector<std::string> names;
    for (const PlanEntry& entry : ReportOf(planned, {}).plan) names.push_back(entry.backend);
    return names;
  }

  PaperBackend left_{"left"};
  PaperBackend right_{"right"};
  CompileOptions options_;
};

TEST_F(EstimatedTest, TheCheapestPlanByEstimatesIsFoundAndNothingRuns) {
  std::vector<std::string> asked;
  options_.estimator = [&](const Expr& function, const std::string& target) -> Result<Cost> {
    const std::string op = ToOpSequence(*function->As<Function>()).value().steps.front().op->name;
    asked.push_back(target + " " + op);
    return Cost::Microseconds((op == "tanh") == (target == "cpu -compiler=left") ? 1 : 2);
  };
  const EstimatedPlan planned = Plan({TargetOf(left_), TargetOf(right_)}).value();
  EXPECT_THAT(BackendsOf(planned), ElementsAre("right", "left", "right"));
  EXPECT_EQ(planned.plan.result.cost, Cost::Microseconds(3));
  // Both relus are one function.
  EXPECT_THAT(asked, testing::UnorderedElementsAre("cpu -compiler=left nn.relu", "cpu -compiler=left tanh", "cpu -compiler=right nn.relu",
                                                   "cpu -compiler=right tanh"));
  const CompileReport report = ReportOf(planned, options_);
  EXPECT_TRUE(report.is_estimated);
  EXPECT_TRUE(report.end_to_end.empty());
  EXPECT_THAT(PlanTable(report), HasSubstr("nothing was timed"));
  EXPECT_TRUE(ReportFromJson(ToJson(report)).value().is_estimated);
}

TEST_F(EstimatedTest, WhatIsUnknownIsNotChosen) {
  options_.estimator = [&](const Expr&, const std::string& target) -> Result<Cost> {
    return target == "cpu -compiler=left" ? Cost::Unknown() : Cost::Microseconds(5);
  };
  EXPECT_THAT(BackendsOf(Plan({TargetOf(left_), TargetOf(right_)}).value()), ElementsAre("right", "right", "right"));
  options_.estimator = [&](const Expr&, const std::string&) -> Result<Cost> { return Cost::Unknown(); };
  EXPECT_THAT(Plan({TargetOf(left_)}).error().message, HasSubstr("nn.relu"));
}

TEST_F(EstimatedTest, WhatCannotBeMadeIsNotChosen) {
  options_.estimator = [&](const Expr&, const std::string& target) -> Result<Cost> {
    return Cost::Microseconds(target == "cpu -compiler=left" ? 1 : 2);
  };
  std::string unmade;
  size_t plans = 0;
  const auto plan = [&](std::vector<PlacementTarget> targets) {
    plans = 0;
    return PlanByEstimates(Parsed(kProgram), targets, options_, [&](const EstimatedPlan& planned) -> Result<std::vector<size_t>> {
      ++plans;
      std::vector<size_t> refused;
      for (const PlanKernel& kernel : planned.plan.kernels) {
        if (planned.placement->kernels[kernel.kernel].key.backend == unmade) refused.push_back(kernel.kernel);
      }
      return refused;
    });
  };
  EXPECT_THAT(BackendsOf(plan({TargetOf(left_), TargetOf(right_)}).value()), ElementsAre("left", "left", "left"));
  EXPECT_EQ(plans, 1u);
  unmade = "left";
  EXPECT_THAT(BackendsOf(plan({TargetOf(left_), TargetOf(right_)}).value()), ElementsAre("right", "right", "right"));
  EXPECT_EQ(plans, 2u);
  EXPECT_THAT(plan({TargetOf(left_)}).error().message, HasSubstr("nn.relu"));
}

TEST_F(EstimatedTest, AnErrorOfTheEstimatorEndsIt) {
  options_.estimator = [&](const Expr&, const std::string&) -> Result<Cost> { return Fail("no idea"); };
  EXPECT_EQ(Plan({TargetOf(left_)}).error().message, "no idea");
}

TEST_F(EstimatedTest, AStatedRuleIsTakenAsItIs) {
  options_.estimator = [&](const Expr&, const std::string& target) -> Result<Cost> {
    return Cost::Microseconds(target.find("left") != std::string::npos ? 1 : 2);
  };
  options_.partition_rules["only_tanh"] = [](const std::string& compiler) {
    return PrimitiveRule(compiler, CompositeRule(compiler + ".tanh", DFPatternRule("tanh", pattern::CallOf("tanh"))));
  };
  PlacementTarget stated = TargetOf(left_);
  stated.target += " -partition_rule=only_tanh";
  EXPECT_THAT(BackendsOf(Plan({stated, TargetOf(right_)}).value()), ElementsAre("right", "left", "right"));
  stated.target = "cpu -compiler=left -partition_rule=other";
  EXPECT_THAT(Plan({stated}).error().message, HasSubstr("there is no partition rule 'other'; stated are 'only_tanh'"));
}

}  // namespace
}  // namespace collage
