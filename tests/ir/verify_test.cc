#include "collage/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/parsed.h"
#include "tests/ir/programs.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const IRModule& module) {
  const Status status = Verify(module);
  return status ? "" : status.error().message;
}

std::string ErrorOf(const Expr& body, std::vector<Expr> parameters) {
  return ErrorOf(IRModule::FromMain(*MakeFunction(std::move(parameters), body)));
}

Expr Scalar(const char* name) { return MakeVar(name, TensorType{}); }
Expr CallOf(const char* op, std::vector<Expr> args) { return *MakeCall(SmallTable().Find(op), std::move(args)); }

TEST(Verify, AcceptsWhatIsRight) {
  for (const char* text : {
           kMnist,
           kPartitionedMnist,
           "fn (%c: bool, %x: float32) { %0 = exp(%x); %1 = exp(%0); if (%c) { add(%0, %1) } else { exp(%0) } }",
           "fn (%x: float32) { let %f = fn (%n: float32) -> float32 { if (less(%n, 0f)) { %n } else { %f(subtract(%n, 1f)) } }; %f(%x) }",
           "fn (%x: float32) { let %y = exp(%x); let %z = exp(%y); add(%z, %y) }",
           "fn (%x: float32) { fn (%y: float32) { add(%x, %y) } }",
           "def @main(%x: float32) -> float32 { @f(%x) } def @f(%x: float32) -> float32 { @f(%x) }",
       }) {
    EXPECT_EQ(ErrorOf(Parsed(text).module), "");
  }
}

TEST(Verify, ThereIsAMain) { EXPECT_EQ(ErrorOf(Parsed("def @f() { 1 }").module), "the module has no function @main"); }

TEST(Verify, VariablesAreBound) {
  const Expr x = Scalar("x");
  EXPECT_EQ(ErrorOf(CallOf("exp", {x}), {}), "@main: %x: this variable is not bound");
}

TEST(Verify, VariablesAreBoundOnce) {
  const Expr x = Scalar("x");
  EXPECT_EQ(ErrorOf(x, {x, x}), "@main: %x: this variable is bound twice");
  EXPECT_EQ(ErrorOf(*MakeLet(x, x, x), {x}), "@main: %x: this variable is bound twice");
  IRModule module = Parsed("fn (%x: float32) { exp(%x) }").module;
  module.Set("other", module.MainExpr());
  EXPECT_THAT(ErrorOf(module), HasSubstr("bound twice"));
}

TEST(Verify, VariablesAreUsedWhereTheyAreVisible) {
  const Expr x = Scalar("x");
  const Expr y = Scalar("y");
  const Expr exp_y = CallOf("exp", {y});
  // Outside of the body of let.
  const Expr let = *MakeLet(y, x, exp_y);
  EXPECT_EQ(ErrorOf(CallOf("add", {let, exp_y}), {x}), "@main: %y: this variable is used where it is not visible");
  // In the value of let, which is no function.
  EXPECT_EQ(ErrorOf(*MakeLet(y, exp_y, y), {}), "@main: %y: this variable is used where it is not visible");
  // A parameter of a function literal outside of it.
  const Expr function = *MakeFunction({y}, exp_y);
  EXPECT_EQ(ErrorOf(CallOf("add", {*MakeCall(function, {x}), y}), {x}), "@main: %y: this variable is used where it is not visible");
}

TEST(Verify, GlobalNamesFitTheModule) {
  const Expr x = Scalar("x");
  const auto call = [&](const std::string& name, const Type& type) {
    return *MakeCall(MakeGlobalVar(name, FunctionType{{TensorType{}}, std::make_shared<const Type>(type)}), {x});
  };
  EXPECT_THAT(ErrorOf(call("f", TensorType{}), {x}), HasSubstr("@f is not in the module"));
  EXPECT_THAT(ErrorOf(call("main", TensorType{{2}, DType::kInt64}), {x}), HasSubstr(""));
  IRModule module = Parsed("def @f(%x: float32) -> float32 { %x }").module;
  module.Set("main", *MakeFunction({x}, call("f", TensorType{{2}, DType::kInt64})));
  EXPECT_THAT(ErrorOf(module), HasSubstr("@f has type fn (float32) -> float32 but is used as fn (float32) -> Tensor[(2,), int64]"));
}

TEST(Verify, PrimitiveFunctionsAreClosed) {
  EXPECT_EQ(ErrorOf(Parsed("fn (%x: float32) { %0 = fn (%y: float32, Primitive=1) { add(%x, %y) }; %0(%x) }").module),
            "@main: %0: a Primitive or Composite function uses %x, which is bound outside of it");
  EXPECT_THAT(ErrorOf(Parsed("fn (%x: float32) { %0 = fn (%y: float32, Composite=\"a\") { add(%x, %y) }; %0(%x) }").module),
              HasSubstr("which is bound outside of it"));
}

TEST(Verify, CompilersComeWithUniqueSymbols) {
  EXPECT_THAT(ErrorOf(Parsed("fn (%x: float32) { (fn (%y: float32, Primitive=1, Compiler=\"a\") { %y })(%x) }").module),
              HasSubstr("needs Primitive=1 and a \"global_symbol\""));
  const std::string f = "fn (%y: float32, Primitive=1, Compiler=\"a\", global_symbol=\"s\") { %y }";
  EXPECT_THAT(ErrorOf(Parsed("fn (%x: float32) { (" + f + ")((" + f + ")(%x)) }").module), HasSubstr("the global_symbol \"s\" is taken"));
  EXPECT_EQ(ErrorOf(Parsed("fn (%x: float32) { %0 = " + f + "; %0(%0(%x)) }").module), "");
}

TEST(Verify, TakesHundredThousandOperators) {
  for (bool lets : {false, true}) EXPECT_EQ(ErrorOf(Parsed(ChainText(100'000, lets)).module), "");
}

}  // namespace
}  // namespace collage
