#include "collage/transform/simplify_expressions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/transform/fold_constants.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

std::string Simplified(const std::string& body, double tolerance = 1e-6) {
  return BodyAfter([](const IRModule& module) { return SimplifyExpressions(module); }, OfImage(body), tolerance);
}

TEST(SimplifyExpressions, NeutralElements) {
  for (const char* body : {"add(%x, 0f)", "add(0f, %x)", "subtract(%x, 0f)", "multiply(%x, 1f)", "multiply(1f, %x)", "divide(%x, 1f)",
                           "power(%x, 1f)", "add(add(%x, 0f), 0f)"}) {
    EXPECT_EQ(Simplified(body), "%x\n");
  }
  EXPECT_EQ(Simplified("subtract(0f, %x)"), "subtract(0f, %x)\n");
  EXPECT_EQ(Simplified("divide(1f, %x)"), "divide(1f, %x)\n");
  // The constant also broadcasts.
  EXPECT_THAT(BodyAfter([](const IRModule& module) { return SimplifyExpressions(module); },
                        "fn (%x: float32) { add(%x, zeros(shape=[2], dtype=\"float32\")) }"),
              HasSubstr("add(%x, %0)"));
}

TEST(SimplifyExpressions, Powers) {
  EXPECT_EQ(Simplified("power(%x, 2f)"), "multiply(%x, %x)\n");
  EXPECT_EQ(Simplified("power(abs(%x), 0.5f)"), "%0 = abs(%x);\nsqrt(%0)\n");
  EXPECT_EQ(Simplified("power(abs(%x), 3f)"), "%0 = abs(%x);\npower(%0, 3f)\n");
}

TEST(SimplifyExpressions, DivisionByPowersOfTwo) {
  EXPECT_EQ(Simplified("divide(%x, 8f)", 0), "multiply(%x, 0.125f)\n");
  EXPECT_EQ(Simplified("divide(%x, 3f)"), "divide(%x, 3f)\n");
  EXPECT_EQ(Simplified("divide(%x, 1e-45f)"), "divide(%x, 1e-45f)\n");
  const auto approximate = [](const IRModule& module) { return SimplifyExpressions(module, {.approximate_reciprocals = true}); };
  EXPECT_EQ(BodyAfter(approximate, OfImage("divide(%x, 3f)"), 1e-6), "multiply(%x, 0.33333334f)\n");
  EXPECT_EQ(BodyAfter(approximate, OfImage("divide(%x, 1e-45f)")), "divide(%x, 1e-45f)\n");
}

TEST(SimplifyExpressions, Views) {
  EXPECT_EQ(Simplified("reshape(reshape(%x, newshape=[4, 36]), newshape=[2, 72])"), "reshape(%x, newshape=[2, 72])\n");
  EXPECT_EQ(Simplified("squeeze(expand_dims(%x, axis=0), axis=[0])"), "%x\n");
  EXPECT_EQ(Simplified("nn.batch_flatten(reshape(squeeze(expand_dims(%x, axis=0), axis=[0, 1]), newshape=[2, 2, 36]))"),
            "reshape(%x, newshape=[2, 72])\n");
  EXPECT_EQ(Simplified("reshape(%x, newshape=[1, 4, 6, 6])"), "%x\n");
  EXPECT_EQ(Simplified("copy(cast(concatenate((%x,), axis=1), dtype=\"float32\"))"), "%x\n");
  EXPECT_EQ(Simplified("cast(%x, dtype=\"float64\")"), "cast(%x, dtype=\"float64\")\n");
}

TEST(SimplifyExpressions, IntegersMadeAgainOfTheirOwnNumbers) {
  const auto again = [](const std::string& from, const std::string& to) {
    return Simplified("%0 = cast(%x, dtype=\"int8\"); qnn.quantize(qnn.dequantize(%0, " + from + "), " + to + ")", 0);
  };
  for (const char* parameters : {"0.3f, 3i8", "1e-37f, -128i8", "1e33f, 127i8"})
    EXPECT_EQ(again(parameters, parameters), "cast(%x, dtype=\"int8\")\n") << parameters;
  const auto stays = [&](const char* from, const char* to) {
    EXPECT_THAT(again(from, to), HasSubstr("qnn.quantize")) << from << " " << to;
  };
  stays("0.3f, 3i8", "0.3f, 4i8");
  stays("0.3f, 3i8", "0.30001f, 3i8");
  stays("0.3f, 3i8", "0.3f, 3u8");
  // Not a normal number, or beyond float32 for the largest of integers.
  stays("1e-40f, 3i8", "1e-40f, 3i8");
  stays("1e37f, 3i8", "1e37f, 3i8");
}

/// Every integer, also with one scale a channel.
TEST(SimplifyExpressions, IntegersMadeAgainAreTheSame) {
  std::string numbers = "cast(subtract(cumsum(ones_like(%x), axis=1), 129f), dtype=\"int8\")";
  const std::string scales = "meta[relay.Constant][0] /*Tensor[(2), float32]*/";
  const auto body = [&](const std::string& first, const std::string& second) {
    return "fn (%x: Tensor[(2, 256), float32]) { let %b = " + numbers + "; %0 = zeros(shape=[2], dtype=\"int8\"); " +
           "qnn.quantize(qnn.dequantize(%b, " + scales + ", %0, axis=" + first + "), " + scales + ", %0, axis=" + second + ") }";
  };
  const auto simplify = [](const IRModule& module) { return SimplifyExpressions(FoldConstants(module).value()); };
  EXPECT_THAT(BodyAfter(simplify, body("0", "-2")), testing::Not(HasSubstr("quantize")));
}

