#include "collage/op/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kPair{{2}, DType::kFloat32};

IRModule Parsed(const std::string& text) {
  Result<ParsedModule> parsed = ParseModule(text, Operators());
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return std::move(parsed->module);
}

Tensor Floats(std::vector<float> values) {
  return Tensor::FromVector<float>({{static_cast<int64_t>(values.size())}, DType::kFloat32}, values);
}

std::vector<double> ResultOf(const std::string& text, const std::vector<Tensor>& inputs) {
  const Result<std::vector<Tensor>> outputs = InterpretMain(Parsed(text), inputs);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().message;
  return outputs ? outputs->at(0).ToDouble() : std::vector<double>();
}

Expr CallOf(const char* name, std::vector<Expr> args, Attributes attributes = {}) {
  Result<Expr> call = MakeCall(Operators().Find(name), std::move(args), std::move(attributes));
  EXPECT_TRUE(call.has_value()) << call.error().message;
  return *call;
}

TEST(InterpreterTest, RunsOperatorsInDataflowOrder) {
  EXPECT_THAT(
      ResultOf("def @main(%x: Tensor[(2), float32]) { %0 = add(%x, %x); %1 = multiply(%0, %x); subtract(%1, %0) }", {Floats({1, 3})}),
      ElementsAre(0, 12));
}

TEST(InterpreterTest, FlattensTuplesOfParametersAndResults) {
  const IRModule module = Parsed("def @main(%t: (Tensor[(2), float32], Tensor[(2), float32])) { (%t.1, (%t.0, add(%t.0, %t.1))) }");
  const Result<std::vector<Tensor>> outputs = InterpretMain(module, {Floats({1, 2}), Floats({10, 20})});
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 3u);
  EXPECT_THAT(outputs->at(0).ToDouble(), ElementsAre(10, 20));
  EXPECT_THAT(outputs->at(1).ToDouble(), ElementsAre(1, 2));
  EXPECT_THAT(outputs->at(2).ToDouble(), ElementsAre(11, 22));
}

TEST(InterpreterTest, ProjectsResultsOfOperatorsThatGiveTuples) {
  EXPECT_THAT(ResultOf("def @main(%x: Tensor[(4), float32]) { %0 = split(%x, indices_or_sections=2); subtract(%0.1, %0.0) }",
                       {Floats({1, 2, 5, 9})}),
              ElementsAre(4, 7));
}

TEST(InterpreterTest, EvaluatesOnlyTheBranchThatIsTaken) {
  const std::string text = "def @main(%c: bool, %x: Tensor[(2), float32]) { if (%c) { negative(%x) } else { exp(%x) } }";
  std::vector<std::string> ran;
  InterpreterOptions options;
  options.on_operator = [&](const Expr& call, std::span<const Tensor>) { ran.push_back(CalledOp(call)->name); };
  const IRModule module = Parsed(text);
  for (const bool condition : {true, false}) {
    const auto outputs = InterpretMain(module, {Tensor::Scalar(condition, DType::kBool), Floats({0, 0})}, options);
    ASSERT_TRUE(outputs.has_value());
    EXPECT_THAT(outputs->at(0).ToDouble(), ElementsAre(condition ? 0 : 1, condition ? 0 : 1));
  }
  EXPECT_THAT(ran, ElementsAre("negative", "exp"));
}

TEST(InterpreterTest, ASharedExpressionRunsOnce) {
  const Expr x = MakeVar("x", kPair);
  Expr doubled = CallOf("add", {x, x});
  for (int i = 0; i < 60; ++i) doubled = CallOf("add", {doubled, doubled});  // 2^60 calls if it were a tree
  int calls = 0;
  InterpreterOptions options;
  options.on_operator = [&](const Expr&, std::span<const Tensor>) { ++calls; };
  ASSERT_TRUE(InterpretFunction(*MakeFunction({x}, doubled), {Floats({1, 1})}, options).has_value());
  EXPECT_EQ(calls, 61);
}

TEST(InterpreterTest, ClosuresCaptureVariables) {
  EXPECT_THAT(ResultOf(R"(
      def @main(%x: Tensor[(2), float32]) {
        let %y = exp(%x);
        let %f = fn (%z: Tensor[(2), float32]) -> Tensor[(2), float32] { add(%z, %y) };
        let %g = fn (%z: Tensor[(2), float32]) -> Tensor[(2), float32] { %f(%f(%z)) };
        %g(%x)
      })",
                       {Floats({0, 0})}),
              ElementsAre(2, 2));
}

