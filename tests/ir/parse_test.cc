#include "collage/ir/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "tests/ir/parsed.h"
#include "tests/ir/programs.h"
#include "tests/ir/small_table.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ParseOptions Zeros() {
  ParseOptions options;
  options.missing_constant = ZeroConstants();
  return options;
}

std::string ErrorOf(const std::string& text) {
  const Result<ParsedModule> parsed = ParseModule(text, SmallTable(), Zeros());
  return parsed ? "no error" : parsed.error().message;
}

// Prints what the text parses to.
std::string Reprinted(const std::string& text) {
  const Result<ParsedModule> parsed = ParseModule(text, SmallTable(), Zeros());
  return parsed ? Print(parsed->module.MainExpr()) : parsed.error().message;
}

std::string ReprintedExpr(const std::string& text) {
  ParseOptions options = Zeros();
  options.variables = {MakeVar("x", TensorType{{4, 2}, DType::kFloat32}), MakeVar("c", TensorType{{}, DType::kBool})};
  const Result<ParsedExpr> parsed = ParseExpr(text, SmallTable(), options);
  return parsed ? Print(parsed->expr) : parsed.error().message;
}

TEST(Parse, CanonicalTextPrintsBackAsItWas) {
  EXPECT_EQ(Reprinted(kMnist), kMnist);
  for (const char* text : {
           "fn (%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n  %x\n}\n",
           "fn () -> () {\n  ()\n}\n",
           "fn (%a: float32, %b: (int64, bool)) -> ((int64, bool), float32) {\n  (%b, %a)\n}\n",
           "fn (%t: (int64, bool)) -> (int64,) {\n  %0 = %t.0;\n  (%0,)\n}\n",
           "fn (%f: fn (float32) -> float32, %x: float32) -> float32 {\n  %f(%x)\n}\n",
           "fn (%x: float32) -> float32 {\n  let %y = add(%x, 1f);\n  let %z = multiply(%y, %y);\n  add(%z, %y)\n}\n",
           "fn (%c: bool, %x: float32) -> float32 {\n  if (%c) {\n    %0 = exp(%x);\n    exp(%0)\n  } else {\n    %x\n  }\n}\n",
           "fn (%c: bool, %x: float32) -> float32 {\n  %0 = exp(%x);\n  %2 = if (%c) {\n    add(%0, 1f)\n  } else {\n"
           "    %1 = exp(%0);\n    exp(%1)\n  };\n  add(%2, %0)\n}\n",
           "fn (%x: float32) -> float32 {\n  %0 = (\n    let %y = exp(%x);\n    add(%y, %y)\n  );\n  exp(%0)\n}\n",
           "fn (%x: float32) -> float32 {\n  let %f = fn (%n: float32) -> float32 {\n    %0 = less(%n, 0f);\n    if (%0) {\n      %n\n"
           "    } else {\n      %1 = subtract(%n, 1f);\n      %f(%1)\n    }\n  };\n  %f(%x)\n}\n",
           "fn (%x: float32) -> float32 {\n  %1 = fn (%p: float32, Primitive=1, Compiler=\"dnnl\", global_symbol=\"s\") -> float32 {\n"
           "    %0 = exp(%p);\n    exp(%0)\n  };\n  %2 = %1(%x);\n  %1(%2)\n}\n",
       }) {
    EXPECT_EQ(Reprinted(text), text);
  }
}

TEST(Parse, ReadsAHandMadePartitioning) {
  const Result<ParsedModule> parsed = ParseModule(kPartitionedMnist, SmallTable(), Zeros());
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const NameTable& names = parsed->names.at("main");
  const Function* partition = names.at("14")->As<Function>();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(*partition->attributes.String("Compiler", ""), "tensorrt");
  EXPECT_EQ(*partition->attributes.Int("Primitive", 0), 1);
  EXPECT_TRUE(IsCallOf(partition->body, "nn.relu"));
  // %3 is also bound inside %8: the outer binding is the one that the table gives.
  EXPECT_NE(names.at("3")->As<Function>(), nullptr);
  EXPECT_EQ(names.at("4")->As<Call>()->callee, names.at("3"));
  EXPECT_NE(names.at("FunctionVar_21")->As<Var>(), nullptr);
  // Its canonical form is stable.
  const std::string canonical = Print(parsed->module.MainExpr());
  EXPECT_THAT(canonical, HasSubstr("  %3 = fn (%FunctionVar_07: Tensor[(1, 1, 32, 32), float32], Primitive=1) -> "
                                   "Tensor[(1, 8, 28, 28), float32] {\n    %2 = fn (%FunctionVar_5: "));
  EXPECT_EQ(Reprinted(canonical), canonical);
}

