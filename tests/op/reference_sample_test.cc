// Inputs must suit the operators behind them: no matter which, a comparison needs numbers.

#include "collage/op/reference_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Expr Parsed(const std::string& text, std::vector<Tensor> constants = {}) {
  Result<ParsedExpr> parsed = ParseExpr(text, Operators(), {.constants = std::move(constants)});
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return parsed->expr;
}

Tensor Floats(const Shape& shape, const std::vector<float>& values) { return Tensor::FromVector<float>({shape, DType::kFloat32}, values); }

/// Names of the operators that saw or gave no number.
std::vector<std::string> Unreached(const ReferenceSample& sample) {
  std::vector<std::string> names;
  for (const Expr& call : sample.unreached) names.push_back(CalledOp(call)->name);
  return names;
}

bool AllFinite(const std::vector<Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    const std::vector<double> values = tensor.ToDouble();
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  });
}

/// A body over %x and %y, of 4 x 8 elements each.
struct Body {
  const char* text;
};
void PrintTo(const Body& body, std::ostream* out) { *out << body.text; }

class FiniteTest : public testing::TestWithParam<Body> {};

TEST_P(FiniteTest, EveryValueIsANumberAndInputsAreTheSameEachTime) {
  const std::string type = "Tensor[(4, 8), float32]";
  const Expr function = Parsed("fn (%x: " + type + ", %y: " + type + ") { " + GetParam().text + " }");
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<std::string> not_finite;
    InterpreterOptions options;
    const ReferenceSample sample = SampleReference(function, seed).value();
    options.on_operator = [&](const Expr& call, std::span<const Tensor> outputs) {
      if (!AllFinite({outputs.begin(), outputs.end()})) not_finite.push_back(CalledOp(call)->name);
    };
    const std::vector<Tensor> again = InterpretFunction(function, sample.inputs, options).value();
    EXPECT_THAT(not_finite, IsEmpty());
    EXPECT_THAT(Unreached(sample), IsEmpty());
    EXPECT_TRUE(BitwiseEqual(again[0], sample.expected[0]));
    const std::vector<Tensor> inputs = SuitableInputs(function, seed).value();
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(BitwiseEqual(inputs[i], sample.inputs[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, FiniteTest,
                         testing::Values(Body{"sqrt(%x)"}, Body{"log(%x)"}, Body{"rsqrt(%x)"}, Body{"log(log(%x))"}, Body{"divide(%x, %y)"},
                                         Body{"power(%x, %y)"}, Body{"power(%x, -1f)"}, Body{"power(%x, 0.5f)"}, Body{"floor_mod(%x, %y)"},
                                         Body{"sqrt(subtract(1f, %x))"}, Body{"sqrt(subtract(%x, %y))"}, Body{"log(subtract(%x, 5f))"},
                                         Body{"log(multiply(%x, -3f))"}, Body{"log(multiply(%x, %y))"}, Body{"sqrt(negative(%x))"},
                                         Body{"add(sqrt(%x), sqrt(negative(%y)))"}, Body{"add(log(%x), sqrt(subtract(1f, %x)))"},
                                         Body{"log(transpose(reshape(%x, newshape=[8, 4])))"},
                                         Body{"log(strided_slice(%x, begin=[0, 2], end=[4, 4]))"}, Body{"log(sum(%x, axis=[1]))"},
                                         Body{"log(exp(multiply(%x, 50f)))"}, Body{"divide(1f, sum(%x, axis=[1], keepdims=True))"},
                                         Body{"sqrt(nn.matmul(%x, %y, transpose_b=True))"}, Body{"log(nn.relu(%x))"}, Body{"log(abs(%x))"},
                                         Body{"multiply(%x, tanh(log(add(exp(%x), 1f))))"}, Body{"exp(multiply(%x, 200f))"},
                                         Body{"divide(%x, sqrt(add(mean(power(subtract(%x, mean(%x)), 2f)), 1e-05f)))"},
                                         Body{"log(add(cast(less(%x, %y), dtype=\"float32\"), 0.5f))"},
                                         Body{"cast(multiply(%x, 1e+06f), dtype=\"float16\")"}, Body{"log(concatenate((%x, %y), axis=0))"},
                                         Body{"where(less(%x, %y), log(%x), sqrt(%y))"}, Body{"log(nn.softmax(multiply(%x, 500f)))"},
                                         Body{"prod(multiply(%x, 1e+20f), axis=[1])"}, Body{"acosh(%x)"}, Body{"atanh(transpose(%x))"}));

// Where nothing is needed both signs come, or rectifiers would not be compared.
TEST(SuitableInputsTest, BothSignsWhereNothingElseIsNeeded) {
  const Expr function = Parsed("fn (%x: Tensor[(64), float32], %v: Tensor[(64), float32]) { divide(nn.relu(%x), sqrt(add(%v, 1e-05f))) }");
  const std::vector<Tensor> inputs = SuitableInputs(function, 1).value();
  const std::vector<double> x = inputs[0].ToDouble();
  EXPECT_LT(*std::min_element(x.begin(), x.end()), -0.5);
  EXPECT_GT(*std::max_element(x.begin(), x.end()), 0.5);
  EXPECT_THAT(inputs[1].ToDouble(), Each(testing::Gt(0.05)));
}

// Intervals do not show for which x the root is one of a number, so that only running tells.
TEST(SuitableInputsTest, WhatIsKnownToSuitIsTakenWithoutRunning) {
  const Expr model = Parsed("fn (%x: Tensor[(64), float32]) { sqrt(add(%x, sum(multiply(%x, abs(%x))))) }");
  const ReferenceSample sample = SampleReference(model, 1).value();
  EXPECT_TRUE(BitwiseEqual(SuitableInputs(model, 1, sample.ranges).value()[0], sample.inputs[0]));
  const InputRanges unsuitable{{5, 6}, {0, 7}};
  const Expr never = Parsed("fn (%x: Tensor[(64), float32]) { sqrt(subtract(-3f, multiply(%x, %x))) }");
  EXPECT_THAT(SuitableInputs(never, 1, unsuitable).value()[0].ToDouble(), Each(testing::AllOf(testing::Ge(5), testing::Le(6))));
}

// Sums of small numbers would not show where code for integers saturates.
TEST(SuitableInputsTest, WhatIsQuantisedReachesAllOfTheRange) {
  const Expr parameter = MakeVar("x", TensorType{{4, 64}});
  const Expr flat = *MakeCall(Operators().Find("reshape"), {parameter}, {{"newshape", std::vector<int64_t>{256}}});
  const Expr scale = MakeConstant(Tensor::Scalar(0.02, DType::kFloat32));
  const Expr zero = MakeConstant(ScalarOf(117, DType::kUInt8));
  const Expr function = *MakeFunction({parameter}, *MakeCall(Operators().Find("qnn.quantize"), {flat, scale, zero}, {}));
  const std::vector<double> x = SuitableInputs(function, 1).value()[0].ToDouble();
  EXPECT_NEAR(*std::min_element(x.begin(), x.end()), -2.34, 0.1);
  EXPECT_NEAR(*std::max_element(x.begin(), x.end()), 2.76, 0.1);
}

TEST(SuitableInputsTest, IndicesAreInRangeAndReachAllOfIt) {
  const Expr function = Parsed(
      "fn (%t: Tensor[(300, 2), float32], %i: Tensor[(4000), int64], %p: Tensor[(2, 500), int32]) {"
      "  %0 = take(%t, add(%i, -7i64), axis=0); (%0, gather_nd(%t, %p)) }");
  const std::vector<Tensor> inputs = SuitableInputs(function, 1).value();
  const std::vector<int64_t> indices = inputs[1].ToInt64();
  EXPECT_EQ(*std::min_element(indices.begin(), indices.end()), 7);
  EXPECT_EQ(*std::max_element(indices.begin(), indices.end()), 306);
  EXPECT_THAT(inputs[2].ToInt64(), Each(testing::AllOf(testing::Ge(0), testing::Le(1))));
}

TEST(SuitableInputsTest, IndicesThatATypeCannotHoldAreTheNearestThatItCan) {
  const Expr function = Parsed(
      "fn (%t: Tensor[(4, 2), float32], %i: Tensor[(40), uint8], %p: Tensor[(1, 9), uint4]) {"
      "  (take(%t, add(cast(%i, dtype=\"int64\"), 5i64), axis=0), take(%t, add(cast(%p, dtype=\"int64\"), 5i64), axis=0)) }");
  const std::vector<Tensor> inputs = SuitableInputs(function, 1).value();
  EXPECT_THAT(inputs[1].ToDouble(), Each(0));
  EXPECT_THAT(inputs[2].ToDouble(), Each(0));
}

TEST(SuitableInputsTest, LengthsOfSequencesAreSomeOfTheirSteps) {
  const Expr function = Parsed(
      "fn (%x: Tensor[(3, 400, 2), float32], %w: Tensor[(1, 4, 2), float32], %r: Tensor[(1, 4, 1), float32],"
      "    %b: Tensor[(1, 8), float32], %l: Tensor[(400), int32], %h: Tensor[(1, 400, 1), float32], %p: Tensor[(1, 3), float32]) {"
      "  (nn.lstm(%x, %w, %r, %b, %l, %h, %h, %p), reverse_sequence(%x, %l, seq_axis=0, batch_axis=1)) }");
  const std::vector<int64_t> lengths = SuitableInputs(function, 1).value()[4].ToInt64();
  EXPECT_EQ(std::set<int64_t>(lengths.begin(), lengths.end()), (std::set<int64_t>{1, 2, 3}));
}

TEST(SuitableInputsTest, VariancesArePositive) {
  const Expr function = Parsed(
      "fn (%x: Tensor[(2, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32], %m: Tensor[(3), float32],"
      "    %v: Tensor[(3), float32]) { nn.batch_norm(%x, %g, %b, %m, %v).0 }");
  EXPECT_THAT(SuitableInputs(function, 1).value()[4].ToDouble(), Each(testing::Gt(0)));
}

TEST(SuitableInputsTest, TypesOf16BitsAreFilled) {
  for (const char* type : {"float16", "bfloat16"}) {
    const Expr function = Parsed("fn (%x: Tensor[(64), " + std::string(type) + "]) { log(cast(%x, dtype=\"float32\")) }");
    const ReferenceSample sample = SampleReference(function, 1).value();
    EXPECT_THAT(sample.inputs[0].ToDouble(), Each(testing::Gt(0.2))) << type;
    EXPECT_THAT(Unreached(sample), IsEmpty()) << type;
  }
}

// A comparison with what never comes would say nothing.
TEST(SuitableInputsTest, StringsAreWordsAndWhatTheyAreComparedWith) {
  const Expr function = Parsed("fn (%x: Tensor[(400), string]) { equal(%x, meta[relay.Constant][0]) }", {StringTensor({1}, {"rare word"})});
  const ReferenceSample sample = SampleReference(function, 1).value();
  const std::vector<std::string> words = StringsOf(sample.inputs[0]);
  EXPECT_THAT(std::set<std::string>(words.begin(), words.end()), ElementsAre("", "-0.5", "7", "Bee", "a", "rare word"));
  EXPECT_THAT(sample.expected[0].ToInt64(), Contains(1));
  EXPECT_THAT(sample.expected[0].ToInt64(), Contains(0));
  EXPECT_EQ(StringsOf(SuitableInputs(function, 1).value()[0]), words) << "the same each time";
}

// The masked places are infinite by intention; what sees them and numbers is reached.
TEST(SampleReferenceTest, ACausalMaskIsNoReasonToLookForOtherInputs) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Expr function =
      Parsed("fn (%x: Tensor[(2, 2), float32]) { nn.softmax(add(%x, meta[relay.Constant][0] /*Tensor[(2, 2), float32]*/)) }",
             {Floats({2, 2}, {0, -infinity, 0, 0})});
  const ReferenceSample sample = SampleReference(function, 1).value();
  EXPECT_THAT(Unreached(sample), IsEmpty());
  EXPECT_TRUE(AllFinite(sample.expected));
  EXPECT_TRUE(BitwiseEqual(sample.inputs[0], SuitableInputs(Parsed("fn (%x: Tensor[(2, 2), float32]) { nn.relu(%x) }"), 1)->at(0)));
}

// Exporters write masks of integers so. Numbers up to seven overflow; where two masks are added, so do zeros.
TEST(SampleReferenceTest, MasksOfIntegersLeaveNumbers) {
  for (const char* mask : {"%0", "add(%0, %0)"}) {
    const Expr function = Parsed(std::string("fn (%x: Tensor[(4, 4), float32], %m: Tensor[(1, 4), int64]) {") +
                                 "  %0 = multiply(subtract(1f, cast(%m, dtype=\"float32\")), -3.4e38f);"
                                 "  nn.softmax(add(%x, " +
                                 mask + ")) }");
    const ReferenceSample sample = SampleReference(function, 1).value();
    EXPECT_TRUE(AllFinite(sample.expected)) << mask;
    EXPECT_THAT(Unreached(sample), IsEmpty()) << mask;
  }
}

// Weights so large that values of about one overflow behind them.
TEST(SampleReferenceTest, SmallInputsForLargeWeights) {
  const Expr function = Parsed(
      "fn (%x: Tensor[(1, 4), float32]) { %0 = nn.dense(%x, meta[relay.Constant][0] /*Tensor[(4, 4), float32]*/);"
      "  nn.dense(nn.relu(%0), meta[relay.Constant][0] /*Tensor[(4, 4), float32]*/) }",
      {Floats({4, 4}, std::vector<float>(16, 1e20f))});
  const ReferenceSample sample = SampleReference(function, 1).value();
  EXPECT_TRUE(AllFinite(sample.expected));
  EXPECT_THAT(Unreached(sample), IsEmpty());
}

TEST(SampleReferenceTest, WhatNoInputReachesIsNamed) {
  const Expr function =
      Parsed("fn (%x: Tensor[(8), float32]) { %0 = log(subtract(-1f, abs(%x))); %1 = where(greater(%x, 5f), %0, %x); (exp(%0), %1) }");
  const ReferenceSample sample = SampleReference(function, 1).value();
  EXPECT_THAT(Unreached(sample), ElementsAre("log", "exp"));
  EXPECT_FALSE(Passes(Compare(sample.expected, sample.expected))) << "the first output was never compared";
}

TEST(SampleReferenceTest, FunctionsWithControlFlowAreRun) {
  const Expr function = Parsed("fn (%x: Tensor[(8), float32], %c: bool) { if (%c) { log(%x) } else { sqrt(%x) } }");
  const ReferenceSample sample = SampleReference(function, 1).value();
  EXPECT_THAT(Unreached(sample), IsEmpty());
  EXPECT_TRUE(AllFinite(sample.expected));
}

TEST(SampleReferenceTest, OnlyRoundingTo16BitsLoosensTheTolerance) {
  const auto tolerance = [](const std::string& body) {
    return SampleReference(Parsed("fn (%x: Tensor[(8), float32], %h: Tensor[(8), float16]) { " + body + " }"), 1)->tolerance;
  };
  EXPECT_EQ(tolerance("exp(%x)"), kTolerance);
  EXPECT_EQ(tolerance("reshape(%h, newshape=[2, 4])"), kTolerance);
  EXPECT_EQ(tolerance("transpose(reshape(%h, newshape=[2, 4]))"), kTolerance);
  EXPECT_EQ(tolerance("cast(%h, dtype=\"float32\")"), kTolerance);
  EXPECT_EQ(tolerance("exp(%h)"), Tolerance(DType::kFloat16));
  EXPECT_EQ(tolerance("cast(cast(%x, dtype=\"float16\"), dtype=\"float32\")"), Tolerance(DType::kFloat16));
  EXPECT_EQ(tolerance("cast(%x, dtype=\"bfloat16\")"), Tolerance(DType::kBFloat16));
}

}  // namespace
}  // namespace collage
