#include "collage/transform/cancel_movement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/rounds.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string After(const std::string& body, const std::string& parameters = "%x: Tensor[(1, 4, 5, 6), float32]") {
  return BodyAfter(CancelMovement, "fn (" + parameters + ") { " + body + " }", 1e-6);
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

constexpr const char* kLast = "axes=[0, 2, 3, 1]";
constexpr const char* kFirst = "axes=[0, 3, 1, 2]";

std::string ToLast(const std::string& data) { return "transpose(" + data + ", " + kLast + ")"; }
std::string ToFirst(const std::string& data) { return "transpose(" + data + ", " + kFirst + ")"; }

TEST(CancelMovement, OverPointwiseOperators) {
  EXPECT_EQ(After(ToFirst("nn.relu(" + ToLast("%x") + ")")), "nn.relu(%x)\n");
  EXPECT_EQ(After(ToFirst("multiply(sigmoid(" + ToLast("%x") + "), " + ToLast("%x") + ")")), "%0 = sigmoid(%x);\nmultiply(%0, %x)\n");
  EXPECT_EQ(After(ToFirst("add(" + ToLast("%x") + ", 2f)")), "add(%x, 2f)\n");
}

TEST(CancelMovement, ConstantsMoveAlong) {
  const std::string moved = After(ToFirst("add(" + ToLast("%x") + ", meta[relay.Constant][0] /*Tensor[(4), float32]*/)"));
  EXPECT_THAT(moved, HasSubstr("(4, 1, 1)"));
  EXPECT_THAT(moved, Not(HasSubstr("transpose")));
  EXPECT_THAT(After(ToFirst("add(" + ToLast("%x") + ", meta[relay.Constant][0] /*Tensor[(5, 6, 4), float32]*/)")), HasSubstr("(4, 5, 6)"));
  EXPECT_THAT(After(ToFirst("nn.bias_add(" + ToLast("%x") + ", meta[relay.Constant][0] /*Tensor[(4), float32]*/, axis=-1)")),
              HasSubstr("axis=1"));
}

TEST(CancelMovement, OverConcatenationsAndReductions) {
  EXPECT_EQ(After(ToFirst("concatenate((" + ToLast("%x") + ", " + ToLast("abs(%x)") + "), axis=-1)")),
            "%0 = abs(%x);\n%1 = (%x, %0);\nconcatenate(%1, axis=1)\n");
  EXPECT_EQ(After(ToFirst("mean(" + ToLast("%x") + ", axis=[1, 2], keepdims=True)")), "mean(%x, axis=[2, 3], keepdims=True)\n");
  // What a reduction leaves has the same order either way, so nothing is moved behind it.
  EXPECT_EQ(After("mean(nn.relu(" + ToLast("%x") + "), axis=[1, 2])"), "%0 = nn.relu(%x);\nmean(%0, axis=[2, 3])\n");
  EXPECT_THAT(After("mean(nn.relu(" + ToLast("%x") + "), axis=[3])"), HasSubstr("axis=[1]"));
  EXPECT_EQ(After("mean(" + ToLast("%x") + ", axis=[1, 2])"), "mean(%x, axis=[2, 3])\n");
  EXPECT_EQ(After("max(" + ToLast("%x") + ", axis=[2, 3])"), "max(%x, axis=[1, 3])\n");
  EXPECT_THAT(After("mean(" + ToLast("%x") + ", axis=[0])"), HasSubstr("transpose"));
}

// As Keras' models come: the last transpose stays, all others go.
TEST(CancelMovement, OfResidualBlocksWithChannelsLast) {
  std::string body = "%0 = " + ToLast("%x") + "; ";
  int value = 0;
  for (int block = 0; block < 5; ++block) {
    const std::string before = "%" + std::to_string(value);
    const auto next = [&](const std::string& call) {
      body += "%" + std::to_string(++value) + " = " + call + "; ";
      return "%" + std::to_string(value);
    };
    const std::string first = next(ToFirst("nn.relu(" + before + ")"));
    const std::string convolution = next("nn.conv2d(" + first + ", meta[relay.Constant][" + std::to_string(block) +
                                         "] /*Tensor[(4, 4, 3, 3), float32]*/, padding=[1, 1, 1, 1])");
    next("add(" + before + ", " + ToLast(convolution) + ")");
  }
  const std::string text = After(body + "reshape(%" + std::to_string(value) + ", newshape=[1, 120])");
  EXPECT_EQ(Count(text, "transpose"), 1U) << text;
  EXPECT_EQ(Count(text, "nn.conv2d"), 5U);
}

TEST(CancelMovement, OfConvolutionsInOneDimension) {
  const std::string body = After(
      "%0 = expand_dims(%x, axis=2); %1 = nn.max_pool2d(%0, pool_size=[1, 1]); %2 = squeeze(%1, axis=[2]); "
      "%3 = nn.max_pool2d(%0, pool_size=[1, 1]); %4 = squeeze(%3, axis=[2]); "
      "%5 = add(multiply(tanh(%2), sigmoid(%4)), meta[relay.Constant][0] /*Tensor[(4, 1), float32]*/); expand_dims(%5, axis=2)",
      "%x: Tensor[(1, 4, 9), float32]");
  EXPECT_EQ(Count(body, "squeeze"), 0U) << body;
  EXPECT_EQ(Count(body, "expand_dims"), 1U) << body;
  EXPECT_THAT(body, HasSubstr("(4, 1, 1)"));
}