TEST(Parse, ModulesOfSeveralFunctions) {
  const std::string text =
      "def @main(%x: float32) -> float32 {\n  %0 = @twice(%x);\n  @twice(%0)\n}\n\n"
      "def @twice(%x: float32, Primitive=1) -> float32 {\n  add(%x, %x)\n}\n\n"
      "def @forever(%x: float32) -> float32 {\n  @forever(%x)\n}\n";
  const Result<ParsedModule> parsed = ParseModule(text, SmallTable());
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(Print(parsed->module), text);
  EXPECT_EQ(parsed->module.functions().size(), 3u);
  EXPECT_TRUE(parsed->names.at("main").contains("0"));
  EXPECT_FALSE(parsed->names.at("twice").contains("0"));
}

TEST(Parse, NumberedBindingsAreSharedExpressions) {
  const Result<ParsedModule> parsed = ParseModule("fn (%x: float32) { %0 = exp(%x); add(%0, %0) }", SmallTable());
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const Call* add = parsed->module.Main().body->As<Call>();
  EXPECT_EQ(add->args[0], add->args[1]);
  EXPECT_EQ(add->args[0], parsed->names.at("main").at("0"));
}

TEST(Parse, AnExpressionSharedByScopesIsBoundAroundThem) {
  EXPECT_EQ(Reprinted("fn (%c: bool, %x: float32) { %0 = exp(%x); %1 = exp(%0); if (%c) { add(%0, %1) } else { exp(%0) } }"),
            "fn (%c: bool, %x: float32) -> float32 {\n  %0 = exp(%x);\n  if (%c) {\n    %1 = exp(%0);\n    add(%0, %1)\n"
            "  } else {\n    exp(%0)\n  }\n}\n");
}

TEST(Parse, NestedExpressionsBecomeBindings) {
  EXPECT_EQ(ReprintedExpr("add(exp(%x), (split(%x).0, %x).1)"),
            "%0 = exp(%x);\n%1 = split(%x);\n%2 = %1.0;\n%3 = (%2, %x);\n%4 = %3.1;\nadd(%0, %4)\n");
  EXPECT_EQ(ReprintedExpr("((%x, (%x,)).1).0"), "%0 = (%x,);\n%1 = (%x, %0);\n%2 = %1.1;\n%2.0\n");
  EXPECT_EQ(ReprintedExpr("(%x, (%x,)).1.0"), "%0 = (%x,);\n%1 = (%x, %0);\n%2 = %1.1;\n%2.0\n");
  EXPECT_EQ(ReprintedExpr("let %y: Tensor[(4, 2), float32] = (let %x = exp(%x); %x); exp(%y)"),
            "let %y = (\n  let %x = exp(%x_1);\n  %x\n);\nexp(%y)\n");
  EXPECT_EQ(ReprintedExpr("(fn (%y: float32) { %y })(1f)"), "%0 = fn (%y: float32) -> float32 {\n  %y\n};\n%0(1f)\n");
  EXPECT_EQ(ReprintedExpr("%named = exp(%x); (%named, %named)"), "%0 = exp(%x);\n(%0, %0)\n");
}

TEST(Parse, ScalarsPrintAsLiterals) {
  EXPECT_EQ(
      ReprintedExpr("(0f, 1.5f, 1.5, 1e-05f, -0f, 3, -3, 3i64, 3u8, 2.0f64, True, False, inff, -inff64, 0.1f32, 18446744073709551615u64)"),
      "(0f, 1.5f, 1.5f, 1e-05f, -0f, 3, -3, 3i64, 3u8, 2f64, True, False, inff, -inff64, 0.1f, 18446744073709551615u64)\n");
  EXPECT_EQ(ReprintedExpr("nanf"), "meta[relay.Constant][0] /*Tensor[(), float32]*/\n");
  EXPECT_THAT(ReprintedExpr("300u8"), HasSubstr("1:1: the number '300u8' is malformed or does not fit uint8"));
  EXPECT_THAT(ReprintedExpr("3000000000"), HasSubstr("does not fit int32"));
  EXPECT_THAT(ReprintedExpr("1.5i64"), HasSubstr("is not an integer"));
  EXPECT_THAT(ReprintedExpr("1f16"), HasSubstr("unknown suffix"));
}

