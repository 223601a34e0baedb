#include "collage/transform/fold_batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kTolerance = 2e-6;

std::string Folded(const std::string& body) { return BodyAfter(FoldBatchNorm, OfImage(body), kTolerance); }

// nn.batch_norm of `data` with `channels` channels; constants from `first` on.
std::string Normalised(const std::string& data, int channels, size_t first, const std::string& attributes = "") {
  std::string text = "nn.batch_norm(" + data;
  for (size_t i = 0; i < 4; ++i) text += ", " + ConstantText(first + i, "(" + std::to_string(channels) + ",)");
  return text + attributes + ")";
}

const std::string kConvolution = "nn.conv2d(%x, " + ConstantText(0, "(3, 4, 3, 3)") + ", padding=[1, 1, 1, 1])";
const std::string kFoldedConvolution = "%0 = nn.conv2d(%x, " + ConstantText(0, "(3, 4, 3, 3)") + ", padding=[1, 1, 1, 1]);\n" +
                                       "nn.bias_add(%0, " + ConstantText(1, "(3,)") + ", axis=1)\n";

TEST(FoldBatchNorm, IntoAConvolution) {
  EXPECT_EQ(Folded(Normalised(kConvolution, 3, 1) + ".0"), kFoldedConvolution);
  EXPECT_EQ(Folded(Normalised(kConvolution, 3, 1, ", epsilon=0.01f, center=False") + ".0"), kFoldedConvolution);
  EXPECT_EQ(Folded(Normalised(kConvolution, 3, 1, ", scale=False") + ".0"), kFoldedConvolution);
}

TEST(FoldBatchNorm, ThroughABias) {
  EXPECT_EQ(Folded(Normalised("nn.bias_add(" + kConvolution + ", " + ConstantText(9, "(3,)") + ")", 3, 1) + ".0"), kFoldedConvolution);
  EXPECT_EQ(Folded(Normalised("add(" + kConvolution + ", " + ConstantText(9, "(3, 1, 1)") + ")", 3, 1) + ".0"), kFoldedConvolution);
}

TEST(FoldBatchNorm, IntoGroupedAndTransposedConvolutionsAndDense) {
  EXPECT_THAT(Folded(Normalised("nn.conv2d(%x, " + ConstantText(0, "(6, 2, 3, 3)") + ", groups=2)", 6, 1) + ".0"),
              Not(HasSubstr("multiply")));
  for (const auto& [weight, groups] : {std::pair("(4, 6, 2, 2)", ""), std::pair("(4, 3, 2, 2)", ", groups=2")}) {
    const std::string folded =
        Folded(Normalised("nn.conv2d_transpose(%x, " + ConstantText(0, weight) + ", strides=[2, 2]" + groups + ")", 6, 1) + ".0");
    EXPECT_THAT(folded, HasSubstr("nn.conv2d_transpose"));
    EXPECT_THAT(folded, Not(HasSubstr("multiply")));
  }
  const std::string dense = "nn.dense(nn.batch_flatten(%x), " + ConstantText(0, "(5, 144)") + ")";
  EXPECT_THAT(Folded(Normalised(dense, 5, 1) + ".0"), Not(HasSubstr("multiply")));
  EXPECT_THAT(Folded("multiply(nn.bias_add(" + dense + ", " + ConstantText(1, "(5,)") + ", axis=-1), 3f)"), Not(HasSubstr("multiply")));
}

TEST(FoldBatchNorm, ScaleLayers) {
  const std::string scale = ConstantText(1, "(3, 1, 1)");
  const std::string shift = ConstantText(2, "(1, 3, 1, 1)");
  EXPECT_EQ(Folded("add(multiply(" + kConvolution + ", " + scale + "), " + shift + ")"), kFoldedConvolution);
  EXPECT_EQ(Folded("subtract(divide(" + kConvolution + ", " + scale + "), " + shift + ")"), kFoldedConvolution);
  EXPECT_EQ(Folded("add(multiply(" + Normalised(kConvolution, 3, 4) + ".0, " + scale + "), " + shift + ")"), kFoldedConvolution);
  EXPECT_EQ(Folded("multiply(2f, " + kConvolution + ")"), kConvolution + "\n");
}

