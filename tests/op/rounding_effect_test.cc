// What rounding alone makes of a function's results.

#include "collage/op/rounding_effect.h"

#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/op/table.h"

namespace collage {
namespace {

Expr Parsed(const std::string& text) {
  Result<ParsedExpr> parsed = ParseExpr(text, Operators());
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return parsed->expr;
}

std::vector<Agreement> Effect(const Expr& function, std::vector<Tensor> inputs) {
  const auto run = [&](const std::vector<Tensor>& given, const InterpreterOptions& options) {
    return InterpretFunction(function, given, options);
  };
  ReferenceSample sample{std::move(inputs), {}, {}};
  sample.expected = run(sample.inputs, {}).value();
  RoundingEffect effect(run, sample, 7);
  while (effect.RunAgain().value()) {
  }
  return effect.farthest();
}

Tensor Floats(const Shape& shape, const std::vector<float>& values) { return Tensor::FromVector<float>({shape, DType::kFloat32}, values); }

TEST(RoundingEffectTest, OfAWellConditionedFunctionIsFarBelowTheTolerance) {
  const Expr function = Parsed("fn (%x: Tensor[(4, 64), float32], %w: Tensor[(8, 64), float32]) { nn.relu(nn.dense(%x, %w)) }");
  Tensor x({{4, 64}, DType::kFloat32});
  Tensor w({{8, 64}, DType::kFloat32});
  FillRandom(x, 1);
  FillRandom(w, 2);
  const std::vector<Agreement> effect = Effect(function, {x, w});
  ASSERT_EQ(effect.size(), 1u);
  EXPECT_GT(effect[0].difference, 1e-7);
  EXPECT_LT(effect[0].difference, kTolerance);
  EXPECT_EQ(effect[0].unequal, 0);
}

TEST(RoundingEffectTest, GrowsWhereTheFunctionAmplifiesIt) {
  // What is left of a difference of nearly equal numbers is mostly their rounding.
  const Expr function = Parsed("fn (%x: Tensor[(4,), float32], %y: Tensor[(4,), float32]) { subtract(exp(%x), exp(%y)) }");
  const std::vector<Agreement> effect =
      Effect(function, {Floats({4}, {1, 2, 3, 4}), Floats({4}, {1.000001f, 2.000001f, 3.000001f, 4.000001f})});
  EXPECT_GT(effect[0].difference, 10 * kTolerance);
}

TEST(RoundingEffectTest, ShowsDecisionsBetweenNearlyEqualNumbersOnly) {
  const Expr function = Parsed("fn (%x: Tensor[(2, 2), float32]) { argmax(exp(%x), axis=[1], keepdims=False, exclude=False) }");
  EXPECT_EQ(Effect(function, {Floats({2, 2}, {1, 2, 4, 3})})[0].unequal, 0);
  EXPECT_GT(Effect(function, {Floats({2, 2}, {1, 1, 3, 3})})[0].unequal, 0);
}

TEST(RoundingEffectTest, IsTheSameEachTimeAndKeepsWhatIsExact) {
  // A comparison with the largest of some: moving and choosing is exact, so it holds.
  const Expr peaks =
      Parsed("fn (%x: Tensor[(1, 1, 4, 4), float32]) { equal(%x, nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1])) }");
  Tensor image({{1, 1, 4, 4}, DType::kFloat32});
  FillRandom(image, 3);
  EXPECT_EQ(Effect(peaks, {image})[0].unequal, 0);
  const Expr function = Parsed("fn (%x: Tensor[(1, 1, 4, 4), float32]) { sqrt(exp(%x)) }");
  EXPECT_EQ(Effect(function, {image})[0].difference, Effect(function, {image})[0].difference);
}

TEST(RoundingEffectTest, NumbersStayNumbersUnderARoot) {
  const Expr function = Parsed("fn (%x: Tensor[(4,), float32], %y: Tensor[(4,), float32]) { sqrt(subtract(%x, %y)) }");
  const std::vector<Agreement> effect = Effect(function, {Floats({4}, {1, 1, 1, 1}), Floats({4}, {1, 0.9999999f, 0.5f, 0})});
  EXPECT_EQ(effect[0].unequal, 0);
}

TEST(CompoundsRoundingTest, WhatIsRoundedReachesAnotherOperator) {
  const auto compounds = [](const std::string& body) {
    return CompoundsRounding(ParseExpr("fn (%x: Tensor[(8,), float32]) { " + body + " }", Operators()).value().expr);
  };
  EXPECT_FALSE(compounds("exp(%x)"));
  EXPECT_FALSE(compounds("reshape(exp(%x), newshape=[2, 4])"));
  EXPECT_FALSE(compounds("transpose(transpose(reshape(%x, newshape=[2, 4]), axes=[1, 0]), axes=[1, 0])")) << "nothing is rounded";
  EXPECT_TRUE(compounds("log(exp(%x))"));
  EXPECT_TRUE(compounds("argmax(exp(%x))")) << "it decides by what is rounded";
}

}  // namespace
}  // namespace collage