TEST(Parse, AttributesKeepKindAndOrder) {
  const std::string text =
      "annotate(%x, text=\"a \\\"b\\\" \\\\\", none=None, flag=True, float=0.1f, int=-3, list=[[1, 2], [], \"s\", 2f])\n";
  EXPECT_EQ(ReprintedExpr(text), text);
  EXPECT_EQ(ReprintedExpr("annotate(%x, list=(1, (2,), ()), float=1e-3, int=7i64, text=float32)"),
            "annotate(%x, list=[1, [2], []], float=0.001f, int=7, text=\"float32\")\n");
}

/// Whatever a text may hold besides operators, read, verified, printed and read again.
TEST(Parse, EveryFormOfExpressionRoundTrips) {
  const std::string type = "Tensor[(4,), float32]";
  const std::vector<std::string> texts = {
      "fn (%x: T) { %0 = (%x,); %1 = %0.0; exp(%1) }",
      "fn (%x: T) { %0 = (); %1 = (%0, %x); %1.1 }",
      "fn (%x: T) -> () { () }",
      "fn (%x: (T,)) { %x.0 }",
      "fn (%x: T) { %0 = (let %v = exp(%x); add(%v, %v)); exp(%0) }",
      "fn (%x: T) { add((let %v = exp(%x); %v), %x) }",
      "fn (%x: T) { fn (%y: T) { exp(%y) }(%x) }",
      "fn (%x: T) { %0 = fn (%y: T) -> T { %1 = add(%y, %x); exp(%1) }; %2 = %0(%x); %0(%2) }",
      "fn (%x: T) { let %f = fn (%y: T) { exp(%y) }; %f(%x) }",
      "fn (%c: bool, %x: T) { let %f = fn (%y: T) -> T { if (%c) { %0 = exp(%y); %f(%0) } else { %y } }; %f(%x) }",
      "def @f(%c: bool, %y: T) -> T { if (%c) { %0 = exp(%y); @f(%c, %0) } else { %y } } def @main(%c: bool, %x: T) -> T { @f(%c, %x) }",
      "def @main(%c: bool, %x: T) -> T { if (%c) { @main(%c, %x) } else { @g(%x) } } def @g(%x: T) -> T { exp(%x) }",
  };
  for (std::string text : texts) {
    text = std::regex_replace(text, std::regex("\\bT\\b"), type);
    const IRModule module = Parsed(text).module;
    const Status verified = Verify(module);
    EXPECT_TRUE(verified) << text << "\n" << (verified ? "" : verified.error().message);
    const std::string printed = Print(module);
    const IRModule again = Parsed(printed).module;
    EXPECT_TRUE(StructuralEqual(module, again)) << printed;
    EXPECT_EQ(Print(again), printed);
  }
}

/// Every binding is told with its name, in the order of the text, hidden ones too.
TEST(Parse, BindingsKeepTheNamesOfTheText) {
  const ParsedModule parsed = Parsed(R"(def @f(%a: float32) -> float32 { %7 = exp(%a); %7 }
    def @main(%x: float32) -> float32 { %0 = exp(%x); %5 = fn (%y: float32) { %0 = exp(%y); %0 }; let %v = %5(%0); %v })");
  const auto names = [&](const char* function) {
    std::vector<std::string> names;
    for (const Binding& binding : parsed.bindings.at(function)) names.push_back(binding.name);
    return names;
  };
  EXPECT_EQ(names("f"), (std::vector<std::string>{"a", "7"}));
  EXPECT_EQ(names("main"), (std::vector<std::string>{"x", "0", "y", "0", "5", "v"}));
  EXPECT_NE(parsed.bindings.at("main")[1].expr, parsed.bindings.at("main")[3].expr);
  EXPECT_EQ(parsed.names.at("main").at("0"), parsed.bindings.at("main")[1].expr);
  // The braces in which a binding stands, by their owner.
  const auto owner = [&](size_t i) { return parsed.blocks.at(parsed.bindings.at("main")[i].block).owner; };
  EXPECT_EQ(owner(1), parsed.module.MainExpr().get());
  EXPECT_EQ(owner(3), parsed.bindings.at("main")[4].expr.get());
  EXPECT_EQ(owner(4), parsed.module.MainExpr().get());
}

