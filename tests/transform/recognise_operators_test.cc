#include "collage/transform/recognise_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is written out rounds at every step.
constexpr double kTolerance = 1e-5;

std::string Text(const std::string& body) { return "fn (%x: Tensor[(2, 3, 8), float32]) { " + body + " }"; }
std::string Recognised(const std::string& body) { return BodyAfter(RecogniseOperators, Text(body), kTolerance); }

const std::string kMean = "mean(%x, axis=[-1], keepdims=True)";
// %0 is the mean, %1 the deviation, %2 the variance and epsilon.
const std::string kMoments =
    "%0 = " + kMean + "; %1 = subtract(%x, %0); %2 = add(mean(multiply(%1, %1), axis=[2], keepdims=True), 0.25f); ";
const std::string kVector = ConstantText(0, "(8,)");
const std::string kOther = ConstantText(1, "(8,)");

TEST(RecogniseOperators, LayerNormByARoot) {
  for (const std::string quotient :
       {"divide(%1, sqrt(%2))", "multiply(%1, rsqrt(%2))", "multiply(power(%2, -0.5f), %1)", "multiply(%1, divide(1f, sqrt(%2)))"}) {
    const std::string after = Recognised(kMoments + quotient);
    EXPECT_THAT(after, HasSubstr("nn.layer_norm(%x, "));
    EXPECT_THAT(after, HasSubstr("axis=2, epsilon=0.25f, scale=False, center=False)\n"));
    EXPECT_THAT(after, Not(HasSubstr("mean(")));
  }
}

TEST(RecogniseOperators, ScaleAndShiftJoinTheLayerNorm) {
  const std::string normal = kMoments + "%3 = divide(%1, sqrt(%2)); ";
  const std::string whole = Recognised(normal + "add(" + kOther + ", multiply(" + kVector + ", %3))");
  EXPECT_EQ(whole, "nn.layer_norm(%x, " + kVector + ", " + kOther + ", axis=2, epsilon=0.25f)\n");
  EXPECT_THAT(Recognised(normal + "multiply(%3, 2f)"), HasSubstr("epsilon=0.25f, center=False)\n"));
  EXPECT_THAT(Recognised(normal + "add(%3, " + ConstantText(0, "(1, 1, 8)") + ")"), HasSubstr("scale=False)\n"));
  // First the shift and then the scale is no layer normalisation, nor is a scale that varies elsewhere.
  EXPECT_THAT(Recognised(normal + "multiply(add(%3, " + kOther + "), " + kVector + ")"), HasSubstr("multiply("));
  EXPECT_THAT(Recognised(normal + "multiply(%3, " + ConstantText(0, "(3, 1)") + ")"), HasSubstr("multiply("));
  EXPECT_THAT(Recognised(normal + "multiply(%3, " + ConstantText(0, "(4, 1, 1, 1)") + ")"), HasSubstr("multiply("));
}

TEST(RecogniseOperators, LayerNormByOneFactor) {
  const std::string scaled = kMoments + "%3 = multiply(rsqrt(%2), " + kVector + "); ";
  const std::string expected = "nn.layer_norm(%x, " + kVector + ", " + kOther + ", axis=2, epsilon=0.25f)\n";
  EXPECT_EQ(Recognised(scaled + "add(multiply(%x, %3), subtract(" + kOther + ", multiply(%0, %3)))"), expected);
  EXPECT_EQ(Recognised(scaled + "add(multiply(%x, %3), add(multiply(negative(%0), %3), " + kOther + "))"), expected);
  EXPECT_EQ(Recognised(scaled + "add(subtract(multiply(%3, %x), multiply(%3, %0)), " + kOther + ")"), expected);
  EXPECT_THAT(Recognised(scaled + "add(multiply(%x, %3), negative(multiply(%0, %3)))"), HasSubstr("epsilon=0.25f, center=False)\n"));
  const std::string bare = kMoments + "%3 = rsqrt(%2); ";
  EXPECT_THAT(Recognised(bare + "subtract(multiply(%x, %3), multiply(%0, %3))"), HasSubstr("scale=False, center=False)\n"));
  // The mean less the data, and the sum of both.
  EXPECT_THAT(Recognised(bare + "subtract(multiply(%0, %3), multiply(%x, %3))"), Not(HasSubstr("layer_norm")));
  EXPECT_THAT(Recognised(bare + "add(multiply(%x, %3), multiply(%0, %3))"), Not(HasSubstr("layer_norm")));
}

