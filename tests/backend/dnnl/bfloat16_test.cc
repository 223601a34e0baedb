#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/permitted_precision.h"
#include "collage/measure/verification.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)

const Backend& Dnnl() {
  static const Backend& backend = BackendNamed("dnnl");
  return backend;
}

const Precision kPermitted{DType::kBFloat16, kToleranceOfBFloat16};

Expr Convolution(const Expr& data) {
  return CallOp("nn.conv2d", {data, RandomConstant({64, 64, 3, 3}, 11, -0.1, 0.1)}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}});
}

Expr Product(const Expr& data) { return CallOp("nn.matmul", {data, RandomConstant({96, 80}, 3, -0.1, 0.1)}); }

/// Of what a permitted function offers beside the others; each is held to the tolerance.
std::vector<Variant> CheckPermitted(const Expr& function) {
  const Expr permitted = WithPrecision(function, kPermitted);
  std::vector<Variant> found;
  for (Variant& variant : Dnnl().Variants(*permitted->As<Function>(), Cpu(2))) {
    if (!variant.uses_precision) continue;
    SCOPED_TRACE(variant.name);
    const Result<std::unique_ptr<Kernel>> kernel = Dnnl().Compile(*permitted->As<Function>(), Cpu(2), variant);
    if (!kernel) ADD_FAILURE() << kernel.error().message;
    if (!kernel) continue;
    const Result<double> difference = DifferenceFromReference(**kernel, permitted, 7);
    if (!difference) ADD_FAILURE() << difference.error().message;
    EXPECT_LE(difference.value_or(1), kTolerance);
    found.push_back(std::move(variant));
  }
  return found;
}

class DnnlBFloat16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "the library has generated code for bfloat16 with AVX-512 only";
  }
};

TEST_F(DnnlBFloat16Test, IsOfferedWhereItIsPermittedOnly) {
  const Expr x = Input({1, 64, 14, 14});
  const Expr function = FunctionOf({x}, Convolution(x));
  for (const Variant& variant : Dnnl().Variants(*function->As<Function>(), Cpu(2))) EXPECT_FALSE(variant.uses_precision) << variant.name;
  const std::vector<Variant> permitted = CheckPermitted(function);
  ASSERT_FALSE(permitted.empty());
  for (const Variant& variant : permitted) {
    EXPECT_THAT(variant.name, testing::StartsWith("bf16"));
    EXPECT_EQ(variant.inputs[0].stored(), DType::kBFloat16);
    EXPECT_FALSE(Dnnl().Compile(*function->As<Function>(), Cpu(2), variant)) << "without a permit";
  }
}

TEST_F(DnnlBFloat16Test, ResultsAreStoredEitherWay) {
  const Expr x = Input({50, 96});
  bool narrow = false;
  bool wide = false;
  for (const Variant& variant : CheckPermitted(FunctionOf({x}, Product(x)))) {
    narrow = narrow || variant.outputs[0].stored();
    wide = wide || !variant.outputs[0].stored();
  }
  EXPECT_TRUE(narrow);
  EXPECT_TRUE(wide);
}

TEST_F(DnnlBFloat16Test, BiasResidualAndActivationAreFused) {
  const Expr x = Input({1, 64, 14, 14});
  const Expr y = MakeVar("y", TensorType{{1, 64, 14, 14}});
  const Expr bias = CallOp("nn.bias_add", {Convolution(x), RandomConstant({64}, 5)}, {{"axis", 1}});
  EXPECT_FALSE(CheckPermitted(FunctionOf({x, y}, CallOp("nn.relu", {CallOp("add", {bias, y})}))).empty());
}

TEST_F(DnnlBFloat16Test, ProductsTakeRowsOfAnyRank) {
  for (const Shape& shape : {Shape{50, 96}, Shape{1, 50, 96}}) {
    const Expr x = Input(shape);
    EXPECT_FALSE(CheckPermitted(FunctionOf({x}, CallOp("add", {Product(x), RandomConstant({80}, 9)}))).empty());
  }
  const Expr a = Input({2, 4, 16, 32});
  const Expr b = MakeVar("b", TensorType{{2, 4, 32, 16}});
  EXPECT_FALSE(CheckPermitted(FunctionOf({a, b}, CallOp("nn.matmul", {a, b}))).empty());
}

TEST_F(DnnlBFloat16Test, WhatLiesBetweenProductsIsOfferedToo) {
  const Expr x = Input({1, 64, 14, 14});
  const Expr y = MakeVar("y", TensorType{{1, 64, 14, 14}});
  const Attributes window = {{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}};
  EXPECT_FALSE(CheckPermitted(FunctionOf({x}, CallOp("nn.max_pool2d", {x}, window))).empty());
  EXPECT_FALSE(CheckPermitted(FunctionOf({x}, CallOp("nn.relu", {x}))).empty());
  EXPECT_FALSE(CheckPermitted(FunctionOf({x, y}, CallOp("add", {x, y}))).empty());
}

}  // namespace
}  // namespace collage
