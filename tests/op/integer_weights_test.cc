#include "collage/op/integer_weights.h"

#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"

namespace collage {
namespace {

Expr Parsed(const std::string& text) {
  ParseOptions options;
  options.missing_constant = RandomConstants(3);
  Result<ParsedExpr> parsed = ParseExpr(text, Operators(), options);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed->expr;
}

std::string Rounded(const std::string& text) {
  const Expr function = Parsed(text);
  const Result<Expr> rounded = WithRoundedWeights(*function->As<Function>());
  return rounded ? Print(*rounded) : rounded.error().message;
}

/// As text, of three channels of four weights.
std::string Dequantised(const std::string& shape, const std::string& axis) {
  return "  %0 = qnn.dequantize(meta[relay.Constant][0] /*Tensor[" + shape +
         ", int8]*/, meta[relay.Constant][1] /*Tensor[(3,), float32]*/, " + "meta[relay.Constant][2] /*Tensor[(3,), int8]*/, axis=" + axis +
         ");\n";
}

TEST(IntegerWeightsTest, WeightsOfProductsAreRoundedByTheChannelsOfTheirResult) {
  EXPECT_EQ(Rounded(R"(fn (%x: Tensor[(1, 4), float32], Precision="int8-weights=0.1") {
  nn.bias_add(nn.dense(%x, meta[relay.Constant][0] /* Tensor[(3, 4), float32] */), meta[relay.Constant][1] /* Tensor[(3), float32] */)
})"),
            "fn (%x: Tensor[(1, 4), float32], Precision=\"int8-weights=0.1\") -> Tensor[(1, 3), float32] {\n" + Dequantised("(3, 4)", "0") +
                "  %1 = nn.dense(%x, %0);\n  nn.bias_add(%1, meta[relay.Constant][3] /*Tensor[(3,), float32]*/)\n}\n");
  EXPECT_EQ(
      Rounded("fn (%x: Tensor[(2, 1, 4), float32]) { nn.matmul(%x, meta[relay.Constant][0] /* Tensor[(4, 3), float32] */) }"),
      "fn (%x: Tensor[(2, 1, 4), float32]) -> Tensor[(2, 1, 3), float32] {\n" + Dequantised("(4, 3)", "1") + "  nn.matmul(%x, %0)\n}\n");
  EXPECT_EQ(
      Rounded(
          "fn (%x: Tensor[(2, 4), float32]) { nn.matmul(%x, meta[relay.Constant][0] /* Tensor[(3, 4), float32] */, transpose_b=True) }"),
      "fn (%x: Tensor[(2, 4), float32]) -> Tensor[(2, 3), float32] {\n" + Dequantised("(3, 4)", "0") +
          "  nn.matmul(%x, %0, transpose_b=True)\n}\n");
}

TEST(IntegerWeightsTest, WhatIsNoSuchWeightStays) {
  for (const char* text : {
           "fn (%x: Tensor[(1, 4), float32], %w: Tensor[(3, 4), float32]) { nn.dense(%x, %w) }",
           "fn (%x: Tensor[(2, 1, 4), float32]) { nn.matmul(%x, meta[relay.Constant][0] /* Tensor[(2, 4, 3), float32] */) }",
           "fn (%x: Tensor[(2, 4), float32]) { nn.matmul(meta[relay.Constant][0] /* Tensor[(3, 2), float32] */, %x) }",
           "fn (%x: Tensor[(1, 4, 2, 2), float32]) { nn.conv2d(%x, meta[relay.Constant][0] /* Tensor[(3, 4, 1, 1), float32] */) }",
           "fn (%x: Tensor[(1, 4), float64]) { nn.dense(%x, meta[relay.Constant][0] /* Tensor[(3, 4), float64] */) }",
       }) {
    const Expr function = Parsed(text);
    EXPECT_EQ(Rounded(text), Print(function));
    EXPECT_FALSE(HasRoundableWeights(*function->As<Function>())) << text;
  }
}

TEST(IntegerWeightsTest, WhatIsRoundedStays) {
  const std::string once =
      Rounded("fn (%x: Tensor[(1, 4), float32]) { nn.dense(%x, meta[relay.Constant][0] /* Tensor[(3, 4), float32] */) }");
  EXPECT_EQ(Rounded(once), once);
  EXPECT_TRUE(HasRoundableWeights(*Parsed(once)->As<Function>()));
}

}  // namespace
}  // namespace collage