TEST(InterpreterTest, FunctionsAreValues) {
  const Expr x = MakeVar("x", kPair);
  const Expr z = MakeVar("z", kPair);
  const Expr condition = MakeVar("c", TensorType{{}, DType::kBool});
  const Expr add = *MakeFunction({z}, CallOf("add", {z, x}));
  const Expr multiply = *MakeFunction({z}, CallOf("multiply", {z, x}));
  const Expr chosen = *MakeIf(condition, add, multiply);
  const Expr main = *MakeFunction({condition, x}, *MakeCall(chosen, {x}));
  EXPECT_THAT(InterpretFunction(main, {Tensor::Scalar(true, DType::kBool), Floats({3, 4})})->at(0).ToDouble(), ElementsAre(6, 8));
  EXPECT_THAT(InterpretFunction(main, {Tensor::Scalar(false, DType::kBool), Floats({3, 4})})->at(0).ToDouble(), ElementsAre(9, 16));

  const Expr maker = *MakeFunction({x}, add);
  const Result<Value> closure = Interpret(IRModule::FromMain(maker), "main", {Floats({5, 6})});
  ASSERT_TRUE(closure.has_value());
  ASSERT_NE(closure->AsClosure(), nullptr);
  const Expr f = MakeVar("f", closure->type());
  const Expr y = MakeVar("y", kPair);
  const Result<Value> result = Interpret(IRModule::FromMain(*MakeFunction({f, y}, *MakeCall(f, {y}))), "main", {*closure, Floats({1, 1})});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_THAT(result->AsTensor()->ToDouble(), ElementsAre(6, 7));
}

TEST(InterpreterTest, LooksIntoPrimitiveAndCompositeFunctions) {
  const std::string text = R"(
      def @main(%x: Tensor[(2), float32]) {
        %1 = fn (%a: Tensor[(2), float32], Primitive=1, Compiler="dnnl", global_symbol="collage_dnnl_0") -> Tensor[(2), float32] {
          %0 = fn (%b: Tensor[(2), float32], Composite="dnnl.twice") -> Tensor[(2), float32] { add(%b, %b) };
          %0(%a)
        };
        %1(%x)
      })";
  EXPECT_THAT(ResultOf(text, {Floats({2, 5})}), ElementsAre(4, 10));
}

const char* const kCountDown = R"(
    def @count(%n: int64, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (equal(%n, 0i64)) { %x } else { @count(subtract(%n, 1i64), add(%x, 1f)) }
    }
    def @main(%n: int64, %x: Tensor[(2), float32]) -> Tensor[(2), float32] { @count(%n, %x) })";

TEST(InterpreterTest, RecursesThroughGlobalFunctionsWithoutTheMachineStack) {
  const auto depth = static_cast<int64_t>(Rounds(100000));
  EXPECT_THAT(ResultOf(kCountDown, {Tensor::Scalar(depth, DType::kInt64), Floats({0, 7})}), ElementsAre(depth, depth + 7));
}

TEST(InterpreterTest, RecursesThroughAVariableThatALetBinds) {
  const Expr n = MakeVar("n", TensorType{{}, DType::kInt64});
  const Expr x = MakeVar("x", kPair);
  const Type type = FunctionType{{n->type(), x->type()}, std::make_shared<const Type>(x->type())};
  const Expr f = MakeVar("f", type);
  const Expr one = MakeConstant(Tensor::Scalar(1, DType::kInt64));
  const Expr zero = MakeConstant(Tensor::Scalar(0, DType::kInt64));
  const Expr next = *MakeCall(f, {CallOf("subtract", {n, one}), CallOf("add", {x, x})});
  const Expr literal = *MakeFunction({n, x}, *MakeIf(CallOf("equal", {n, zero}), x, next));
  const Expr m = MakeVar("m", n->type());
  const Expr y = MakeVar("y", kPair);
  const Expr main = *MakeFunction({m, y}, *MakeLet(f, literal, *MakeCall(f, {m, y})));
  EXPECT_THAT(InterpretFunction(main, {Tensor::Scalar(10, DType::kInt64), Floats({1, 3})})->at(0).ToDouble(), ElementsAre(1024, 3072));
}

Expr Chain(const Expr& x, int length) {
  Expr chain = x;
  for (int i = 0; i < length; ++i) chain = CallOf("negative", {chain});
  return chain;
}

TEST(InterpreterTest, LongChainsNeedNoStack) {
  const Expr x = MakeVar("x", kPair);
  EXPECT_THAT(InterpretFunction(*MakeFunction({x}, Chain(x, 100000)), {Floats({1, -2})})->at(0).ToDouble(), ElementsAre(1, -2));
}

TEST(InterpreterTest, LongChainsOfLetsNeedNoStack) {
  constexpr int kLength = 100000;
  std::vector<Expr> variables;
  for (int i = 0; i <= kLength; ++i) variables.push_back(MakeVar("x" + std::to_string(i), kPair));
  Expr body = variables[kLength];
  for (int i = kLength; i-- > 0;) body = *MakeLet(variables[i + 1], CallOf("negative", {variables[i]}), body);
  EXPECT_THAT(InterpretFunction(*MakeFunction({variables[0]}, body), {Floats({1, -2})})->at(0).ToDouble(), ElementsAre(1, -2));
}