TEST(Parse, TypesAlone) {
  EXPECT_EQ(ToString(*ParseTypeText("(Tensor[(1, 8), float32], int64)")), "(Tensor[(1, 8), float32], int64)");
  EXPECT_EQ(ParseTypeText("Tensor[(1, 8), float33]").has_value(), false);
  EXPECT_EQ(ParseTypeText("float32 float32").has_value(), false);
}

TEST(Parse, ConstantsComeFromTheTable) {
  const std::string text =
      "fn () { (meta[relay.Constant][1], meta[relay.Constant][0] /*Tensor[(2,), float32]*/, meta[relay.Constant][1]) }";
  ParseOptions options;
  options.constants = {Tensor::FromVector<float>({{2}, DType::kFloat32}, {1, 2}), Tensor::FromVector<int64_t>({{1}, DType::kInt64}, {7})};
  const Result<ParsedModule> parsed = ParseModule(text, SmallTable(), options);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const Tuple* tuple = parsed->module.Main().body->As<Tuple>();
  EXPECT_EQ(tuple->fields[0], tuple->fields[2]);
  // Printing numbers constants anew, in the order of the text.
  const PrintedText printed = PrintModule(parsed->module);
  ASSERT_EQ(printed.constants.size(), 2u);
  EXPECT_TRUE(BitwiseEqual(printed.constants[0], options.constants[1]));
  EXPECT_TRUE(BitwiseEqual(printed.constants[1], options.constants[0]));
}

TEST(Parse, OpenExtentsAreRefused) {
  EXPECT_EQ(ParseTypeText("Tensor[(1, ?), float32]").error().message,
            "1:12: the extent of a dimension is open, and types of a text are fixed: expected a number");
}

TEST(Parse, ATableMayHaveGapsAndAName) {
  ParseOptions options;
  options.constants = {Tensor(), Tensor::FromVector<int64_t>({{1}, DType::kInt64}, {7})};
  EXPECT_TRUE(ParseModule("fn () { meta[relay.Constant][1] }", SmallTable(), options).has_value());
  Result<ParsedModule> parsed = ParseModule("fn () { meta[relay.Constant][0] }", SmallTable(), options);
  EXPECT_EQ(parsed.error().message, "1:9: constant 0 is not in the table of 2");
  options.table_name = "p.npz";
  parsed = ParseModule("fn () { meta[relay.Constant][0] }", SmallTable(), options);
  EXPECT_EQ(parsed.error().message, "1:9: constant 0 is not in p.npz");
}

TEST(Parse, MissingConstants) {
  const std::string typed = "fn () { meta[relay.Constant][3] /* ty=Tensor[(2, 2), float32] */ }";
  Result<ParsedModule> parsed = ParseModule(typed, SmallTable());
  EXPECT_EQ(parsed.error().message, "1:9: constant 3 is not in the table of 0");
  ParseOptions options;
  options.missing_constant = RandomConstants(7);
  parsed = ParseModule(typed, SmallTable(), options);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  Tensor expected(TensorType{{2, 2}, DType::kFloat32});
  FillRandom(expected, 7 + 3);
  EXPECT_TRUE(BitwiseEqual(parsed->module.Main().body->As<Constant>()->value, expected));
  parsed = ParseModule("fn () { meta[relay.Constant][3] }", SmallTable(), options);
  EXPECT_THAT(parsed.error().message, HasSubstr("expected a comment behind it with its type"));
  options.constants.resize(4, Tensor(TensorType{{2}, DType::kFloat32}));
  parsed = ParseModule(typed, SmallTable(), options);
  EXPECT_THAT(parsed.error().message, HasSubstr("has type Tensor[(2,), float32] but the comment says Tensor[(2, 2), float32]"));
}

