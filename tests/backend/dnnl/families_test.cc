#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

const Backend& Dnnl() {
  static const Backend& backend = BackendNamed("dnnl");
  return backend;
}

std::vector<std::string> Check(const std::vector<Expr>& parameters, const Expr& body) {
  return CheckAllVariants(Dnnl(), FunctionOf(parameters, body));
}

bool IsDeclined(const std::vector<Expr>& parameters, const Expr& body) {
  return Dnnl().Variants(*FunctionOf(parameters, body)->As<Function>(), Cpu(2)).empty();
}

using Ints = std::vector<int64_t>;

TEST(DnnlPoolingTest, EveryLayoutAgreesWithTheReference) {
  for (const int64_t channels : {3, 17, 32}) {
    for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
      for (const bool ceil_mode : {false, true}) {
        const Expr x = Input({1, channels, 14, 11});
        Check({x}, CallOp(op, {x},
                          {{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 0, 0, 1}}, {"ceil_mode", ceil_mode}}));
      }
    }
    for (const char* op : {"nn.global_avg_pool2d", "nn.global_max_pool2d"}) {
      const Expr x = Input({2, channels, 7, 5});
      Check({x}, CallOp(op, {x}));
    }
  }
}

TEST(DnnlPoolingTest, AGlobalPoolOfWholeBlocksGivesThePlainLayout) {
  const Expr x = Input({1, 64, 7, 7});
  const Expr function = FunctionOf({x}, CallOp("nn.global_avg_pool2d", {x}));
  for (const Variant& variant : Dnnl().Variants(*function->As<Function>(), Cpu(2)))
    EXPECT_TRUE(variant.outputs[0].IsPlain()) << variant.name;
}

TEST(DnnlPointwiseTest, WrittenOutActivationsAreOnePrimitive) {
  const Expr x = Input({2, 40, 5});
  const auto gelu = [&](const Expr& y) {
    const Expr factor = CallOp("add", {CallOp("erf", {CallOp("divide", {y, Scalar(std::sqrt(2.0))})}), Scalar(1)});
    return CallOp("multiply", {CallOp("multiply", {y, factor}), Scalar(0.5)});
  };
  EXPECT_THAT(Check({x}, gelu(x)), Contains(StartsWith("eltwise/")));
  Check({x}, CallOp("multiply", {x, CallOp("sigmoid", {x})}));
  Check({x}, CallOp("multiply", {x, x}));
}

TEST(DnnlPointwiseTest, ACubeOfProductsBeginsWithASquareAndIsNone) {
  const Expr x = Input({2, 40});
  const Expr cube = CallOp("multiply", {CallOp("multiply", {x, x}), x});
  const Expr inner = CallOp("multiply", {CallOp("add", {x, CallOp("multiply", {cube, Scalar(0.044715)})}), Scalar(std::sqrt(2 / M_PI))});
  const Expr half = CallOp("multiply", {x, Scalar(0.5)});
  const Expr gelu = CallOp("multiply", {half, CallOp("add", {CallOp("tanh", {inner}), Scalar(1)})});
  EXPECT_THAT(Check({x}, gelu), Contains(StartsWith("eltwise/")));
}

TEST(DnnlPointwiseTest, AlmostGeluIsNoGelu) {
  const Expr x = Input({2, 40});
  const Expr factor = CallOp("add", {CallOp("erf", {CallOp("multiply", {x, Scalar(0.7)})}), Scalar(1)});
  EXPECT_TRUE(IsDeclined({x}, CallOp("multiply", {CallOp("multiply", {x, factor}), Scalar(0.5)})));
}

TEST(DnnlPointwiseTest, ScalarsAndOperandsInEitherOrder) {
  const Expr x = Input({3, 4, 5, 6});
  const Expr y = Input({3, 4, 5, 6});
  for (const char* op : {"add", "subtract", "multiply", "divide", "maximum", "minimum"}) {
    Check({x, y}, CallOp(op, {x, y}));
    Check({x}, CallOp(op, {x, Scalar(1.5)}));
    Check({x}, CallOp(op, {x, RandomConstant({4, 1, 1}, 7, 1, 2)}));
  }
  Check({x}, CallOp("subtract", {Scalar(1.5), x}));
  Check({x, y}, CallOp("nn.relu", {CallOp("add", {x, y})}));
}

TEST(DnnlPointwiseTest, ScaleShiftAndReluKeepBlockedLayouts) {
  const Expr x = Input({1, 48, 6, 6});
  const Expr scaled = CallOp("multiply", {x, RandomConstant({48, 1, 1}, 1)});
  const Expr body = CallOp("nn.relu", {CallOp("add", {scaled, RandomConstant({48, 1, 1}, 2)})});
  EXPECT_THAT(Check({x}, body), Contains(HasSubstr("aBcd")));
}

TEST(DnnlConcatenationTest, BlockedWhereBlocksBegin) {
  const auto concatenate = [](int64_t first, int64_t second, int64_t axis) {
    const Expr x = Input({1, first, 6, 5});
    const Expr y = Input({1, second, 6, 5});
    return Check({x, y}, CallOp("concatenate", {MakeTuple({x, y})}, {{"axis", axis}}));
  };
  EXPECT_THAT(concatenate(32, 16, 1), Contains(HasSubstr("aBcd")));
  EXPECT_THAT(concatenate(17, 16, 1), testing::Each(testing::Not(HasSubstr("aBcd"))));
  concatenate(17, 17, 2);
  concatenate(17, 17, -1);
}

