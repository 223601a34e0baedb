#include "collage/ir/visit.h"

#include <gtest/gtest.h>

#include "collage/ir/print.h"
#include "tests/ir/parsed.h"

namespace collage {
namespace {

// Replaces every exp by nn.relu.
Result<Expr> ExpToRelu(const Expr&, const Expr& expr) {
  return IsCallOf(expr, "exp") ? MakeCall(SmallTable().Find("nn.relu"), expr->As<Call>()->args) : expr;
}

TEST(Visit, PostOrderVisitsChildrenFirstAndOnce) {
  const ParsedModule parsed = Parsed("fn (%x: float32) { %0 = exp(%x); %1 = add(%0, %0); subtract(%1, %0) }");
  std::vector<std::string> visited;
  PostOrder(parsed.module.MainExpr(), [&](const Expr& expr) {
    if (CalledOp(expr)) visited.push_back(CalledOp(expr)->name);
  });
  EXPECT_EQ(visited, (std::vector<std::string>{"exp", "add", "subtract"}));
  const auto uses = CountUses(parsed.module.MainExpr());
  EXPECT_EQ(uses.at(parsed.names.at("main").at("0").get()), 3u);
  EXPECT_EQ(uses.at(parsed.names.at("main").at("1").get()), 1u);
}

TEST(Visit, RewriteKeepsSharing) {
  const Expr function = ParsedMain("fn (%x: float32) { %0 = exp(%x); %1 = add(%0, %0); if (True) { %1 } else { subtract(%1, %0) } }");
  const Result<Expr> rewritten = Rewrite(function, ExpToRelu);
  ASSERT_TRUE(rewritten.has_value());
  EXPECT_EQ(Print(*rewritten),
            "fn (%x: float32) -> float32 {\n  %0 = nn.relu(%x);\n  %1 = add(%0, %0);\n  if (True) {\n    %1\n  } else {\n"
            "    subtract(%1, %0)\n  }\n}\n");
}

TEST(Visit, RewriteSharesWhatDoesNotChange) {
  const ParsedModule parsed = Parsed("fn (%x: float32) { %0 = nn.relu(%x); %1 = exp(%x); (%0, %1) }");
  const Expr& function = parsed.module.MainExpr();
  const Result<Expr> same = Rewrite(function, [](const Expr&, const Expr& expr) -> Result<Expr> { return expr; });
  EXPECT_EQ(*same, function);
  const Result<Expr> rewritten = Rewrite(function, ExpToRelu);
  EXPECT_EQ((*rewritten)->As<Function>()->body->As<Tuple>()->fields[0], parsed.names.at("main").at("0"));
}

TEST(Visit, RewriteDoesNotEnterWhatItMayNot) {
  const Expr function = ParsedMain("fn (%x: float32) { %0 = fn (%y: float32, Primitive=1) { exp(%y) }; exp(%0(%x)) }");
  const Result<Expr> rewritten = Rewrite(function, ExpToRelu, [](const Expr& expr) {
    const Function* literal = expr->As<Function>();
    return !literal || !literal->attributes.Has("Primitive");
  });
  EXPECT_EQ(Print(*rewritten),
            "fn (%x: float32) -> float32 {\n  %0 = fn (%y: float32, Primitive=1) -> float32 {\n    exp(%y)\n  };\n  %1 = %0(%x);\n"
            "  nn.relu(%1)\n}\n");
}

TEST(Visit, RewriteReportsWhatDoesNotFit) {
  const Expr function = ParsedMain("fn (%x: Tensor[(2,), float32]) { add(exp(%x), %x) }");
  const Result<Expr> rewritten = Rewrite(function, [](const Expr&, const Expr& expr) -> Result<Expr> {
    if (!IsCallOf(expr, "exp")) return expr;
    return MakeCall(SmallTable().Find("zeros"), {}, {{"shape", std::vector<int64_t>{3}}});
  });
  ASSERT_FALSE(rewritten.has_value());
  EXPECT_EQ(rewritten.error().message, "1:34: add: shapes (3,) and (2,) do not broadcast");
}

TEST(Visit, SubstituteReplacesVariables) {
  const Expr function = ParsedMain("fn (%x: float32) { add(%x, exp(%x)) }");
  const Expr& x = function->As<Function>()->parameters[0];
  const Result<Expr> body = Substitute(function->As<Function>()->body, {{x.get(), MakeConstant(Tensor::Scalar(2.0f, DType::kFloat32))}});
  EXPECT_EQ(Print(*body), "%0 = exp(2f);\nadd(2f, %0)\n");
}

TEST(Visit, TakesHundredThousandOperators) {
  for (bool lets : {false, true}) {
    const Expr function = ParsedMain(ChainText(100'000, lets));
    size_t rewrites = 0;
    const Result<Expr> rewritten = Rewrite(function, [&](const Expr&, const Expr& expr) -> Result<Expr> {
      if (!IsCallOf(expr, "add")) return expr;
      ++rewrites;
      return MakeCall(SmallTable().Find("multiply"), expr->As<Call>()->args);
    });
    ASSERT_TRUE(rewritten.has_value());
    EXPECT_EQ(rewrites, 100'000u);
  }
}

}  // namespace
}  // namespace collage