TEST(Parse, ErrorsNameLineAndColumn) {
  EXPECT_EQ(ErrorOf(""), "1:1: found the end of the text, expected 'fn' or 'def'");
  EXPECT_EQ(ErrorOf("fn (%x: float32) {\n  %0 = exp(%x)\n  %0\n}"), "3:3: found '%0', expected ';'");
  EXPECT_EQ(ErrorOf("fn (%x: float32) {\n  %0 = exp(%y);\n  %0\n}").substr(0, 27), "2:12: %y is not bound here,");
  EXPECT_EQ(ErrorOf("fn (%x: float32) {\n  nn.foo(%x)\n}"), "2:3: found 'nn.foo', expected an operator, a variable, a number, fn or if");
  EXPECT_EQ(ErrorOf("fn (%x: Tensor[(2,), float32], %y: Tensor[(3,), float32]) {\n  %0 = exp(%x);\n\n  %1 =   add(%0, %y);\n %1 }"),
            "4:10: add: shapes (2,) and (3,) do not broadcast");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { exp(%x, %x) }"), "1:20: exp: has 2 arguments, expected 1");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { exp(%x, axis=1) }"), "1:20: exp: has no attribute 'axis'");
  EXPECT_EQ(ErrorOf("fn (%x: float32) -> int32 { exp(%x) }"), "1:1: the function is declared to give int32 but its body has type float32");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { %x.0 }"), "1:22: projection .0 of a value of type float32, expected a tuple");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { (%x, %x).2 }"), "1:28: projection .2 of a tuple of 2 fields");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { if (%x) { %x } else { %x } }"), "1:20: the condition of if has type float32, expected bool");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { let %y: int32 = %x; %y }"), "1:24: %y is declared as int32 but its value has type float32");
  EXPECT_EQ(ErrorOf("fn (%x: float32, %x: float32) { %x }"), "1:18: two parameters have the name %x");
  EXPECT_EQ(ErrorOf("fn (%x: float33) { %x }"),
            "1:9: found 'float33', expected a type such as Tensor[(1, 8), float32], float32, (T, U) or fn (T) -> U");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { exp }"), "1:20: the operator exp is not called, expected '(' behind it");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { %x /* }"), "1:23: the comment has no closing '*/'");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { annotate(%x, text=\"abc) }"), "1:38: the string has no closing '\"'");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { $ }"), "1:20: a character that has no meaning here");
  EXPECT_EQ(ErrorOf("fn (%x: float32) { %x } fn"),
            "1:25: found 'fn', expected the end of the text (a module of several functions is written with 'def @name')");
  EXPECT_EQ(ErrorOf("def @f() { 1 }\ndef @f() { 2 }"), "2:5: @f is defined twice");
  EXPECT_EQ(ErrorOf("def @f() { @g() }"), "1:12: @g is not defined in this module");
  EXPECT_EQ(ErrorOf("def @f() { @f() }"), "1:12: @f is used before its end but does not declare its result type");
  EXPECT_THAT(ErrorOf("fn (%x: Tensor[(9000000000, 9000000000), float32]) { %x }"), HasSubstr("is too large"));
}

TEST(Parse, NestingIsBounded) {
  std::string text = "fn (%x: float32) { ";
  for (int i = 0; i < 150; ++i) text += "exp(";
  EXPECT_EQ(ErrorOf(text + "%x" + std::string(150, ')') + "}"), "no error");
  for (int i = 0; i < 100'000; ++i) text += "(";
  EXPECT_THAT(ErrorOf(text), HasSubstr("nested more than 200 deep"));
  EXPECT_THAT(ErrorOf("fn (%x: " + std::string(100'000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf("fn (%x: float32) { annotate(%x, list=" + std::string(100'000, '[')), HasSubstr("nested too deeply"));
}

TEST(Parse, TypesThatDoubleAreRefused) {
  std::string text = "fn (%x: float32) {\n";
  for (int i = 0; i < 40; ++i) {
    const std::string last = i ? "%" + std::to_string(i - 1) : "%x";
    text += "%" + std::to_string(i) + " = (" + last + ", " + last + ");\n";
  }
  EXPECT_THAT(ErrorOf(text + "%39 }"), HasSubstr("the type of this tuple is too large"));
}

TEST(Parse, TakesHundredThousandOperators) {
  std::string text = "fn (%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n";
  std::string last = "%x";
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = "%" + std::to_string(i);
    text += "  " + name + " = add(" + last + ", " + (i % 2 ? "1f" : "%x") + ");\n";
    last = name;
  }
  text += "  exp(" + last + ")\n}\n";
  EXPECT_EQ(Reprinted(text), text);
}

TEST(Parse, TakesHundredThousandLets) {
  std::string text = "fn (%x: float32) -> float32 {\n";
  std::string last = "%x";
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = "%y" + std::to_string(i);
    text += "  let " + name + " = add(" + last + ", 1f);\n";
    last = name;
  }
  text += "  exp(" + last + ")\n}\n";
  EXPECT_EQ(Reprinted(text), text);
}

}  // namespace
}  // namespace collage