TEST(DnnlShuffleTest, ChannelsAreShuffledInEveryLayout) {
  for (const std::pair<int64_t, int64_t>& shape : {std::pair<int64_t, int64_t>{24, 3}, {32, 4}, {136, 4}}) {
    const int64_t channels = shape.first;
    const int64_t groups = shape.second;
    const Expr x = Input({1, channels, 6, 5});
    const auto shuffled = [&](Ints axes) {
      const Expr split = CallOp("reshape", {x}, {{"newshape", Ints{1, groups, channels / groups, 6, 5}}});
      return CallOp("reshape", {CallOp("transpose", {split}, {{"axes", std::move(axes)}})}, {{"newshape", Ints{1, channels, 6, 5}}});
    };
    EXPECT_THAT(Check({x}, shuffled({0, 2, 1, 3, 4})), Contains(HasSubstr("aBcd")));
    EXPECT_TRUE(IsDeclined({x}, shuffled({0, 2, 1, 4, 3})));
  }
}

TEST(DnnlNormalizationTest, LrnSoftmaxAndLayerNorm) {
  const Expr x = Input({2, 32, 6, 5});
  Check({x}, CallOp("nn.lrn", {x}, {{"size", 5}, {"alpha", 0.01}, {"beta", 0.75}, {"bias", 1.0}}));
  EXPECT_TRUE(IsDeclined({x}, CallOp("nn.lrn", {x}, {{"size", 4}})));
  for (const int axis : {-1, 1, 0}) {
    Check({x}, CallOp("nn.softmax", {x}, {{"axis", axis}}));
    Check({x}, CallOp("nn.log_softmax", {x}, {{"axis", axis}}));
  }
  const Expr y = Input({2, 7, 33});
  Check({y}, CallOp("nn.layer_norm", {y, RandomConstant({33}, 1), RandomConstant({33}, 2)}, {{"epsilon", 1e-5}}));
}

TEST(DnnlNormalizationTest, LayerNormWithoutScaleOrShiftIgnoresThem) {
  const Expr x = Input({2, 7, 33});
  const auto normalised = [&](const Attributes& attributes) {
    return CallOp("nn.layer_norm", {x, RandomConstant({33}, 1), RandomConstant({33}, 2)}, attributes);
  };
  for (const Attributes& attributes :
       std::vector<Attributes>{{{"scale", false}}, {{"center", false}}, {{"scale", false}, {"center", false}}})
    EXPECT_THAT(Check({x}, normalised(attributes)), Contains(StartsWith("layer_normalization/")));
  EXPECT_TRUE(IsDeclined({x}, CallOp("nn.layer_norm", {x, RandomConstant({7}, 1), RandomConstant({7}, 2)}, {{"axis", 1}})));
}

TEST(DnnlProductTest, DenseIsOfferedAsInnerProductAndAsMatmul) {
  const Expr x = Input({2, 5, 40});
  const Expr residual = Input({2, 5, 24});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({24, 40}, 1, -0.1, 0.1)});
  const Expr biased = CallOp("nn.bias_add", {dense, RandomConstant({24}, 2)}, {{"axis", -1}});
  const std::vector<std::string> names = Check({x}, biased);
  EXPECT_THAT(names, Contains(StartsWith("inner_product/")));
  EXPECT_THAT(names, Contains(StartsWith("matmul/")));
  Check({x, residual}, CallOp("nn.relu", {CallOp("add", {residual, biased})}));
}

TEST(DnnlProductTest, HeadsOfAttentionAreSplitAndMergedByStrides) {
  const auto heads = [](const Expr& x, Ints axes) {
    return CallOp("transpose", {CallOp("reshape", {x}, {{"newshape", Ints{1, 12, 4, 8}}})}, {{"axes", std::move(axes)}});
  };
  const Expr q = Input({1, 12, 32});
  const Expr k = Input({1, 12, 32});
  const Expr scores = CallOp("nn.matmul", {heads(q, {0, 2, 1, 3}), heads(k, {0, 2, 3, 1})});
  Check({q, k}, scores);
  Check({q, k}, CallOp("divide", {scores, Scalar(2)}));
  const Expr weights = Input({1, 4, 12, 12});
  const Expr v = Input({1, 12, 32});
  const Expr values = CallOp("nn.matmul", {weights, heads(v, {0, 2, 1, 3})});
  Check({weights, v}, values);
  const Expr turned = CallOp("transpose", {values}, {{"axes", Ints{0, 2, 1, 3}}});
  Check({weights, v}, CallOp("reshape", {turned}, {{"newshape", Ints{1, 12, 32}}}));
}

TEST(DnnlProductTest, MatmulOfVariablesTransposedAndBroadcast) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Expr a = Input(transpose_a ? Shape{2, 3, 9, 5} : Shape{2, 3, 5, 9});
      const Expr b = Input(transpose_b ? Shape{3, 7, 9} : Shape{3, 9, 7});
      const Expr product = CallOp("nn.matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
      Check({a, b}, product);
      Check({a, b}, CallOp("multiply", {product, Scalar(0.25)}));
    }
  }
  const Expr x = Input({2, 5, 9});
  Check({x}, CallOp("add", {CallOp("nn.matmul", {x, RandomConstant({9, 7}, 1)}), RandomConstant({7}, 2)}));
}

}  // namespace
}  // namespace collage
