#include <gtest/gtest.h>

#include "collage/tensor/agreement.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)
using Values = std::vector<int64_t>;

TEST(NativeProduct, DenseOfManyShapes) {
  for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{1, 10, 84},
                                                                                  {1, 1000, 512},
                                                                                  {64, 256, 64},
                                                                                  {7, 33, 5},
                                                                                  {50, 768, 96},
                                                                                  {13, 1, 20},
                                                                                  {1, 1, 1},
                                                                                  {5, 16, 1},
                                                                                  {8, 47, 300},
                                                                                  {23, 64, 7}}) {
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    const Expr x = Parameter("x", {m, k});
    const Expr dense = CallNamed("nn.dense", {x, RandomConstant({n, k}, 1)});
    ExpectMatchesReference({x}, dense, {.tolerance = kTolerance});
    ExpectMatchesReference({x}, CallNamed("nn.relu", {CallNamed("nn.bias_add", {dense, RandomConstant({n}, 2)}, {{"axis", -1}})}),
                           {.tolerance = kTolerance});
    const Expr w = Parameter("w", {n, k});
    ExpectMatchesReference({x, w}, CallNamed("nn.dense", {x, w}), {.tolerance = kTolerance});
  }
}

TEST(NativeProduct, MatricesInBatches) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{5, 20}, {20, 33}},         {{4, 64, 64}, {4, 64, 64}},    {{1, 50, 96}, {96, 40}},
                                                       {{2, 3, 17, 8}, {3, 8, 19}}, {{3, 1, 7, 6}, {2, 6, 21}},    {{2, 1, 9}, {2, 9, 130}},
                                                       {{12, 1, 64}, {12, 64, 77}}, {{2, 5, 30, 4}, {1, 1, 4, 48}}};
  for (const auto& [a_shape, b_shape] : shapes) {
    for (bool transpose_a : {false, true}) {
      for (bool transpose_b : {false, true}) {
        SCOPED_TRACE(ToString(a_shape) + ToString(b_shape) + (transpose_a ? "T" : "N") + (transpose_b ? "T" : "N"));
        const auto turned = [](Shape shape, bool turn) {
          if (turn) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
          return shape;
        };
        const Expr a = Parameter("a", turned(a_shape, transpose_a));
        const Expr b = Parameter("b", turned(b_shape, transpose_b));
        const Attributes attributes{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
        ExpectMatchesReference({a, b}, CallNamed("nn.matmul", {a, b}, attributes), {.tolerance = kTolerance});
        const Expr constant = RandomConstant(turned(b_shape, transpose_b), 4);
        ExpectMatchesReference({a}, CallNamed("tanh", {CallNamed("nn.matmul", {a, constant}, attributes)}), {.tolerance = kTolerance});
      }
    }
  }
  const Expr a = Parameter("a", {3, 14, 24});
  const Expr b = Parameter("b", {3, 37, 24});
  ExpectMatchesReference({a, b}, CallNamed("nn.batch_matmul", {a, b}), {.tolerance = kTolerance});
}

TEST(NativeProduct, NeighboursOfMatmul) {
  const Expr x = Parameter("x", {1, 50, 64});
  Expr value = CallNamed("nn.bias_add", {CallNamed("nn.dense", {x, RandomConstant({96, 64}, 1)}), RandomConstant({96}, 2)}, {{"axis", -1}});
  value = CallNamed("reshape", {value}, {{"newshape", Values{1, 50, 4, 24}}});
  ExpectMatchesReference({x}, CallNamed("transpose", {value}, {{"axes", Values{0, 2, 1, 3}}}), {.tolerance = kTolerance});
  const Expr y = Parameter("y", {50, 64});
  const Expr scores = CallNamed("nn.matmul", {CallNamed("exp", {y}), y}, {{"transpose_b", true}});
  ExpectMatchesReference({y}, CallNamed("nn.softmax", {CallNamed("multiply", {scores, ScalarConstant(0.01)})}),
                         {.tolerance = 1e-3, .low = -1, .high = 1});
}

struct Case {
  Shape data;
  int64_t channels;
  Values kernel, strides, padding, dilation;
  int64_t groups;
};

