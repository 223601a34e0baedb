// Kernels that call a library's kernel on panels of rows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "collage/backend/registry.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Device kDevice{DeviceKind::kCpu, 0, 2};

const Backend& Native() { return **FindBackend("native", kDevice); }

/// A call of a library's function; its parameters are those of `arguments`.
struct Called {
  std::vector<Expr> parameters;
  Expr body;
  std::string label = "dnnl.dense";
};
Expr CallOf(const Called& called, const std::vector<Expr>& arguments) {
  const Expr function = *MakeFunction(called.parameters, called.body, {{"Composite", called.label}});
  return *MakeCall(function, arguments);
}

Expr DenseBias(const Expr& x, int64_t depth, int64_t columns) {
  const Expr inner = Parameter("FunctionVar_0", x->type().AsTensor()->shape);
  const Expr product = CallNamed("nn.dense", {inner, RandomConstant({columns, depth}, 3, -0.3, 0.3)});
  return CallOf({{inner}, CallNamed("nn.bias_add", {product, RandomConstant({columns}, 4)}, {{"axis", -1}})}, {x});
}

Expr LayerNorm(const Expr& x, int64_t columns) {
  return CallNamed("nn.layer_norm", {x, RandomConstant({columns}, 5), RandomConstant({columns}, 6)});
}

Expr GeluByTanh(const Expr& x) {
  const Expr cube = CallNamed("power", {x, ScalarConstant(3)});
  const Expr inner =
      CallNamed("multiply", {CallNamed("add", {x, CallNamed("multiply", {cube, ScalarConstant(0.044715)})}), ScalarConstant(0.7978846)});
  const Expr factor = CallNamed("add", {CallNamed("tanh", {inner}), ScalarConstant(1)});
  return CallNamed("multiply", {CallNamed("multiply", {x, factor}), ScalarConstant(0.5)});
}

class NativeCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto dnnl = FindBackend("dnnl", kDevice); !dnnl) GTEST_SKIP() << dnnl.error().message;
  }
};

TEST_F(NativeCallsTest, AllRowsAreComputed) {
  // One row, fewer rows than threads, fewer than begin at aligned addresses, panels that do not divide the rows.
  for (const int64_t rows : {1, 2, 3, 16, 37, 150, 1000, 8200}) {
    SCOPED_TRACE(rows);
    const Expr x = Parameter("x", {rows, 20});
    const Expr residual = Parameter("r", {rows, 24});
    ExpectMatchesReference({x, residual}, LayerNorm(CallNamed("add", {DenseBias(x, 20, 24), residual}), 24));
  }
}

TEST_F(NativeCallsTest, RowsOfSeveralLeadingDimensions) {
  const Expr x = Parameter("x", {2, 3, 7, 12});
  const Expr scale = Parameter("s", {2, 3, 7, 1});
  const Expr shift = Parameter("t", {1, 10});
  ExpectMatchesReference({scale, x, shift}, GeluByTanh(CallNamed("add", {CallNamed("multiply", {DenseBias(x, 12, 10), scale}), shift})));
}

TEST_F(NativeCallsTest, ReductionsAlongARowAndResultsOfOtherTypes) {
  const Expr x = Parameter("x", {45, 16});
  const Expr product = DenseBias(x, 16, 33);
  const Expr largest = CallNamed("max", {product}, {{"axis", std::vector<int64_t>{-1}}, {"keepdims", true}});
  ExpectMatchesReference({x}, CallNamed("greater_equal", {product, CallNamed("multiply", {largest, ScalarConstant(0.5)})}));
  ExpectMatchesReference({x}, CallNamed("sum", {CallNamed("nn.softmax", {product})}, {{"axis", std::vector<int64_t>{1}}}));
}

TEST_F(NativeCallsTest, BatchesOfMatrices) {
  const Expr a = Parameter("a", {2, 3, 5, 8});
  const Expr b = Parameter("b", {2, 3, 8, 11});
  const Expr mask = Parameter("m", {1, 1, 1, 11});
  const std::vector<Expr> inner = {Parameter("FunctionVar_0", {2, 3, 5, 8}), Parameter("FunctionVar_1", {2, 3, 8, 11})};
  const Expr scores = CallOf({inner, CallNamed("nn.matmul", {inner[0], inner[1]}), "dnnl.matmul_variables"}, {a, b});
  ExpectMatchesReference({b, mask, a}, CallNamed("nn.softmax", {CallNamed("add", {scores, mask})}));
}

TEST_F(NativeCallsTest, WhatTheLibraryAddsToIsGivenToIt) {
  const Expr x = Parameter("x", {70, 9});
  const Expr r = Parameter("r", {70, 40});
  const Expr inner_x = Parameter("FunctionVar_0", {70, 9});
  const Expr inner_r = Parameter("FunctionVar_1", {70, 40});
  const Expr sum = CallNamed("add", {CallNamed("nn.dense", {inner_x, RandomConstant({40, 9}, 3)}), inner_r});
  const Expr called = CallOf({{inner_x, inner_r}, sum, "dnnl.dense_add"}, {x, r});
  ExpectMatchesReference({x, r}, LayerNorm(CallNamed("add", {called, r}), 40));
}

TEST_F(NativeCallsTest, TextFormRoundTrips) {
  const Expr x = Parameter("x", {37, 20});
  const Expr function = *MakeFunction({x}, LayerNorm(DenseBias(x, 20, 24), 24));
  const PrintedText printed = PrintExpr(function);
  EXPECT_THAT(printed.text, HasSubstr("Composite=\"dnnl.dense\""));
  ParseOptions options;
  options.constants = printed.constants;
  const Result<ParsedExpr> parsed = ParseExpr(printed.text, Operators(), options);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto names = [](const Expr& of) {
    std::set<std::string> all;
    for (const Variant& variant : Native().Variants(*of->As<Function>(), kDevice)) all.insert(variant.name);
    return all;
  };
  EXPECT_FALSE(names(function).empty());
  EXPECT_EQ(names(function), names(parsed->expr));
}

