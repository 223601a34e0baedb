#include "collage/transform/inline_closures.h"

#include "collage/transform/outline_blocks.h"
#include "tests/device/random_program.h"
#include "tests/support/rounds.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

/// The module without closures, which computes the same and can be taken apart.
IRModule Inlined(const std::string& text) {
  const IRModule module = ParsedForPass(text).module;
  const Result<IRModule> inlined = InlineClosures(module);
  EXPECT_TRUE(inlined) << inlined.error().message;
  if (!inlined) return module;
  const Status verified = Verify(*inlined);
  EXPECT_TRUE(verified) << verified.error().message << "\n" << Print(*inlined);
  ExpectSameResults(module, *inlined, 0);
  EXPECT_TRUE(OutlineBlocks(*inlined)) << Print(*inlined);
  return *inlined;
}

std::string ErrorOf(const std::string& text) { return InlineClosures(ParsedForPass(text).module).error().message; }

TEST(InlineClosures, LeavesOthersAlone) {
  const IRModule module = ParsedForPass(R"(def @f(%x: float32) -> float32 { let %y = nn.relu(%x); %y }
    def @main(%x: float32) { %0 = fn (%y: float32, Primitive=1) { tanh(%y) }; %0(@f(%x)) })")
                              .module;
  EXPECT_EQ(InlineClosures(module).value().MainExpr(), module.MainExpr());
}

TEST(InlineClosures, WritesOutWhatIsCalled) {
  EXPECT_EQ(Print(Inlined("fn (%x: float32) { let %f = fn (%y: float32) { add(%x, %y) }; %f(%f(%x)) }")),
            Print(ParsedForPass("fn (%x: float32) { add(%x, add(%x, %x)) }").module));
  EXPECT_EQ(Print(Inlined("fn (%x: float32) { fn (%y: float32) { nn.relu(%y) }(%x) }")),
            Print(ParsedForPass("fn (%x: float32) { nn.relu(%x) }").module));
}

TEST(InlineClosures, ABranchThatChoosesAFunctionCallsIt) {
  EXPECT_EQ(Print(Inlined(R"(fn (%c: bool, %x: float32) {
              let %f = if (%c) { fn (%y: float32) { add(%y, %x) } } else { fn (%y: float32) { tanh(%y) } };
              %f(%x)
            })")),
            Print(ParsedForPass("fn (%c: bool, %x: float32) { if (%c) { add(%x, %x) } else { tanh(%x) } }").module));
}

TEST(InlineClosures, FunctionsOfTheModuleThatTakeFunctionsAreWrittenOut) {
  EXPECT_EQ(Print(Inlined(R"(def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
              def @relu(%x: float32) -> float32 { nn.relu(%x) }
              def @main(%x: float32) { let %p = (@relu, fn (%y: float32) { add(%y, %x) }); (@twice(%p.0, %x), @twice(%p.1, %x)) })")),
            Print(ParsedForPass(R"(def @relu(%x: float32) -> float32 { nn.relu(%x) }
              def @main(%x: float32) { (@relu(@relu(%x)), add(add(%x, %x), %x)) })")
                      .module));
}

TEST(InlineClosures, ALetOfARecursionBecomesAFunctionOfTheModule) {
  const IRModule module = Inlined(R"(fn (%n: int64, %x: float32) {
    let %t = exp(%x);
    let %f = fn (%m: int64, %y: float32) -> float32 {
      let %g = fn (%z: float32) { add(%z, %t) };
      if (greater(%m, 0i64)) { %f(subtract(%m, 1i64), %g(%g(%y))) } else { %y }
    };
    add(%f(%n, %x), %f(3i64, %t))
  })");
  ASSERT_TRUE(module.Find("main_f"));
  EXPECT_EQ(module.Find("main_f")->As<Function>()->parameters.size(), 3u);
}

TEST(InlineClosures, ARecursionMayCaptureFunctions) {
  const IRModule module = Inlined(R"(fn (%n: int64, %x: float32) {
    let %f = fn (%y: float32) { add(%x, %y) };
    let %g = fn (%m: int64, %z: float32) -> float32 { if (greater(%m, 0i64)) { %g(subtract(%m, 1i64), %f(%z)) } else { %z } };
    let %h = fn (%m: int64) -> float32 { if (greater(%m, 0i64)) { %h(subtract(%m, 1i64)) } else { %g(%n, %f(%x)) } };
    add(%g(%n, %x), %h(%n))
  })");
  EXPECT_EQ(module.functions().size(), 3u);
}

TEST(InlineClosures, SaysWhereOneRemains) {
  EXPECT_EQ(ErrorOf(R"(def @f(%g: fn (float32) -> float32, %n: int64, %x: float32) -> float32 {
  if (greater(%n, 0i64)) { @f(%g, subtract(%n, 1i64), %g(%x)) } else { %x }
}
def @main(%n: int64, %x: float32) { @f(fn (%y: float32) { add(%y, %x) }, %n, %x) })"),
            "@f: 2:55: a function that is a value is called; plans have no closures");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { (%x, fn (%y: float32) { add(%x, %y) }) }"),
            "@main: a function is used as a value, of type fn (float32) -> float32; plans have no closures");
}

TEST(InlineClosures, RandomProgramsComputeTheSame) {
  size_t inlined = 0;
  for (uint64_t seed = 0; seed < Rounds(300) && !HasFailure(); ++seed) {
    const std::string text = RandomDeviceProgram(seed, 8);
    // A function that calls itself whatever happens never ends.
    const std::string first = text.substr(0, text.find("def @twice"));
    if (first.find("@f(", 6) != std::string::npos || first.find("(@f,") != std::string::npos) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const IRModule module = ParsedForPass(text).module;
    const Result<IRModule> result = InlineClosures(module);
    if (!result) {
      EXPECT_NE(result.error().message.find("plans have no closures"), std::string::npos) << result.error().message;
      continue;
    }
    const Status verified = Verify(*result);
    EXPECT_TRUE(verified) << verified.error().message << "\n" << Print(*result);
    std::vector<Tensor> inputs;
    for (const Expr& parameter : module.Main().parameters) {
      for (const TensorType& type : FlattenTensors(parameter->type())) FillRandom(inputs.emplace_back(type), seed);
    }
    inputs[0] = Tensor::Scalar(false, DType::kBool);  // closures that call themselves end there
    const std::vector<Tensor> expected = InterpretMain(module, inputs).value();
    const std::vector<Tensor> actual = InterpretMain(*result, inputs).value();
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitwiseEqual(expected[i], actual[i]));
    EXPECT_TRUE(OutlineBlocks(*result)) << OutlineBlocks(*result).error().message << "\n" << Print(*result);
    ++inlined;
  }
  EXPECT_GT(inlined, Rounds(30));
}

}  // namespace
}  // namespace collage
