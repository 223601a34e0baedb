#include "collage/ir/origin.h"

#include <gtest/gtest.h>

#include "collage/ir/call_names.h"
#include "collage/ir/call_origins.h"
#include "collage/ir/structural.h"
#include "collage/ir/visit.h"
#include "tests/ir/parsed.h"

namespace collage {
namespace {

Origin Node(const std::string& name, size_t position) { return Origin({OriginPart::Kind::kOnnxNode, name, position}); }

TEST(Origin, UnionsListEachPartOnceInTheOrderOfTheModel) {
  const Origin conv = Node("conv", 1);
  const Origin norm = Node("norm", 2);
  const Origin both = Origin::Union({norm, conv});
  EXPECT_EQ(both.OnnxNodes(), (std::vector<std::string>{"conv", "norm"}));
  EXPECT_EQ(Origin::Union({both, Node("pad", 0), conv, both}).OnnxNodes(), (std::vector<std::string>{"pad", "conv", "norm"}));
  EXPECT_EQ(Origin::Union({conv, {}, conv}), conv);
  EXPECT_TRUE(Origin::Union({{}, {}}).Empty());
  EXPECT_TRUE(Origin().Parts().empty());
}

TEST(Origin, OfManyPartsMessagesNameAFew) {
  std::vector<Origin> origins;
  for (size_t i = 0; i < 9; ++i) origins.push_back(Node("n" + std::to_string(i), i));
  EXPECT_EQ(Origin::Union({origins[0], origins[1], origins[2]}).ToString(), "n0, n1, n2");
  EXPECT_EQ(Origin::Union(origins).ToString(), "n0, n1, ..., n8");
}

// A flat list for each step would hold 20 000 000 000 names; recursion would end at some 100 000 steps.
TEST(Origin, LongChainsOfUnionsShareTheirParts) {
  constexpr size_t kSteps = 200'000;
  std::vector<Origin> chain = {Node("n", 0)};
  for (size_t i = 1; i < kSteps; ++i) chain.push_back(Origin::Union({chain.back(), Node("n" + std::to_string(i), i)}));
  EXPECT_EQ(chain.back().Parts().size(), kSteps);
  Origin last = chain.back();
  chain.clear();
  last = Origin();
}

TEST(Origin, TheParserNotesTheFirstWordOfEachCall) {
  const Expr function = ParsedMain("fn (%x: float32) {\n  %0 = exp(%x);\n  add(nn.relu(%0),\n      %0)\n}");
  std::vector<std::string> places;
  PostOrder(function, [&](const Expr& expr) {
    if (const OpDef* op = CalledOp(expr)) places.push_back(op->name + " at " + expr->origin().ToString());
  });
  EXPECT_EQ(places, (std::vector<std::string>{"exp at 2:8", "nn.relu at 3:7", "add at 3:3"}));
}

TEST(Origin, IsNoPartOfTheProgram) {
  const std::string text = "fn (%x: float32) {\n%0 = exp(%x); %0 }";
  const Expr here = ParsedMain(text);
  const Expr there = ParsedMain("\n\n" + text);
  const Origin origin = here->As<Function>()->body->origin();
  EXPECT_NE(origin.ToString(), there->As<Function>()->body->origin().ToString());
  EXPECT_TRUE(StructuralEqual(here, there));
  EXPECT_EQ(StructuralHash(here), StructuralHash(there));
  EXPECT_EQ(StructuralHash(here, ForPricing()), StructuralHash(there, ForPricing()));
}

TEST(Origin, StaysWithACallWhoseArgumentsChange) {
  const ParsedModule parsed = Parsed("fn (%x: float32) { %0 = exp(%x); add(%0, %0) }");
  const Expr& exponential = parsed.names.at("main").at("0");
  const Expr function = parsed.module.MainExpr();
  const Expr other = Substitute(function, {{exponential.get(), function->As<Function>()->parameters[0]}}).value();
  EXPECT_EQ(other->As<Function>()->body->origin().ToString(), "1:34");
  // A type error says which call it was.
  const Result<Expr> wrong = Substitute(function->As<Function>()->body, {{exponential.get(), MakeTuple({exponential, exponential})}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().message.rfind("1:34: add: ", 0), 0u) << wrong.error().message;
}

TEST(Origin, WithOriginSharesWhatIsTheSame) {
  const Expr call = ParsedMain("fn (%x: float32) { exp(%x) }")->As<Function>()->body;
  EXPECT_EQ(WithOrigin(call, call->origin()), call);
  const Expr renamed = WithOrigin(call, Node("e", 0));
  EXPECT_TRUE(StructuralEqual(renamed, call));
  EXPECT_EQ(renamed->origin().ToString(), "e");
}

TEST(Origin, CallsAreNamedByNodesElseByNumberAndPlace) {
  const ParsedModule parsed = Parsed("fn (%x: float32) { %0 = exp(%x); %1 = nn.relu(%0); add(%1, %0) }");
  const Expr& exponential = parsed.names.at("main").at("0");
  const Expr named = WithOrigin(exponential, Origin::Union({Node("exp_1", 3), Node("mul_2", 4)}));
  const Expr function = Substitute(parsed.module.MainExpr(), {{exponential.get(), named}}).value();
  const CallNames names(function);
  const Expr& result = function->As<Function>()->body;
  EXPECT_EQ(names.Describe(named), "exp_1, mul_2 (exp)");
  EXPECT_EQ(names.Describe(result->As<Call>()->args[0]), "%1 (nn.relu) at 1:39");
  EXPECT_EQ(names.Describe(result), "result (add) at 1:52");
  for (const char* name : {"exp_1", "mul_2", "%0", "exp"}) EXPECT_TRUE(names.IsCalled(named, name)) << name;
  for (const char* name : {"exp_2", "%1", "add", ""}) EXPECT_FALSE(names.IsCalled(named, name)) << name;
  EXPECT_TRUE(names.IsCalled(result, "1:52"));
  EXPECT_EQ(OriginOfCalls(function).ToString(), "exp_1, mul_2, 1:39, 1:52");
}

}  // namespace
}  // namespace collage
