// Products of integers: which are taken, and that what is taken is one kernel of integers. What they give is the conformance suite's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <dnnl.hpp>

#include "collage/measure/verification.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Ints = std::vector<int64_t>;

const Backend& Dnnl() { return BackendNamed("dnnl"); }

Expr Number(double value, DType dtype = DType::kFloat32) { return MakeConstant(Tensor::Scalar(value, dtype)); }

Expr Weights(const Shape& shape, int largest) {
  Tensor weights(TensorType{shape, DType::kFloat32});
  for (int64_t i = 0; i < weights.ElementCount(); ++i)
    weights.MutableData<float>()[i] = 0.01F * static_cast<float>((i * 37 + i / 5) % (2 * largest + 1) - largest);
  return MakeConstant(weights);
}

struct Case {
  DType dtype = DType::kUInt8;
  double zero_point = 0;
  int largest = 127;  // of the weights
};

/// quantize(relu(bias_add(conv2d(dequantize(x), w))))
Expr Function(const Case& of, const Expr& weights) {
  const Expr x = MakeVar("x", TensorType{{1, 16, 8, 8}, of.dtype});
  const Expr numbers = CallOp("qnn.dequantize", {x, Number(0.02), Number(of.zero_point, of.dtype)});
  const Expr sums = CallOp("nn.conv2d", {numbers, weights}, {{"padding", Ints{1, 1, 1, 1}}});
  const Expr biased = CallOp("nn.bias_add", {sums, RandomConstant({32}, 1)}, {{"axis", 1}});
  return FunctionOf({x}, CallOp("qnn.quantize", {CallOp("nn.relu", {biased}), Number(0.2), Number(5, DType::kUInt8)}));
}

Expr Function(const Case& of) { return Function(of, Weights({32, 16, 3, 3}, of.largest)); }

std::vector<Variant> VariantsOf(const Expr& function) { return Dnnl().Variants(*function->As<collage::Function>(), Cpu(2)); }

bool HasDotProducts() { return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni; }

void ExpectRight(const Expr& function, double tolerance = kTolerance) {
  for (const Variant& variant : VariantsOf(function)) {
    SCOPED_TRACE(variant.name);
    auto kernel = Dnnl().Compile(*function->As<collage::Function>(), Cpu(2), variant).value();
    const Result<double> difference = DifferenceFromReference(*kernel, function, 3);
    EXPECT_TRUE(difference) << difference.error().message;
    EXPECT_LE(difference.value_or(0), tolerance);
  }
}

TEST(DnnlQuantisedTest, AConvolutionBetweenBytesIsOneKernelInLayouts) {
  const Expr function = Function({DType::kUInt8, 9, 64});
  const std::vector<Variant> variants = VariantsOf(function);
  ASSERT_FALSE(variants.empty());
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.push_back(variant.name);
  EXPECT_THAT(names, Contains(StartsWith("direct/")));
  EXPECT_THAT(names, Contains(HasSubstr("acdb")));
  EXPECT_THAT(names, testing::Each(testing::Not(StartsWith("winograd/"))));
  ExpectRight(function);
}

// Where sums of pairs saturate, weights beyond 64 and signed data are left to others: run with DNNL_MAX_CPU_ISA=AVX512_CORE to see it.
TEST(DnnlQuantisedTest, WhatTheProcessorWouldSaturateIsRefused) {
  for (const Case& of : {Case{DType::kUInt8, 0, 127}, Case{DType::kUInt8, 128, 65}, Case{DType::kInt8, 0, 64}}) {
    const Expr function = Function(of);
    EXPECT_EQ(VariantsOf(function).empty(), !HasDotProducts());
    ExpectRight(function);
  }
  const Expr exact = Function({DType::kUInt8, 128, 64});
  EXPECT_FALSE(VariantsOf(exact).empty());
  ExpectRight(exact);
}

TEST(DnnlQuantisedTest, OtherWeightsAreNoIntegers) { EXPECT_THAT(VariantsOf(Function({}, RandomConstant({32, 16, 3, 3}, 4))), IsEmpty()); }

TEST(DnnlQuantisedTest, FunctionsThatDifferInTheirWeightsHaveScalesOfTheirOwn) {
  ExpectRight(Function({DType::kUInt8, 0, 64}));
  ExpectRight(Function({DType::kUInt8, 0, 40}));
}

// 32-bit sums pass through float32 inside of the library.
TEST(DnnlQuantisedTest, SumsThatAreTheResultMustBeExact) {
  const auto product = [](int64_t depth) {
    const Expr x = MakeVar("x", TensorType{{4, depth}, DType::kUInt8});
    Tensor weights(TensorType{{depth, 8}, DType::kInt32});
    for (int64_t i = 0; i < weights.ElementCount(); ++i) weights.MutableData<int32_t>()[i] = static_cast<int32_t>(i % 129 - 64);
    const Expr numbers = CallOp("cast", {x}, {{"dtype", "int32"}});
    return FunctionOf({x}, CallOp("nn.matmul", {numbers, MakeConstant(weights)}));
  };
  EXPECT_FALSE(VariantsOf(product(512)).empty());
  ExpectRight(product(512));
  EXPECT_THAT(VariantsOf(product(4096)), IsEmpty());
}