TEST(RecogniseOperators, OtherAxesAndNoLayerNorm) {
  const std::string channels =
      "%0 = subtract(%x, mean(%x, axis=[1], keepdims=True)); divide(%0, sqrt(add(mean(multiply(%0, %0), axis=[1], keepdims=True), "
      "0.25f)))";
  EXPECT_THAT(Recognised(channels), HasSubstr("axis=1, "));
  for (const std::string& body : std::vector<std::string>{
           // Two axes; another one for the variance; another power; a mean of something else; epsilon outside of the root; nothing added.
           "%0 = subtract(%x, mean(%x, axis=[1, 2], keepdims=True)); "
           "divide(%0, sqrt(add(mean(multiply(%0, %0), axis=[1, 2], keepdims=True), 0.25f)))",
           "%0 = subtract(%x, " + kMean + "); divide(%0, sqrt(add(mean(multiply(%0, %0), axis=[1], keepdims=True), 0.25f)))",
           "%0 = subtract(%x, " + kMean + "); divide(%0, sqrt(add(mean(multiply(%0, %x), axis=[2], keepdims=True), 9f)))",
           "%0 = subtract(%x, mean(exp(%x), axis=[-1], keepdims=True)); "
           "divide(%0, sqrt(add(mean(multiply(%0, %0), axis=[2], keepdims=True), 0.25f)))",
           "%0 = subtract(%x, " + kMean + "); divide(%0, add(sqrt(mean(multiply(%0, %0), axis=[2], keepdims=True)), 0.25f))",
           "%0 = subtract(%x, " + kMean + "); divide(%0, sqrt(mean(multiply(%0, %0), axis=[2], keepdims=True)))",
           "%0 = subtract(%x, " + kMean + "); divide(sqrt(add(mean(multiply(%0, %0), axis=[2], keepdims=True), 0.25f)), %0)",
       })
    EXPECT_THAT(Recognised(body), Not(HasSubstr("layer_norm"))) << body;
}

TEST(RecogniseOperators, NothingWhereSomethingInBetweenIsReadElsewhere) {
  EXPECT_THAT(Recognised(kMoments + "(divide(%1, sqrt(%2)), %0)"), Not(HasSubstr("layer_norm")));
  EXPECT_THAT(Recognised(kMoments + "(divide(%1, sqrt(%2)), exp(%1))"), Not(HasSubstr("layer_norm")));
  EXPECT_THAT(Recognised("%0 = exp(%x); (divide(%0, sum(%0, axis=[1], keepdims=True)), %0)"), Not(HasSubstr("softmax")));
  const std::string normal = kMoments + "%3 = divide(%1, sqrt(%2)); ";
  EXPECT_THAT(Recognised(normal + "(multiply(%3, 2f), %3)"), HasSubstr("multiply("));
}

TEST(RecogniseOperators, Softmax) {
  EXPECT_EQ(Recognised("%0 = exp(%x); divide(%0, sum(%0, axis=[1], keepdims=True))"), "nn.softmax(%x, axis=1)\n");
  EXPECT_EQ(Recognised("%0 = exp(subtract(%x, max(%x, axis=[-1], keepdims=True))); divide(%0, sum(%0, axis=[2], keepdims=True))"),
            "nn.softmax(%x, axis=2)\n");
  EXPECT_EQ(Recognised("%0 = exp(%x); multiply(%0, divide(1f, sum(%0, axis=[1], keepdims=True)))"), "nn.softmax(%x, axis=1)\n");
  // The largest of all is a constant like any other.
  EXPECT_THAT(Recognised("%0 = exp(subtract(%x, max(%x))); divide(%0, sum(%0, axis=[2], keepdims=True))"),
              HasSubstr("nn.softmax(%1, axis=2)\n"));
  EXPECT_THAT(Recognised("%0 = exp(%x); divide(%0, sum(%0, axis=[1, 2], keepdims=True))"), Not(HasSubstr("softmax")));
  EXPECT_THAT(Recognised("divide(exp(%x), sum(exp(tanh(%x)), axis=[1], keepdims=True))"), Not(HasSubstr("softmax")));
}

TEST(RecogniseOperators, LogSoftmax) {
  EXPECT_EQ(Recognised("log(nn.softmax(%x, axis=1))"), "nn.log_softmax(%x, axis=1)\n");
  EXPECT_EQ(Recognised("%0 = exp(%x); log(divide(%0, sum(%0, axis=[2], keepdims=True)))"), "nn.log_softmax(%x, axis=2)\n");
  EXPECT_EQ(Recognised("subtract(%x, log(sum(exp(%x), axis=[2], keepdims=True)))"), "nn.log_softmax(%x, axis=2)\n");
  EXPECT_EQ(Recognised("%0 = subtract(%x, max(%x, axis=[2], keepdims=True)); subtract(%0, log(sum(exp(%0), axis=[2], keepdims=True)))"),
            "nn.log_softmax(%x, axis=2)\n");
  EXPECT_THAT(Recognised("%0 = nn.softmax(%x); (log(%0), %0)"), HasSubstr("log(%0)"));
}

TEST(RecogniseOperators, Sigmoid) {
  EXPECT_EQ(Recognised("divide(1f, add(1f, exp(negative(%x))))"), "sigmoid(%x)\n");
  EXPECT_EQ(Recognised("divide(1f, add(exp(multiply(-1f, %x)), 1f))"), "sigmoid(%x)\n");
  EXPECT_THAT(Recognised("divide(2f, add(1f, exp(negative(%x))))"), Not(HasSubstr("sigmoid")));
  EXPECT_THAT(Recognised("divide(1f, add(2f, exp(negative(%x))))"), Not(HasSubstr("sigmoid")));
  EXPECT_THAT(Recognised("divide(1f, add(1f, exp(%x)))"), Not(HasSubstr("sigmoid")));
}

TEST(RecogniseOperators, InsideOfBranches) {
  const std::string text =
      "fn (%x: Tensor[(4, 4), float32], %c: bool) { if (%c) { %0 = exp(%x); divide(%0, sum(%0, axis=[1], keepdims=True)) } else { %x } }";
  EXPECT_THAT(BodyAfter(RecogniseOperators, text, kTolerance), HasSubstr("nn.softmax(%x, axis=1)"));
}

}  // namespace
}  // namespace collage
