#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/transform/eliminate_common_subexpressions.h"
#include "collage/transform/eliminate_dead_code.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

std::string Merged(const std::string& text) { return BodyAfter(EliminateCommonSubexpressions, text); }
std::string Alive(const std::string& text) { return BodyAfter(EliminateDeadCode, text); }

TEST(EliminateCommonSubexpressions, MergesEqualCalls) {
  EXPECT_EQ(Merged("fn (%x: float32) { add(exp(exp(%x)), exp(exp(%x))) }"), "%0 = exp(%x);\n%1 = exp(%0);\nadd(%1, %1)\n");
  EXPECT_EQ(Merged("fn (%x: float32) { (add(%x, 1f), add(1f, %x), subtract(%x, 1f), subtract(1f, %x)) }"),
            "%0 = add(%x, 1f);\n%1 = subtract(%x, 1f);\n%2 = subtract(1f, %x);\n(%0, %0, %1, %2)\n");
  EXPECT_EQ(Merged("fn (%x: (float32, float32)) { add(exp(%x.0), exp(%x.0)) }"), "%0 = %x.0;\n%1 = exp(%0);\nadd(%1, %1)\n");
}

TEST(EliminateCommonSubexpressions, AttributesAndConstantsDecide) {
  EXPECT_EQ(Merged(OfImage("(sum(%x, axis=[1]), sum(%x, axis=[2]))")), "%0 = sum(%x, axis=[1]);\n%1 = sum(%x, axis=[2]);\n(%0, %1)\n");
  EXPECT_EQ(Merged(OfImage("(sum(%x, axis=[1], keepdims=True), sum(%x, keepdims=True, axis=[1]))")),
            "%0 = sum(%x, axis=[1], keepdims=True);\n(%0, %0)\n");
  EXPECT_EQ(Merged("fn (%x: float32) { (add(%x, 1f), add(%x, 2f)) }"), "%0 = add(%x, 1f);\n%1 = add(%x, 2f);\n(%0, %1)\n");
}

TEST(EliminateCommonSubexpressions, BranchesKeepTheirOwn) {
  const std::string branches = "if (%c) {\n  %0 = exp(%x);\n  exp(%0)\n} else {\n  %1 = exp(%x);\n  add(%1, %x)\n}\n";
  EXPECT_EQ(Merged("fn (%c: bool, %x: float32) { " + branches + " }"), branches);
  EXPECT_EQ(Merged("fn (%c: bool, %x: float32) { add(if (%c) { %0 = exp(%x); exp(%0) } else { %x }, exp(%x)) }"),
            "%0 = exp(%x);\n%1 = if (%c) {\n  exp(%0)\n} else {\n  %x\n};\nadd(%1, %0)\n");
}

TEST(EliminateCommonSubexpressions, LetsSeeWhatStandsBeforeThem) {
  EXPECT_EQ(Merged("fn (%x: float32) { let %a = exp(%x); let %b = add(exp(%x), %a); multiply(%b, exp(%x)) }"),
            "%0 = exp(%x);\nlet %a = %0;\nlet %b = add(%0, %a);\nmultiply(%b, %0)\n");
}

TEST(EliminateCommonSubexpressions, CallsOfFunctionsStay) {
  EXPECT_THAT(Merged("fn (%x: float32) { %0 = fn (%y: float32, Primitive=1) { exp(%y) }; add(%0(%x), %0(%x)) }"),
              HasSubstr("%1 = %0(%x);\n%2 = %0(%x);\nadd(%1, %2)"));
}

TEST(EliminateDeadCode, UnusedLets) {
  EXPECT_EQ(Alive("fn (%x: float32) { let %y = exp(%x); let %z = exp(%y); %x }"), "%x\n");
  EXPECT_EQ(Alive("fn (%x: float32) { let %y = exp(%x); let %z = exp(%y); let %w = exp(%y); exp(%w) }"),
            "let %y = exp(%x);\nlet %w = exp(%y);\nexp(%w)\n");
  EXPECT_EQ(Alive("fn (%x: float32) { let %f = fn (%n: float32) -> float32 { %f(%n) }; %x }"), "%x\n");
}

TEST(EliminateDeadCode, UnusedFunctions) {
  const IRModule module = ParsedForPass(
                              "def @main(%x: float32) -> float32 { @a(%x) } def @a(%x: float32) -> float32 { exp(%x) }\n"
                              "def @b(%x: float32) -> float32 { @c(%x) } def @c(%x: float32) -> float32 { @b(%x) }")
                              .module;
  const IRModule after = AfterPass(EliminateDeadCode, module);
  EXPECT_EQ(after.functions().size(), 2u);
  EXPECT_TRUE(after.Find("a"));
}

}  // namespace
}  // namespace collage