TEST(SimplifyExpressions, Transposes) {
  EXPECT_EQ(Simplified("transpose(transpose(%x, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])"), "%x\n");
  EXPECT_EQ(Simplified("transpose(transpose(%x, axes=[1, 2, 0, 3]), axes=[3, 0, 2, 1])"), "transpose(%x, axes=[3, 1, 0, 2])\n");
  EXPECT_EQ(Simplified("transpose(transpose(%x))"), "%x\n");
  EXPECT_EQ(Simplified("transpose(%x, axes=[0, 1, 2, -1])"), "%x\n");
}

TEST(SimplifyExpressions, PaddingMovesIntoWindows) {
  const std::string weight = ConstantText(0, "(3, 4, 3, 3)");
  EXPECT_EQ(Simplified("nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 3]]), " + weight + ", padding=[1, 0, 0, 1])"),
            "nn.conv2d(%x, " + weight + ", padding=[2, 0, 2, 4])\n");
  EXPECT_EQ(Simplified("nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), " + weight + ", strides=[2, 2])"),
            "nn.conv2d(%x, " + weight + ", strides=[2, 2], padding=[1, 1, 1, 1])\n");
  EXPECT_EQ(Simplified("nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[3, 3])"),
            "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)\n");
  EXPECT_EQ(
      Simplified("nn.max_pool2d(nn.pad(nn.relu(%x), 0f, pad_width=[[0, 0], [0, 0], [0, 1], [1, 0]]), pool_size=[2, 2], strides=[2, 2])"),
      "%0 = nn.relu(%x);\nnn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2], padding=[0, 1, 1, 0])\n");
}

TEST(SimplifyExpressions, PaddingThatNeverWinsMovesIntoMaxima) {
  const std::string pool = ", pad_width=[[0, 0], [0, 0], [0, 1], [0, 1]]), pool_size=[3, 3], strides=[2, 2]";
  const std::string pooled = "pool_size=[3, 3], strides=[2, 2], padding=[";
  EXPECT_EQ(Simplified("nn.max_pool2d(nn.pad(%x, -inff" + pool + ")"), "nn.max_pool2d(%x, " + pooled + "0, 0, 1, 1])\n");
  EXPECT_EQ(Simplified("nn.max_pool2d(nn.pad(%x, -inff" + pool + ", padding=[1, 1, 0, 0])"),
            "nn.max_pool2d(%x, " + pooled + "1, 1, 1, 1])\n");
  EXPECT_EQ(Simplified("nn.max_pool2d(nn.pad(nn.relu(%x), -3f" + pool + ")"),
            "%0 = nn.relu(%x);\nnn.max_pool2d(%0, " + pooled + "0, 0, 1, 1])\n");
  // Data may be less than what is the least of all finite numbers, or less than 0.
  for (const char* value : {"-3.4028235e38f", "-3f", "inff"})
    EXPECT_THAT(Simplified("nn.max_pool2d(nn.pad(%x, " + std::string(value) + pool + ")"), HasSubstr("nn.pad")) << value;
  // A mean of padding is no mean of data; what is wider than the window would be a maximum of nothing.
  EXPECT_THAT(Simplified("nn.avg_pool2d(nn.pad(%x, -inff" + pool + ")"), HasSubstr("nn.pad"));
  EXPECT_THAT(Simplified("nn.max_pool2d(nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [3, 0], [0, 0]]), pool_size=[3, 3])"),
              HasSubstr("nn.pad"));
  // A dilated window steps over data that are narrower than its step.
  EXPECT_THAT(BodyAfter([](const IRModule& module) { return SimplifyExpressions(module); },
                        "fn (%x: Tensor[(1, 4, 1, 6), float32]) { nn.max_pool2d(nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [1, 1], "
                        "[0, 0]]), pool_size=[2, 1], dilation=[2, 1]) }"),
              HasSubstr("nn.pad"));
}

TEST(SimplifyExpressions, PaddingStaysWhereItIsNotTheSame) {
  const std::string weight = ConstantText(0, "(3, 4, 3, 3)");
  for (const std::string& body : {
           "nn.conv2d(nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), " + weight + ")",
           "nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]], pad_mode=\"edge\"), " + weight + ")",
           "nn.conv2d(nn.pad(%x, 0f, pad_width=[[1, 0], [0, 0], [1, 1], [1, 1]]), " + weight + ")",
           std::string("nn.max_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[2, 2])"),
           std::string("nn.max_pool2d(nn.pad(nn.relu(%x), 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]), pool_size=[2, 2])"),
           std::string("nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[3, 3], padding=[1, 1, 1, 1])"),
           std::string("nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[3, 3], strides=[2, 2], "
                       "ceil_mode=True)"),
       }) {
    EXPECT_THAT(Simplified(body), HasSubstr("nn.pad"));
  }
}

}  // namespace
}  // namespace collage
