#include "collage/driver/part_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/op/table.h"

namespace collage {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

CompiledPart PartOf(const std::string& op, double work) {
  const std::string text = "fn (%x: Tensor[(1, 8), float32]) { " + op + "(%x) }";
  return {{ParseExpr(text, Operators()).value().expr}, work};
}

TEST(PartOptionsTest, AFlagIsForThePartsThatHaveItsNode) {
  CompileOptions options;
  options.constraints.pin = {"tanh=dnnl", "sqrt=native"};
  options.constraints.forbid = {"openvino", "dnnl:nn.relu"};
  PartOptions parts(options, {PartOf("nn.relu", 1), PartOf("tanh", 1), PartOf("nn.relu", 1)}, 1);
  const UserConstraints first = parts.Begin(0).constraints;
  EXPECT_THAT(first.pin, IsEmpty());
  EXPECT_THAT(first.forbid, ElementsAre("openvino", "dnnl:nn.relu"));
  const UserConstraints second = parts.Begin(1).constraints;
  EXPECT_THAT(second.pin, ElementsAre("tanh=dnnl", "sqrt=native")) << "no part has the second one's node";
  EXPECT_THAT(second.forbid, ElementsAre("openvino"));
  EXPECT_THAT(parts.Begin(2).constraints.forbid, ElementsAre("openvino", "dnnl:nn.relu"));
}

TEST(PartOptionsTest, TheBudgetIsSharedByWorkAndWhatIsLeftPassesOn) {
  constexpr double kClock = 0.5;  // seconds that the test itself may take
  CompileOptions options;
  options.budget_seconds = 120;
  options.seconds_spent = 20;
  PartOptions parts(options, {PartOf("nn.relu", 3), PartOf("tanh", 1)}, 0);
  const CompileOptions first = parts.Begin(0);
  EXPECT_THAT(first.budget_seconds, DoubleNear(75, kClock));
  EXPECT_EQ(first.seconds_spent, 0) << "its share is of what is left already";
  EXPECT_THAT(parts.Begin(1).budget_seconds, DoubleNear(100, kClock)) << "the first took none of its time";
}

TEST(PartOptionsTest, APartWithoutWorkHasTimeToo) {
  CompileOptions options;
  options.budget_seconds = 100;
  PartOptions parts(options, {PartOf("nn.relu", 1), PartOf("tanh", 0)}, 0);
  const double first = parts.Begin(0).budget_seconds;
  EXPECT_LT(first, 100);
  EXPECT_GT(first, 90);
}

}  // namespace
}  // namespace collage
