#include <gtest/gtest.h>

#include "collage/driver/placement.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"
#include "tests/driver/timed_kernel.h"

namespace collage {
namespace {

constexpr size_t kMostOperators = 6;

/// A graph compiler of small regions, which are slow to start or grow slower with their size.
class Compiler : public Backend {
 public:
  explicit Compiler(bool gains) : gains_(gains) {}
  [[nodiscard]] std::string_view Name() const override { return "compiler"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kPredicate, {}, [](const Expr&) { return Verdict::Accept(); }};
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    const size_t operators = ToOpSequence(function)->steps.size();
    if (operators > kMostOperators) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const auto operators = static_cast<double>(ToOpSequence(function)->steps.size());
    const double seconds = gains_ ? 400e-6 + 50e-6 * operators : 100e-6 * operators * operators;
    return CompileTimed(function, device, variant, [seconds] { return seconds; });
  }

 private:
  bool gains_;
};

/// So long that region cuts offer it only whole, in nine large pieces and their runs, and in pieces of an operator or two.
std::string LongChain() {
  std::string text = "fn (%x: Tensor[(1, 8), float32]) {\n";
  for (int i = 0; i < 99; ++i) {
    const std::string input = i == 0 ? "%x" : "%" + std::to_string(i - 1);
    text += "  %" + std::to_string(i) + " = " + (i % 2 == 0 ? "nn.relu(" : "sigmoid(") + input + ");\n";
  }
  return text + "  nn.relu(%98)\n}";
}

class JoinPartitionsTest : public testing::Test {
 protected:
  Placement Place(const Backend& backend) {
    return Placement::Create(ParseExpr(LongChain(), Operators()).value().expr,
                             {{{&backend, "1", BackendRules::Style::kPredicate}, backend.Rules(), "cpu -compiler=compiler"}}, pricer_,
                             progress_)
        .value();
  }

  SimulatedClock clock_;
  Progress progress_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  Pricer pricer_{{}, cache_, {}};
};

TEST_F(JoinPartitionsTest, WhatIsFasterTogetherIsJoined) {
  const Compiler compiler(true);
  Placement placement = Place(compiler);
  const Plan plan = placement.Search().value();
  const std::optional<Plan> joined = placement.JoinAdjacentPartitions(plan).value();
  ASSERT_TRUE(joined.has_value());
  EXPECT_LE(joined->result.partitions, 100 / kMostOperators * 2);
  EXPECT_LT(joined->result.partitions, plan.result.partitions / 2);
  EXPECT_LT(joined->result.cost, plan.result.cost);
  const CompileReport report = placement.Report(*joined).value();
  EXPECT_EQ(report.operators.size(), 100u);
  EXPECT_EQ(report.plan.size(), joined->result.partitions);
  const IRModule module = placement.Apply(*joined).value();
  size_t found = 0;
  const std::string text = Print(module);
  for (size_t at = text.find("Compiler="); at != std::string::npos; at = text.find("Compiler=", at + 1)) ++found;
  EXPECT_EQ(found, joined->result.partitions);

  const size_t measured = pricer_.counts().measured;
  Placement again = Place(compiler);
  const std::optional<Plan> same = again.JoinAdjacentPartitions(again.Search().value()).value();
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->result.choices.size(), joined->result.choices.size());
  EXPECT_EQ(pricer_.counts().measured, measured) << "known from the first time";
}

TEST_F(JoinPartitionsTest, WhatIsSlowerTogetherStaysApart) {
  const Compiler compiler(false);
  Placement placement = Place(compiler);
  EXPECT_FALSE(placement.JoinAdjacentPartitions(placement.Search().value()).value().has_value());
}

}  // namespace
}  // namespace collage