TEST(FoldBatchNorm, OneNumberForAllChannelsStaysOneHoweverManyThereAre) {
  // A number a channel would take 16 GiB, for each of the four.
  const auto folded = [](const std::string& body) {
    const std::string text = "fn (%x: Tensor[(2, 1), float32], %w: Tensor[(2147483648, 1), float32]) { " + body + " }";
    const Result<IRModule> after = FoldBatchNorm(ParsedForPass(text).module);
    EXPECT_TRUE(after) << after.error().message;
    return Print(after->Main().body);
  };
  const std::string dense = "%0 = nn.dense(%x, %w);\n";
  EXPECT_EQ(folded("multiply(add(nn.dense(%x, %w), 1f), 3f)"), dense + "%1 = add(%0, 1f);\nmultiply(%1, 3f)\n");
  EXPECT_EQ(folded("add(add(nn.dense(%x, %w), 1f), 3f)"), dense + "add(%0, 4f)\n");
}

TEST(FoldBatchNorm, ALoneAdditionStays) {
  EXPECT_THAT(Folded("add(" + kConvolution + ", " + ConstantText(1, "(3, 1, 1)") + ")"),
              HasSubstr("add(%0, meta[relay.Constant][1] /*Tensor[(3, 1, 1), "));
  EXPECT_THAT(Folded("nn.bias_add(" + kConvolution + ", " + ConstantText(1, "(3,)") + ")"), HasSubstr("nn.bias_add(%0"));
}

TEST(FoldBatchNorm, WithoutAConvolutionItBecomesMultiplyAndAdd) {
  const std::string expected = "%0 = multiply(%x, " + ConstantText(0, "(4, 1, 1)") + ");\nadd(%0, " + ConstantText(1, "(4, 1, 1)") + ")\n";
  EXPECT_EQ(Folded(Normalised("%x", 4, 0) + ".0"), expected);
  // DenseNet: normalise, nn.relu, convolve.
  EXPECT_THAT(Folded("nn.conv2d(nn.relu(" + Normalised("%x", 4, 1) + ".0), " + ConstantText(0, "(3, 4, 3, 3)") + ")"),
              HasSubstr("%1 = add(%0, meta[relay.Constant][1] /*Tensor[(4, 1, 1), float32]*/);\n%2 = nn.relu(%1);\nnn.conv2d(%2, "));
  EXPECT_EQ(Folded(Normalised("%x", 6, 0, ", axis=2") + ".0"),
            "%0 = multiply(%x, " + ConstantText(0, "(6, 1)") + ");\nadd(%0, " + ConstantText(1, "(6, 1)") + ")\n");
}

TEST(FoldBatchNorm, InFrontOfWeights) {
  const std::string folded =
      "%0 = nn.conv2d(%x, " + ConstantText(0, "(6, 2, 3, 3)") + ", groups=2);\nnn.bias_add(%0, " + ConstantText(1, "(6,)") + ", axis=1)\n";
  const std::string grouped = "nn.conv2d(" + Normalised("%x", 4, 1) + ".0, " + ConstantText(0, "(6, 2, 3, 3)") + ", groups=2)";
  EXPECT_EQ(Folded(grouped), folded);
  EXPECT_EQ(Folded("nn.bias_add(" + grouped + ", " + ConstantText(9, "(6,)") + ")"), folded) << "one bias";
  EXPECT_EQ(Folded(Normalised(grouped, 6, 10) + ".0"), folded) << "from both sides";
  const std::string rows = "nn.batch_flatten(%x)";
  for (const std::string& product :
       {"nn.dense(" + Normalised(rows, 144, 1) + ".0, " + ConstantText(0, "(5, 144)") + ")",
        "nn.matmul(" + Normalised(rows, 144, 1) + ".0, " + ConstantText(0, "(144, 5)") + ")",
        "nn.matmul(" + Normalised(rows, 144, 1) + ".0, " + ConstantText(0, "(5, 144)") + ", transpose_b=True)"}) {
    EXPECT_THAT(Folded(product), HasSubstr("nn.bias_add")) << product;
    EXPECT_THAT(Folded(product), Not(HasSubstr("multiply"))) << product;
  }
}

TEST(FoldBatchNorm, InFrontOfAFlattening) {
  const std::string weight = ConstantText(0, "(5, 144)");
  for (const std::string& rows :
       {"nn.batch_flatten(" + Normalised("%x", 4, 1) + ".0)", "reshape(" + Normalised("%x", 4, 1) + ".0, newshape=[1, -1])"}) {
    const std::string folded = Folded("nn.dense(" + rows + ", " + weight + ")");
    EXPECT_THAT(folded, HasSubstr("nn.bias_add"));
    EXPECT_THAT(folded, Not(HasSubstr("multiply")));
    EXPECT_THAT(Folded("%0 = " + rows + "; (nn.dense(%0, " + weight + "), %0)"), HasSubstr("multiply"));
  }
  // Rows that are no batch.
  EXPECT_THAT(Folded("nn.dense(reshape(" + Normalised("%x", 4, 1) + ".0, newshape=[4, 36]), " + ConstantText(0, "(5, 36)") + ")"),
              HasSubstr("multiply"));
}

