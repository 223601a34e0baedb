#include "collage/transform/outline_blocks.h"

#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

/// Every function is a block without control flow, or has control flow only.
void ExpectTakenApart(const IRModule& module) {
  for (const auto& [name, function] : module.functions()) {
    PostOrder(function, [&, &name = name, &function = function](const Expr& expr) {
      const bool computes = CalledOp(expr) != nullptr;
      const bool controls = expr->As<If>() || expr->As<GlobalVar>();
      EXPECT_FALSE(IsBlock(function) ? controls : computes) << "@" << name << "\n" << Print(module);
    });
  }
}

/// The outlined module, after all that holds for any of them has been checked.
IRModule Outlined(const std::string& text) {
  const ParsedModule parsed = ParsedForPass(text);
  const Result<IRModule> outlined = OutlineBlocks(parsed.module);
  EXPECT_TRUE(outlined) << outlined.error().message;
  if (!outlined) return parsed.module;
  const Status verified = Verify(*outlined);
  EXPECT_TRUE(verified) << verified.error().message << "\n" << Print(*outlined);
  if (!IsStraightLine(parsed.module)) ExpectTakenApart(*outlined);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<Tensor> before = ResultsOf(parsed.module, seed);
    const std::vector<Tensor> after = ResultsOf(*outlined, seed);
    EXPECT_EQ(before.size(), after.size());
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) EXPECT_TRUE(BitwiseEqual(before[i], after[i]));
  }
  return *outlined;
}

size_t CountBlocks(const IRModule& module) {
  size_t count = 0;
  for (const auto& [name, function] : module.functions()) count += IsBlock(function) ? 1 : 0;
  return count;
}

TEST(OutlineBlocks, LeavesStraightLineCodeAlone) {
  const ParsedModule parsed = ParsedForPass("def @main(%x: Tensor[(3), float32]) { let %y = nn.relu(%x); (exp(%y), %y) }");
  EXPECT_EQ(Print(OutlineBlocks(parsed.module).value()), Print(parsed.module));
}

TEST(OutlineBlocks, BranchesBecomeFunctions) {
  const IRModule module = Outlined("def @main(%x: Tensor[(3), float32], %c: bool) { if (%c) { nn.relu(%x) } else { %x } }");
  EXPECT_EQ(Print(module), R"(def @main(%x: Tensor[(3,), float32], %c: bool) -> Tensor[(3,), float32] {
  if (%c) {
    @main_then(%x)
  } else {
    @main_else(%x)
  }
}

def @block(%p0: Tensor[(3,), float32], Block=1) -> Tensor[(3,), float32] {
  nn.relu(%p0)
}

def @main_then(%captured0: Tensor[(3,), float32]) -> Tensor[(3,), float32] {
  @block(%captured0)
}

def @main_else(%captured0: Tensor[(3,), float32]) -> Tensor[(3,), float32] {
  %captured0
}
)");
}

TEST(OutlineBlocks, WhatLiesBetweenTwoStepsOfControlFlowIsOneBlock) {
  const IRModule module = Outlined(R"(
    def @main(%x: Tensor[(3), float32], %c: bool) {
      %0 = exp(%x);
      %1 = if (%c) { nn.relu(%0) } else { negative(%x) };
      %2 = add(%1, %0);
      %3 = if (%c) { %2 } else { multiply(%2, tanh(%x)) };
      (sigmoid(%3), %0, %x)
    })");
  EXPECT_EQ(CountBlocks(module), 6U);  // before, between and behind the ifs, and three branches
}

TEST(OutlineBlocks, TailRecursionStaysTailRecursion) {
  const IRModule module = Outlined(R"(
    def @main(%x: Tensor[(3), float32]) { @loop(0, %x, %x).1 }
    def @loop(%i: int32, %x: Tensor[(3), float32], %step: Tensor[(3), float32]) -> (int32, Tensor[(3), float32]) {
      if (less(%i, 5)) { @loop(add(%i, 1), add(tanh(%x), %step), %step) } else { (%i, %x) }
    })");
  EXPECT_NE(Print(module).find("def @loop_then("), std::string::npos);
  const If* branch = module.Find("loop")->As<Function>()->body->As<If>();
  ASSERT_NE(branch, nullptr);
  const Expr then_body = module.Find("loop_then")->As<Function>()->body;
  ASSERT_NE(then_body->As<Call>(), nullptr);
  EXPECT_EQ(then_body->As<Call>()->callee->As<GlobalVar>()->name, "loop");
}

TEST(OutlineBlocks, TuplesGoThrough) {
  const IRModule module = Outlined(R"(
    def @main(%t: (Tensor[(2), float32], (Tensor[(2), float32], bool))) {
      %0 = if (%t.1.1) { (exp(%t.0), (%t.0, %t.1.0)) } else { (%t.1.0, (tanh(%t.0), %t.0)) };
      (concatenate((%0.0, %0.1.1, %t.0), axis=0), %0.1, split(%0.0, indices_or_sections=2).1)
    })");
  EXPECT_GE(CountBlocks(module), 3U);
}

TEST(OutlineBlocks, NestedBranchesCaptureFromFarOutside) {
  Outlined(R"(
    def @main(%x: Tensor[(3), float32], %c: bool, %d: bool) {
      let %far = exp(%x);
      if (%c) {
        let %near = tanh(%x);
        if (%d) { add(%far, %near) } else { if (%c) { %far } else { nn.relu(%near) } }
      } else {
        %x
      }
    })");
}

TEST(OutlineBlocks, RecursionThatIsNoLoop) {
  Outlined(R"(
    def @main(%x: Tensor[(2), float32]) { add(@sum(4, %x), @sum(2, exp(%x))) }
    def @sum(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (less(%n, 1)) { %x } else { add(@sum(subtract(%n, 1), %x), @sum(subtract(%n, 2), tanh(%x))) }
    })");
}

TEST(OutlineBlocks, RefusesClosures) {
  const auto error = [](const std::string& text) { return OutlineBlocks(ParsedForPass(text).module).error().message; };
  EXPECT_EQ(error(R"(def @main(%x: Tensor[(2), float32], %c: bool) {
      let %f = fn (%y: Tensor[(2), float32]) { add(%x, %y) };
      let %g = if (%c) { %f } else { %f };
      %g(%x)
    })"),
            "@main: a function is used as a value, of type fn (Tensor[(2,), float32]) -> Tensor[(2,), float32]; plans have no closures");
  EXPECT_EQ(error(R"(def @main(%x: Tensor[(2), float32], %c: bool) {
      let %f = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { if (%c) { %y } else { %f(%y) } };
      %f(%x)
    })"),
            "@main: %f is a function that calls itself; it must be a function of the module");
}

TEST(OutlineBlocks, TakesHundredThousandOperatorsAndManyBranches) {
  std::string text = "def @main(%x: Tensor[(2), float32], %c: bool) {\n";
  std::string last = "%x";
  for (int i = 0; i < 20000; ++i) {
    const std::string name = "%" + std::to_string(i);
    text += name + " = " + (i % 10 == 9 ? "if (%c) { tanh(" + last + ") } else { " + last + " }" : "nn.relu(" + last + ")") + ";\n";
    last = name;
  }
  const IRModule module = OutlineBlocks(ParsedForPass(text + last + "\n}").module).value();
  EXPECT_EQ(CountBlocks(module), 4000U);
}

}  // namespace
}  // namespace collage