TEST(InterpreterTest, DeeplyNestedFunctionLiteralsNeedNoStack) {
  const Expr x = MakeVar("x", kPair);
  Expr body = CallOf("negative", {x});
  for (int i = 0; i < 2000; ++i) body = *MakeCall(*MakeFunction({}, body), {});
  EXPECT_THAT(InterpretFunction(*MakeFunction({x}, body), {Floats({1, -2})})->at(0).ToDouble(), ElementsAre(-1, 2));
}

size_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(InterpreterTest, FreesATensorAfterItsLastUse) {
  const Expr x = MakeVar("x", TensorType{{1 << 20}, DType::kFloat32});
  std::vector<Expr> variables = {x};
  for (int i = 0; i < 20; ++i) variables.push_back(MakeVar("y", x->type()));
  Expr lets = variables.back();
  for (size_t i = 20; i-- > 0;) lets = *MakeLet(variables[i + 1], CallOf("negative", {variables[i]}), lets);
  for (const Expr& body : {Chain(x, 20), lets}) {
    Tensor input(*x->type().AsTensor());
    const size_t before = BytesInUse();
    size_t largest = 0;
    InterpreterOptions options;
    options.on_operator = [&](const Expr&, std::span<const Tensor>) { largest = std::max(largest, BytesInUse() - before); };
    ASSERT_TRUE(InterpretFunction(*MakeFunction({x}, body), {input}, options).has_value());
    EXPECT_LT(largest, 5 * input.ByteCount());
  }
}

/// A loop that fills a tensor holds that of one iteration and the next, not those of all.
TEST(InterpreterTest, ALoopHoldsTheTensorsOfOneIteration) {
  const IRModule module = Parsed(R"(
    def @main(%n: int64, %stack: Tensor[(1000), float32]) {
      @loop(%n, %stack)
    }
    def @loop(%n: int64, %stack: Tensor[(1000), float32]) -> Tensor[(1000), float32] {
      let %more = greater(%n, 0i64);
      if (%more) {
        let %next = add(%stack, 1f);
        @loop(subtract(%n, 1i64), %next)
      } else {
        negative(%stack)
      }
    })");
  const Tensor stack(TensorType{{1000}, DType::kFloat32});
  const size_t before = BytesInUse();
  size_t largest = 0;
  InterpreterOptions options;
  options.on_operator = [&](const Expr&, std::span<const Tensor>) { largest = std::max(largest, BytesInUse() - before); };
  const Result<std::vector<Tensor>> result = InterpretMain(module, {Tensor::Scalar(int64_t{1000}, DType::kInt64), stack}, options);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->at(0).ToDouble()[7], -1000);
  EXPECT_LT(largest, 10 * stack.ByteCount());
}

TEST(InterpreterTest, SaysWhatIsWrongWithInputs) {
  const IRModule module = Parsed("def @main(%x: Tensor[(2), float32]) { exp(%x) }");
  EXPECT_THAT(InterpretMain(module, {}).error().message, HasSubstr("@main: found 0 input tensors, expected 1"));
  EXPECT_THAT(InterpretMain(module, {Floats({1, 2, 3})}).error().message,
              HasSubstr("@main: %x is given Tensor[(3,), float32], expected Tensor[(2,), float32]"));
  EXPECT_THAT(InterpretMain(module, {Tensor()}).error().message, HasSubstr("%x is given a tensor without a value"));
  EXPECT_THAT(InterpretTensors(module, "other", {}).error().message, HasSubstr("the module has no function @other"));
  EXPECT_THAT(Interpret(module, "main", {Value(std::vector<Value>{Floats({1, 2})})}).error().message, HasSubstr("%x is given"));
}

TEST(InterpreterTest, SaysWhichFunctionIsMissing) {
  const Expr x = MakeVar("x", kPair);
  const Expr global = MakeGlobalVar("f", FunctionType{{x->type()}, std::make_shared<const Type>(x->type())});
  const Expr main = *MakeFunction({x}, *MakeCall(global, {x}));
  EXPECT_THAT(InterpretMain(IRModule::FromMain(main), {Floats({1, 2})}).error().message, HasSubstr("the module has no such function"));
  IRModule module = IRModule::FromMain(main);
  const Expr y = MakeVar("y", TensorType{{3}, DType::kFloat32});
  module.Set("f", *MakeFunction({y}, y));
  EXPECT_THAT(InterpretMain(module, {Floats({1, 2})}).error().message, HasSubstr("@f is used as"));
}

TEST(InterpreterTest, SaysWhichVariableIsUnbound) {
  const Expr x = MakeVar("x", kPair);
  const Expr stray = MakeVar("stray", kPair);
  EXPECT_THAT(InterpretFunction(*MakeFunction({x}, CallOf("add", {x, stray})), {Floats({1, 2})}).error().message,
              HasSubstr("%stray is used where nothing binds it"));
  const Expr inner = *MakeFunction({}, stray);
  EXPECT_THAT(InterpretFunction(*MakeFunction({x}, *MakeCall(inner, {})), {Floats({1, 2})}).error().message,
              HasSubstr("%stray is used where nothing binds it"));
}

}  // namespace
}  // namespace collage