TEST(FoldBatchNorm, StaysInFrontOfPaddingAndOfSeveralReaders) {
  // Padding is of zeros behind the normalisation. Without a shift it would be of zeros in front of it, too.
  EXPECT_THAT(Folded("nn.conv2d(" + Normalised("%x", 4, 1) + ".0, " + ConstantText(0, "(3, 4, 3, 3)") + ", padding=[0, 1, 0, 0])"),
              HasSubstr("multiply"));
  const std::string normalised = "%0 = " + Normalised("%x", 4, 1) + "; %1 = nn.conv2d(%0.0, " + ConstantText(0, "(3, 4, 3, 3)") + "); ";
  EXPECT_THAT(Folded(normalised + "(%1, %0.0)"), HasSubstr("multiply"));
  EXPECT_THAT(Folded(normalised + "(%1, nn.relu(%0.0))"), HasSubstr("multiply"));
  EXPECT_THAT(Folded("%0 = " + Normalised("%x", 4, 1) + ".0; (%0, nn.conv2d(%0, " + ConstantText(0, "(3, 4, 3, 3)") + "))"),
              HasSubstr("multiply"));
  // What it normalises has been folded as well.
  EXPECT_THAT(Folded("%0 = nn.relu(" + Normalised(kConvolution, 3, 5) + ".0); %1 = " + Normalised("%0", 3, 1) + ".0; (%1, nn.conv2d(%1, " +
                     ConstantText(9, "(2, 3, 3, 3)") + "))"),
              HasSubstr("multiply"));
  // Channels that the weight is not summed over.
  EXPECT_THAT(Folded("nn.conv2d(" + Normalised("%x", 6, 1, ", axis=2") + ".0, " + ConstantText(0, "(3, 4, 3, 3)") + ")"),
              HasSubstr("multiply"));
}

TEST(FoldBatchNorm, AConvolutionWithOtherUsesStays) {
  const std::string text = Folded("%0 = " + kConvolution + "; (%0, " + Normalised("%0", 3, 1) + ".0)");
  EXPECT_THAT(text, HasSubstr("multiply(%0"));
  EXPECT_THAT(text, HasSubstr("(%0, %2)"));
  // The bias has other uses.
  EXPECT_THAT(Folded("%0 = nn.bias_add(" + kConvolution + ", " + ConstantText(9, "(3,)") + "); (%0, " + Normalised("%0", 3, 1) + ".0)"),
              HasSubstr("multiply(%1"));
  // The tuple of the normalisation is used as a whole.
  EXPECT_THAT(Folded("%1 = " + Normalised(kConvolution, 3, 1) + "; (%1, %1.0)"), HasSubstr("multiply(%0"));
}

TEST(FoldBatchNorm, StatisticsPassThroughAndProjectionsShare) {
  EXPECT_EQ(Folded("%1 = " + Normalised(kConvolution, 3, 1) + "; (%1.0, %1.1, %1.2, %1.0)"),
            "%0 = nn.conv2d(%x, " + ConstantText(0, "(3, 4, 3, 3)") + ", padding=[1, 1, 1, 1]);\n%1 = nn.bias_add(%0, " +
                ConstantText(1, "(3,)") + ", axis=1);\n(%1, " + ConstantText(2, "(3,)") + ", " + ConstantText(3, "(3,)") + ", %1)\n");
}

TEST(FoldBatchNorm, StaysWhereItIsNotConstant) {
  const std::string text = "fn (%x: Tensor[(1, 4, 6, 6), float32], %g: Tensor[(4,), float32]) { nn.batch_norm(%x, %g, " +
                           ConstantText(0, "(4,)") + ", " + ConstantText(1, "(4,)") + ", " + ConstantText(2, "(4,)") + ").0 }";
  EXPECT_THAT(BodyAfter(FoldBatchNorm, text), HasSubstr("nn.batch_norm"));
  // The weight is an input: nothing to scale beforehand.
  const std::string weight =
      "fn (%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(3, 4, 3, 3), float32]) { " + Normalised("nn.conv2d(%x, %w)", 3, 0) + ".0 }";
  EXPECT_THAT(BodyAfter(FoldBatchNorm, weight, kTolerance), HasSubstr("multiply(%0"));
}

}  // namespace
}  // namespace collage
