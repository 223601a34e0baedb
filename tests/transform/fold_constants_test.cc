#include "collage/transform/fold_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

std::string Folded(const std::string& text) {
  return BodyAfter([](const IRModule& module) { return FoldConstants(module); }, text);
}

TEST(FoldConstants, ComputesCallsOfConstants) {
  EXPECT_EQ(Folded("fn (%x: float32) { multiply(%x, add(1f, multiply(2f, 3f))) }"), "multiply(%x, 7f)\n");
  EXPECT_EQ(Folded(OfImage("reshape(%x, newshape=[4, 36])")), "reshape(%x, newshape=[4, 36])\n");
  EXPECT_THAT(Folded("fn (%x: Tensor[(3, 2), float32]) { add(%x, transpose(" + ConstantText(0, "(2, 3)") + ")) }"),
              HasSubstr("add(%x, meta[relay.Constant][0] /*Tensor[(3, 2), float32]*/)"));
}

TEST(FoldConstants, ResolvesTuplesAndBranches) {
  EXPECT_EQ(Folded("fn (%x: float32) { (%x, 1f).0 }"), "%x\n");
  EXPECT_THAT(Folded("fn (%x: Tensor[(2,), float32]) { add(%x, split(" + ConstantText(0, "(4,)") + ", indices_or_sections=2).1) }"),
              HasSubstr("add(%x, meta[relay.Constant][0] /*Tensor[(2,), float32]*/)"));
  EXPECT_EQ(Folded("fn (%x: float32) { if (less(1f, 2f)) { exp(%x) } else { %x } }"), "exp(%x)\n");
}

TEST(FoldConstants, PutsLetConstantsWhereTheyAreUsed) {
  EXPECT_EQ(Folded("fn (%x: float32) { let %a = add(1f, 2f); let %b = add(%a, %a); let %c = multiply(%x, %b); add(%c, %a) }"),
            "let %c = multiply(%x, 6f);\nadd(%c, 3f)\n");
  EXPECT_EQ(Folded("fn (%x: float32) { let %a = %x; let %b = %a; add(%b, %a) }"), "add(%x, %x)\n");
}

TEST(FoldConstants, DoesNotBlowUpModules) {
  EXPECT_THAT(Folded("fn (%x: float32) { add(%x, zeros(shape=[1000, 1000], dtype=\"float32\")) }"), HasSubstr("zeros(shape="));
  EXPECT_THAT(Folded("fn (%x: float32) { add(%x, zeros(shape=[10], dtype=\"float32\")) }"), HasSubstr("add(%x, meta["));
}

TEST(FoldConstants, LeavesPrimitiveFunctionsAlone) {
  const std::string text = "%1 = fn (%y: float32, Primitive=1) -> float32 {\n  %0 = add(1f, 2f);\n  add(%y, %0)\n};\n%1(%x)\n";
  EXPECT_EQ(Folded("fn (%x: float32) { " + text + " }"), text);
}

TEST(FoldConstants, KeepsRecursiveFunctions) {
  EXPECT_THAT(Folded("fn (%x: float32) { let %f = fn (%n: float32) -> float32 { if (less(%n, add(0f, 1f))) { %n } else "
                     "{ %f(subtract(%n, 1f)) } }; %f(%x) }"),
              HasSubstr("less(%n, 1f)"));
}

}  // namespace
}  // namespace collage