TEST(CancelMovement, OverQuantisationWithOneScale) {
  EXPECT_EQ(After(ToFirst("qnn.quantize(" + ToLast("%x") + ", 0.5f, 3i8)")), "qnn.quantize(%x, 0.5f, 3i8)\n");
}

TEST(CancelMovement, NothingWhereAsMuchWouldBeMoved) {
  for (const std::string& body : {"nn.relu(" + ToLast("%x") + ")", "add(" + ToLast("%x") + ", reshape(%x, newshape=[1, 5, 6, 4]))",
                                  "%0 = " + ToLast("%x") + "; (%0, nn.relu(%0))", "nn.softmax(nn.relu(" + ToLast("%x") + "), axis=3)"}) {
    const std::string text = After(body);
    EXPECT_EQ(Count(text, "transpose"), 1U) << text;
    EXPECT_THAT(text, Not(HasSubstr(kFirst)));
  }
}

TEST(CancelMovement, DimensionsThatAreInsertedStayOfExtentOne) {
  const std::string text =
      After("squeeze(add(expand_dims(%x, axis=1), meta[relay.Constant][0] /*Tensor[(3, 1, 1, 1), float32]*/), axis=[0])");
  EXPECT_EQ(Count(text, "expand_dims"), 1U) << text;
  EXPECT_EQ(After("squeeze(nn.relu(expand_dims(%x, axis=1)), axis=[1])"), "nn.relu(%x)\n");
}

// Any mixture computes the same; less is moved, or nothing changes.
TEST(CancelMovement, RandomPrograms) {
  size_t before = 0;
  size_t after = 0;
  for (unsigned seed = 0; seed < Rounds(300); ++seed) {
    std::mt19937 engine(seed);
    const auto roll = [&](size_t count) { return static_cast<size_t>(engine() % count); };
    std::vector<Shape> shapes = {{1, 4, 5, 6}};
    std::vector<std::string> names = {"%x"};
    std::string body;
    size_t constants = 0;
    const auto list = [](const auto& values) {
      std::string text;
      for (const auto value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
      return text;
    };
    for (int step = 0; step < 14; ++step) {
      const size_t at = roll(shapes.size());
      Shape shape = shapes[at];
      const std::string& name = names[at];
      const size_t same = static_cast<size_t>(std::find(shapes.rbegin(), shapes.rend(), shape).base() - shapes.begin()) - 1;
      const size_t axis = shape.empty() ? 0 : roll(shape.size());
      std::string call = "nn.relu(" + name + ")";
      switch (roll(9)) {
        case 0:
        case 1:
        case 2: {
          std::vector<size_t> axes(shape.size());
          std::iota(axes.begin(), axes.end(), 0);
          std::shuffle(axes.begin(), axes.end(), engine);
          if (shape.size() == 4 && roll(2) == 0) axes = roll(2) == 0 ? std::vector<size_t>{0, 2, 3, 1} : std::vector<size_t>{0, 3, 1, 2};
          call = "transpose(" + name + ", axes=[" + list(axes) + "])";
          for (size_t i = 0; i < axes.size(); ++i) shape[i] = shapes[at][axes[i]];
          break;
        }
        case 3:
          call = "add(" + name + ", " + names[same] + ")";
          break;
        case 4:
          call = "multiply(" + name + ", meta[relay.Constant][" + std::to_string(constants++) + "] /*Tensor[(" +
                 std::to_string(shape.back()) + "), float32]*/)";
          break;
        case 5:
          call = "concatenate((" + name + ", " + names[same] + "), axis=" + std::to_string(axis) + ")";
          shape[axis] *= 2;
          break;
        case 6: {
          const bool keeps = shape.size() < 3 || roll(2) == 0;
          call = "mean(" + name + ", axis=[" + std::to_string(axis) + "], keepdims=" + (keeps ? "True" : "False") + ")";
          if (keeps)
            shape[axis] = 1;
          else
            shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
          break;
        }
        case 7:
          if (shape.size() > 4) break;
          call = "expand_dims(" + name + ", axis=" + std::to_string(axis) + ")";
          shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
          break;
        default:
          if (shape.size() < 3 || shape[axis] != 1) break;
          call = "squeeze(" + name + ", axis=[" + std::to_string(axis) + "])";
          shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
      }
      names.push_back("%" + std::to_string(step));
      shapes.push_back(shape);
      body += names.back() + " = " + call + "; ";
    }
    SCOPED_TRACE(body);
    const std::string result = roll(2) == 0 ? names.back() : "(" + names.back() + ", " + names[names.size() / 2] + ")";
    const std::string text = After(body + result);
    before += Count(body, "transpose");
    after += Count(text, "transpose");
  }
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace collage