const std::vector<Case> kConvolutions = {
    {{1, 3, 16, 16}, 8, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},    {{2, 16, 14, 14}, 24, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
    {{1, 3, 33, 35}, 16, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1},   {{1, 32, 14, 14}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4},
    {{1, 20, 9, 11}, 7, {3, 3}, {2, 2}, {0, 1, 1, 0}, {1, 1}, 1},    {{1, 8, 13, 13}, 12, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 1},
    {{1, 24, 28, 28}, 24, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24}, {{2, 12, 15, 17}, 12, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}, 12},
    {{1, 6, 10, 10}, 12, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 6},   {{1, 64, 1, 1}, 10, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
    {{1, 16, 8, 8}, 32, {1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1},    {{1, 1, 28, 28}, 6, {5, 5}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
    {{1, 16, 32, 32}, 16, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},  {{1, 5, 6, 7}, 1, {6, 7}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
    {{1, 4, 12, 12}, 6, {1, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}, 2},    {{1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1}};

TEST(NativeProduct, Convolutions) {
  for (const Case& c : kConvolutions) {
    SCOPED_TRACE(ToString(c.data) + ToString(c.kernel) + " groups " + std::to_string(c.groups));
    const Expr x = Parameter("x", c.data);
    const Shape weight_shape = {c.channels, c.data[1] / c.groups, c.kernel[0], c.kernel[1]};
    const Attributes attributes{{"strides", c.strides}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}};
    const Expr convolved = CallNamed("nn.conv2d", {x, RandomConstant(weight_shape, 3)}, attributes);
    ExpectMatchesReference({x}, convolved, {.tolerance = kTolerance});
    const Expr biased = CallNamed("nn.bias_add", {convolved, RandomConstant({c.channels}, 4)});
    ExpectMatchesReference({x}, CallNamed("nn.relu", {CallNamed("add", {biased, biased})}), {.tolerance = kTolerance});
    const Expr w = Parameter("w", weight_shape);
    ExpectMatchesReference({x, w}, CallNamed("nn.conv2d", {x, w}, attributes), {.tolerance = kTolerance});
  }
}

TEST(NativeProduct, ConvolutionOfAnExpression) {
  const Expr x = Parameter("x", {1, 8, 12, 12});
  const Expr input = CallNamed("nn.relu", {CallNamed("nn.bias_add", {x, RandomConstant({8}, 1)})});
  for (int64_t kernel : {1, 3}) {
    const Attributes attributes{{"padding", Values(4, kernel / 2)}};
    const Expr convolved = CallNamed("nn.conv2d", {input, RandomConstant({16, 8, kernel, kernel}, 3)}, attributes);
    ExpectMatchesReference({x}, CallNamed("nn.max_pool2d", {convolved}, {{"pool_size", Values{2, 2}}, {"strides", Values{2, 2}}}),
                           {.tolerance = kTolerance});
  }
}

TEST(NativeProduct, TransposedConvolutions) {
  const std::vector<Case> cases = {
      {{1, 8, 5, 6}, 4, {4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, 1}, {{2, 6, 4, 4}, 10, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1},
      {{1, 4, 7, 7}, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {0, 0}, 2}, {{1, 16, 1, 1}, 8, {4, 4}, {1, 1}, {0, 0, 0, 0}, {0, 0}, 1},
      {{1, 3, 6, 5}, 5, {2, 5}, {3, 2}, {0, 2, 1, 1}, {0, 0}, 1}, {{1, 3, 16, 16}, 3, {4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, 1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(ToString(c.data) + ToString(c.kernel));
    const Expr x = Parameter("x", c.data);
    const Expr w = RandomConstant({c.data[1], c.channels / c.groups, c.kernel[0], c.kernel[1]}, 3);
    const Expr convolved =
        CallNamed("nn.conv2d_transpose", {x, w},
                  {{"strides", c.strides}, {"padding", c.padding}, {"output_padding", c.dilation}, {"groups", c.groups}});
    ExpectMatchesReference({x}, convolved, {.tolerance = kTolerance});
    ExpectMatchesReference({x}, CallNamed("tanh", {CallNamed("nn.bias_add", {convolved, RandomConstant({c.channels}, 4)})}),
                           {.tolerance = kTolerance});
  }
}

}  // namespace
}  // namespace collage