struct Matrices {
  DType left = DType::kUInt8;
  double left_zero_point = 0;
  DType right = DType::kInt8;
  double right_zero_point = 0;
};

/// quantize(multiply(matmul(dequantize(a), dequantize(b)), s)): scores of attention, of 64 numbers each
Expr Scores(const Matrices& of) {
  const Expr a = MakeVar("a", TensorType{{2, 4, 33, 64}, of.left});
  const Expr b = MakeVar("b", TensorType{{2, 4, 37, 64}, of.right});
  const Expr queries = CallOp("qnn.dequantize", {a, Number(0.02), Number(of.left_zero_point, of.left)});
  const Expr keys = CallOp("qnn.dequantize", {b, Number(0.03), Number(of.right_zero_point, of.right)});
  const Expr product = CallOp("multiply", {CallOp("nn.matmul", {queries, keys}, {{"transpose_b", true}}), Number(0.125)});
  return FunctionOf({a, b}, CallOp("qnn.quantize", {product, Number(0.1), Number(5, DType::kUInt8)}));
}

TEST(DnnlQuantisedTest, AProductOfTwoComputedMatricesIsOneKernel) {
  std::vector<Matrices> all = {{}, {DType::kUInt8, 128, DType::kInt8, -3}, {DType::kInt8, 7, DType::kInt8, 11}};
  for (const double zero_point : {0, 1, 128, 255}) {
    all.push_back({DType::kUInt8, 128, DType::kUInt8, zero_point});
    all.push_back({DType::kInt8, -5, DType::kUInt8, zero_point});
  }
  for (const Matrices& of : all) {
    const Expr function = Scores(of);
    const std::vector<Variant> variants = VariantsOf(function);
    // What is not known might saturate.
    EXPECT_EQ(variants.empty(), !HasDotProducts());
    for (const Variant& variant : variants) EXPECT_THAT(variant.name, testing::Not(HasSubstr("ref")));
    ExpectRight(function);
  }
}

/// matmul(cast(a), cast(b)) of unsigned bytes
Expr SumsOfUnsigned(const Shape& left, const Shape& right) {
  const Expr a = MakeVar("a", TensorType{left, DType::kUInt8});
  const Expr b = MakeVar("b", TensorType{right, DType::kUInt8});
  const auto numbers = [](const Expr& bytes) { return CallOp("cast", {bytes}, {{"dtype", "int32"}}); };
  return FunctionOf({a, b}, CallOp("nn.matmul", {numbers(a), numbers(b)}));
}

TEST(DnnlQuantisedTest, SumsOfTwoComputedMatricesOfUnsignedBytesAreExactInAllShapes) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{1, 64}, {64, 33}},
                                                       {{7, 1}, {1, 5}},
                                                       {{3, 4, 40}, {1, 40, 24}},
                                                       {{2, 3, 17, 20}, {2, 3, 20, 1}},
                                                       {{2, 1, 9, 20}, {1, 3, 20, 7}},
                                                       {{2, 3, 1, 48}, {48, 16}}};
  for (const auto& [left, right] : shapes) {
    SCOPED_TRACE(ToString(left) + " by " + ToString(right));
    const Expr sums = SumsOfUnsigned(left, right);
    EXPECT_EQ(VariantsOf(sums).empty(), !HasDotProducts());
    ExpectRight(sums, /*tolerance=*/0);
  }
  EXPECT_EQ(VariantsOf(SumsOfUnsigned({3, 4, 256}, {3, 256, 8})).empty(), !HasDotProducts());
  EXPECT_THAT(VariantsOf(SumsOfUnsigned({3, 4, 260}, {3, 260, 8})), IsEmpty());  // 260 * 255 * 255 is more than 2^24
}

TEST(DnnlQuantisedTest, SumsOfTwoComputedMatricesThatAreTheResultMustBeExact) {
  const auto product = [](int64_t depth) {
    const auto numbers = [](const Expr& bytes) { return CallOp("cast", {bytes}, {{"dtype", "int32"}}); };
    const Expr a = MakeVar("a", TensorType{{3, 4, depth}, DType::kUInt8});
    const Expr b = MakeVar("b", TensorType{{3, depth, 8}, DType::kInt8});
    return FunctionOf({a, b}, CallOp("nn.matmul", {numbers(a), numbers(b)}));
  };
  EXPECT_EQ(VariantsOf(product(512)).empty(), !HasDotProducts());
  ExpectRight(product(512));
  EXPECT_THAT(VariantsOf(product(516)), IsEmpty());  // 516 * 255 * 128 is more than 2^24
}

}  // namespace
}  // namespace collage