TEST_F(NativeCallsTest, NamesOfVariantsTellTheLibraryAndItsVersion) {
  const Expr x = Parameter("x", {37, 20});
  const Expr function = *MakeFunction({x}, LayerNorm(DenseBias(x, 20, 24), 24));
  const std::string version = (*FindBackend("dnnl", kDevice))->Probe(kDevice).version;
  const std::vector<Variant> variants = Native().Variants(*function->As<Function>(), kDevice);
  EXPECT_FALSE(variants.empty());
  for (const Variant& variant : variants) EXPECT_THAT(variant.name, HasSubstr("/dnnl " + version + "/"));
}

TEST_F(NativeCallsTest, WhatCannotBeCutIntoRowsHasNoVariants) {
  const Expr x = Parameter("x", {6, 20});
  const Expr product = DenseBias(x, 20, 24);
  const auto variants = [&](const std::vector<Expr>& parameters, const Expr& body) {
    return Native().Variants(*(*MakeFunction(parameters, body))->As<Function>(), kDevice);
  };
  EXPECT_THAT(variants({x}, product), IsEmpty()) << "nothing is generated";
  const Expr nothing = Parameter("x", {0, 20});
  EXPECT_THAT(variants({nothing}, CallNamed("nn.relu", {DenseBias(nothing, 20, 24)})), IsEmpty());
  EXPECT_THAT(variants({x}, CallNamed("nn.softmax", {product}, {{"axis", 0}})), IsEmpty());
  EXPECT_THAT(variants({x}, CallNamed("sum", {product}, {{"axis", std::vector<int64_t>{0}}})), IsEmpty());
  EXPECT_THAT(variants({x}, CallNamed("transpose", {product}, {{"axes", std::vector<int64_t>{1, 0}}})), IsEmpty());
  const Expr by_row = RandomConstant({6, 1}, 9);
  EXPECT_THAT(variants({x}, CallNamed("add", {product, by_row})), IsEmpty()) << "a constant of its own for each row";
  const Expr behind = DenseBias(CallNamed("nn.relu", {x}), 20, 24);
  EXPECT_THAT(variants({x}, CallNamed("nn.relu", {behind})), IsEmpty()) << "something is computed in front";
  EXPECT_THAT(variants({x}, CallNamed("add", {product, DenseBias(x, 20, 24)})), IsEmpty()) << "two calls";
}

TEST_F(NativeCallsTest, NothingWhereTheLibraryDeclines) {
  const Expr x = Parameter("x", {6, 20});
  const Expr inner = Parameter("FunctionVar_0", {6, 20});
  const Expr erf = CallNamed("erf", {CallNamed("nn.dense", {inner, RandomConstant({24, 20}, 3)})});  // alone it is no post-operation
  const Expr declined = *MakeFunction({x}, LayerNorm(CallOf({{inner}, erf, "dnnl.dense_erf"}, {x}), 24));
  EXPECT_THAT(Native().Variants(*declined->As<Function>(), kDevice), IsEmpty());
  const Result<std::unique_ptr<Kernel>> kernel = Native().Compile(*declined->As<Function>(), kDevice, {"default", {Layout()}, {Layout()}});
  ASSERT_FALSE(kernel);
}

TEST_F(NativeCallsTest, DamagedArtifactsAreRefused) {
  const Expr x = Parameter("x", {40, 8});
  const Expr function = *MakeFunction({x}, LayerNorm(DenseBias(x, 8, 24), 24));
  const Function& primitive = *function->As<Function>();
  const Result<std::unique_ptr<Kernel>> kernel = Native().Compile(primitive, kDevice, Native().Variants(primitive, kDevice).at(0));
  ASSERT_TRUE(kernel) << kernel.error().message;
  const std::string saved = (*kernel)->Serialize();
  ASSERT_TRUE(Native().Load(saved, kDevice));
  EXPECT_TRUE(Native().Load(saved, Device{DeviceKind::kCpu, 0, 3})) << "as many threads as there are here";
  for (size_t size = 0; size < saved.size(); size += 1 + size / 20) EXPECT_FALSE(Native().Load(saved.substr(0, size), kDevice)) << size;
  EXPECT_FALSE(Native().Load(saved + "x", kDevice));
  // Everything in front of the machine code: sizes, types, the library's text.
  const size_t code = saved.find("\177ELF");
  ASSERT_NE(code, std::string::npos);
  for (size_t at = 0; at < code; at += 3) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    (void)Native().Load(damaged, kDevice);
  }
}

TEST(NativeLabels, ThoseOfNobodyAreInlined) {
  const Expr x = Parameter("x", {6, 20});
  const Expr inner = Parameter("FunctionVar_0", {6, 20});
  for (const char* label : {"native.relu", "nobody.relu", "relu"}) {
    const Expr function = *MakeFunction({x}, CallNamed("exp", {CallOf({{inner}, CallNamed("nn.relu", {inner}), label}, {x})}));
    const std::vector<Variant> variants = Native().Variants(*function->As<Function>(), kDevice);
    ASSERT_FALSE(variants.empty()) << label;
    EXPECT_EQ(variants[0].name.substr(0, 7), "default") << label;
  }
}

}  // namespace
}  // namespace collage
