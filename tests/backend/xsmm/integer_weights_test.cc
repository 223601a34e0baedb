// Products whose weights may be kept as integers of 8 bits.

#include "collage/op/integer_weights.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "collage/ir/permitted_precision.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

const Backend& Xsmm() {
  static const Backend& backend = BackendNamed("xsmm");
  return backend;
}

Expr Permitted(const Expr& function) { return WithPrecision(function, *Precision::Parse("int8-weights")); }

/// Those that use the permit.
std::vector<Variant> RoundingVariants(const Expr& function) {
  std::vector<Variant> variants = Xsmm().Variants(*function->As<Function>(), Cpu(2));
  std::erase_if(variants, [](const Variant& variant) { return !variant.uses_precision; });
  return variants;
}

std::vector<std::string> NamesOf(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.push_back(variant.name);
  return names;
}

/// Widened panels pay where more rows pass by them than share what is widened in registers.
std::vector<std::string> NamesFor(int64_t rows) {
  std::vector<std::string> names = {"int8-weights"};
  if (rows > 6) names.push_back("int8-weights-widened");
  return names;
}

/// The kernel is exactly that of the rounded weights, and near enough to that of the weights themselves. As saved programs hold the
/// function, with integers inside, it gives the same bits.
void CheckRounded(const Expr& function, int threads = 2) {
  const Expr permitted = Permitted(function);
  const Expr rounded = *WithRoundedWeights(*permitted->As<Function>());
  const std::vector<Variant> variants = RoundingVariants(permitted);
  const std::vector<Tensor> inputs = RandomInputs(function);
  const int64_t rows = inputs[0].ElementCount() / inputs[0].shape().back();
  EXPECT_EQ(NamesOf(variants), NamesFor(rows));
  const std::vector<Variant> of_rounded = Xsmm().Variants(*rounded->As<Function>(), Cpu(threads));
  EXPECT_EQ(NamesOf(of_rounded), NamesFor(rows)) << "there are no weights of float32 any more";
  for (size_t i = 0; i < variants.size(); ++i) {
    const Tensor found = Compiled(Xsmm(), permitted, variants[i], threads)(inputs);
    EXPECT_EQ(Objection(Compare(found, Reference(rounded, inputs))), "");
    EXPECT_EQ(Objection(Compare(found, Reference(function, inputs)), kToleranceOfInt8Weights), "");
    const Tensor again = Compiled(Xsmm(), rounded, of_rounded.at(i), threads)(inputs);
    EXPECT_EQ(std::memcmp(again.Bytes(), found.Bytes(), found.ByteCount()), 0);
  }
}

Expr Dense(const Expr& x, int64_t units) { return CallOp("nn.dense", {x, RandomConstant({units, x->type().AsTensor()->shape.back()}, 2)}); }

TEST(XsmmIntegerWeightsTest, ProductsOfAnyRowsAndColumns) {
  for (const auto& [rows, depth, columns] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 768, 768}, {1, 64, 17}, {4, 300, 130}, {16, 128, 200}, {7, 33, 1}, {50, 64, 96}, {1, 1, 40}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(depth) + "x" + std::to_string(columns));
    const Expr x = Input({1, rows, depth});
    CheckRounded(FunctionOf({x}, Dense(x, columns)));
    CheckRounded(FunctionOf({x}, CallOp("nn.matmul", {x, RandomConstant({depth, columns}, 3)})), 3);
    CheckRounded(FunctionOf({x}, CallOp("nn.matmul", {x, RandomConstant({columns, depth}, 3)}, {{"transpose_b", true}})), 1);
  }
}

TEST(XsmmIntegerWeightsTest, WhatFollowsIsDoneOnTheTile) {
  const Expr x = Input({9, 64});
  const Expr residual = Input({9, 70});
  const Expr biased = CallOp("nn.bias_add", {Dense(x, 70), RandomConstant({70}, 3)}, {{"axis", -1}});
  for (const Expr& body : {biased, CallOp("nn.relu", {biased}), CallOp("multiply", {biased, CallOp("sigmoid", {biased})})})
    CheckRounded(FunctionOf({x}, body));
  CheckRounded(FunctionOf({x, residual}, CallOp("add", {residual, biased})));
}

TEST(XsmmIntegerWeightsTest, AreOfferedWhereTheyArePermittedOnly) {
  const Expr x = Input({4, 64});
  const Expr product = FunctionOf({x}, Dense(x, 32));
  EXPECT_TRUE(RoundingVariants(product).empty());
  EXPECT_TRUE(RoundingVariants(WithPrecision(product, *Precision::Parse("bf16"))).empty());
  EXPECT_FALSE(Xsmm().Compile(*product->As<Function>(), Cpu(2), RoundingVariants(Permitted(product)).at(0)));
  const Expr y = Input({4, 64});
  const Expr image = Input({1, 64, 3, 3});
  for (const Expr& other : {FunctionOf({x, y}, CallOp("nn.matmul", {x, y}, {{"transpose_b", true}})),
                            FunctionOf({x}, CallOp("nn.matmul", {x, RandomConstant({2, 64, 5}, 3)})),
                            FunctionOf({image}, CallOp("nn.conv2d", {image, RandomConstant({32, 64, 1, 1}, 2)}))}) {
    EXPECT_TRUE(RoundingVariants(Permitted(other)).empty());
    EXPECT_EQ(Xsmm().Variants(*Permitted(other)->As<Function>(), Cpu(2)).size(), Xsmm().Variants(*other->As<Function>(), Cpu(2)).size());
  }
}

TEST(XsmmIntegerWeightsTest, WeightsThatAreNotFiniteAreAnError) {
  const Expr x = Input({1, 2});
  const Expr weights = MakeConstant(Tensor::FromVector<float>({{1, 2}, DType::kFloat32}, {1, std::numeric_limits<float>::infinity()}));
  const Expr permitted = Permitted(FunctionOf({x}, CallOp("nn.dense", {x, weights})));
  const auto kernel = Xsmm().Compile(*permitted->As<Function>(), Cpu(1), RoundingVariants(permitted).at(0));
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("not finite"));
}

}  // namespace
}  // namespace collage
