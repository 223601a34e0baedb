#include <gmock/gmock.h>

#include "collage/backend/tuning.h"
#include "collage/dataflow/dataflow_graph.h"
#include "collage/pattern/fusion.h"
#include "tests/backend/kernel_harness.h"
#include "tests/backend/xsmm/dice.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using xsmm::Dice;
using Ints = std::vector<int64_t>;

const Backend& Xsmm() {
  static const Backend& backend = BackendNamed("xsmm");
  return backend;
}

const Shape& ShapeOf(const Expr& x) { return x->type().AsTensor()->shape; }

Expr Pointwise(const Expr& x, int64_t channels, Attributes attributes = {}) {
  return CallOp("nn.conv2d", {x, RandomConstant({channels, ShapeOf(x)[1], 1, 1}, 2)}, std::move(attributes));
}

struct Windows {
  Ints kernel = {3, 3};
  Ints strides = {1, 1};
  Ints padding = {1, 1, 1, 1};
  Ints dilation = {1, 1};
};

Expr Depthwise(const Expr& x, const Windows& window = {}) {
  const int64_t channels = ShapeOf(x)[1];
  return CallOp("nn.conv2d", {x, RandomConstant({channels, 1, window.kernel[0], window.kernel[1]}, 3)},
                {{"groups", channels}, {"strides", window.strides}, {"padding", window.padding}, {"dilation", window.dilation}});
}

Expr Biased(const Expr& x) { return CallOp("nn.bias_add", {x, RandomConstant({ShapeOf(x)[1]}, 4)}); }
Expr Relu6(const Expr& x) { return CallOp("clip", {x}, {{"a_min", 0.0}, {"a_max", 6.0}}); }
Expr Silu(const Expr& x) { return CallOp("multiply", {x, CallOp("sigmoid", {x})}); }
Expr HardSwish(const Expr& x) { return CallOp("multiply", {x, CallOp("divide", {Relu6(CallOp("add", {x, Scalar(3)})), Scalar(6)})}); }
Expr Add(const Expr& a, const Expr& b) { return CallOp("add", {a, b}); }

/// As MobileNet v2 has them.
Expr InvertedResidual(const Expr& x, int64_t inner, int64_t channels, const Windows& window = {}) {
  return Biased(Pointwise(Relu6(Biased(Depthwise(Relu6(Biased(Pointwise(x, inner))), window))), channels));
}

TEST(FusedConvolutionsTest, InvertedResiduals) {
  const Expr x = Input({1, 24, 14, 14});
  EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf({x}, InvertedResidual(x, 144, 32))), ElementsAre("fused/acdb"));
  CheckAllVariants(Xsmm(), FunctionOf({x}, InvertedResidual(x, 144, 32, {{3, 3}, {2, 2}})));
  CheckAllVariants(Xsmm(), FunctionOf({x}, InvertedResidual(x, 72, 24, {{5, 5}, {1, 1}, {2, 2, 2, 2}})));
  CheckAllVariants(Xsmm(), FunctionOf({x}, Add(x, InvertedResidual(x, 144, 24))));
  const Expr wide = HardSwish(Biased(Pointwise(x, 40)));
  CheckAllVariants(Xsmm(), FunctionOf({x}, Add(Biased(Pointwise(HardSwish(Biased(Depthwise(wide))), 24)), x)));
  CheckAllVariants(Xsmm(), FunctionOf({x}, Silu(Biased(Depthwise(Silu(Biased(Pointwise(x, 40))))))));
}

TEST(FusedConvolutionsTest, AResidualMayComeFromElsewhere) {
  const Expr x = Input({2, 16, 9, 7});
  const Expr residual = Input({2, 40, 9, 7});
  CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("nn.relu", {Add(InvertedResidual(x, 96, 40), residual)})));
}

TEST(FusedConvolutionsTest, OtherChains) {
  const Expr x = Input({2, 20, 11, 13});
  for (const Expr& body : {Biased(Pointwise(Relu6(Biased(Depthwise(x))), 50)), Pointwise(Pointwise(x, 64), 10),
                           Depthwise(Depthwise(x, {{3, 3}, {2, 1}})), Depthwise(Pointwise(x, 7, {{"strides", Ints{2, 3}}})),
                           Pointwise(Depthwise(x, {{2, 4}, {1, 2}, {0, 3, 1, 0}}), 3, {{"strides", Ints{2, 2}}}),
                           CallOp("nn.relu", {Pointwise(Depthwise(Pointwise(Depthwise(x), 48)), 80)}),
                           Depthwise(Pointwise(x, 33), {{3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}})})
    EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf({x}, body)), ElementsAre("fused/acdb"));
}

Expr RandomTail(Dice& dice, const Expr& convolution) {
  const Expr x = dice.Flip() ? Biased(convolution) : convolution;
  switch (dice.Roll(0, 4)) {
    case 0:
      return Relu6(x);
    case 1:
      return Silu(x);
    case 2:
      return HardSwish(x);
    case 3:
      return CallOp("multiply", {x, RandomConstant({ShapeOf(x)[1], 1, 1}, 9)});
    default:
      return x;
  }
}

Expr RandomDepthwise(Dice& dice, const Expr& x) {
  Windows window;
  for (size_t d = 0; d < 2; ++d) {
    window.dilation[d] = dice.Roll(1, 2);
    window.strides[d] = dice.Roll(1, 2);
    window.kernel[d] = dice.Roll(1, 5);
    window.padding[d] = dice.Roll(0, 3);
    // Room for the window at least.
    const int64_t span = (window.kernel[d] - 1) * window.dilation[d] + 1;
    window.padding[d + 2] = std::max(dice.Roll(0, 3), span - ShapeOf(x)[d + 2] - window.padding[d]);
  }
  return Depthwise(x, window);
}

// Any sizes, windows, tails, rows a step and numbers of threads: what the reference computes.
TEST(FusedConvolutionsTest, RandomChains) {
  for (unsigned seed = 0; seed < Rounds(150); ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const Expr x = Input({dice.Roll(1, 3), dice.Roll(1, 40), dice.Roll(1, 20), dice.Roll(1, 30)});
    Expr body = x;
    for (int64_t left = dice.Roll(2, 3); left > 0; --left)
      body = RandomTail(dice, dice.Flip() ? Pointwise(body, dice.Roll(1, 150)) : RandomDepthwise(dice, body));
    std::vector<Expr> parameters = {x};
    if (dice.Flip()) {
      parameters.push_back(Input(ShapeOf(body)));
      body = Add(body, parameters.back());
    } else if (ShapeOf(body) == ShapeOf(x)) {
      body = Add(x, body);
    }
    const Expr function = FunctionOf(parameters, body);
    const std::vector<Tensor> inputs = RandomInputs(function);
    const Tensor expected = Reference(function, inputs);
    const std::vector<Variant> variants = Xsmm().Variants(*function->As<Function>(), Cpu(1));
    ASSERT_EQ(variants.size(), 1U);
    const std::vector<TuningParameter> parameter = Xsmm().Tuning(*function->As<Function>(), Cpu(1), variants[0]);
    ASSERT_EQ(parameter.size(), 1U);
    for (size_t value = 0; value < parameter[0].values.size(); ++value) {
      const Variant tuned = TunedVariant(variants[0], parameter, {value});
      for (const int threads : {1, 2, 3, 4}) {
        Runner run = Compiled(Xsmm(), function, tuned, threads);
        EXPECT_EQ(Objection(Compare(run(inputs), expected)), "") << tuned.name << ", " << threads << " threads";
      }
    }
  }
}

// Large enough that all threads take part, and that rows of other threads' bands are computed as well.
TEST(FusedConvolutionsTest, EveryNumberOfRowsAndThreadsComputesTheSame) {
  const Expr x = Input({2, 16, 37, 41});
  const Expr function = FunctionOf({x}, Add(InvertedResidual(x, 96, 16, {{5, 3}, {1, 1}, {2, 1, 2, 1}}), x));
  const std::vector<Tensor> inputs = RandomInputs(function);
  const Tensor expected = Reference(function, inputs);
  const Variant variant = Xsmm().Variants(*function->As<Function>(), Cpu(1))[0];
  for (const int rows : {1, 2, 3, 5, 8, 16, 37}) {
    for (const int threads : {1, 2, 3, 4}) {
      const Variant tuned = TunedVariant(variant, {{"rows", {0, rows}}}, {1});
      EXPECT_EQ(Objection(Compare(Compiled(Xsmm(), function, tuned, threads)(inputs), expected)), "") << tuned.name << ", " << threads;
    }
  }
}

TEST(FusedConvolutionsTest, OthersAreDeclined) {
  const Expr x = Input({1, 8, 6, 6});
  const Expr residual = Input({1, 16, 6, 6});
  const Expr inner = Pointwise(x, 16);
  const auto dense = [&](const Expr& data) {
    return CallOp("nn.conv2d", {data, RandomConstant({16, ShapeOf(data)[1], 3, 3}, 1)}, {{"padding", Ints{1, 1}}});
  };
  const auto grouped = CallOp("nn.conv2d", {inner, RandomConstant({16, 4, 1, 1}, 1)}, {{"groups", 4}});
  for (const Expr& body : {dense(Pointwise(x, 16)), Pointwise(dense(x), 8), grouped, Pointwise(inner, 8, {{"padding", Ints{1, 1}}}),
                           Add(Depthwise(inner), inner), Depthwise(CallOp("add", {inner, RandomConstant(ShapeOf(inner), 7)})),
                           Add(Pointwise(inner, 16), Pointwise(inner, 16))})
    EXPECT_THAT(Xsmm().Variants(*FunctionOf({x}, body)->As<Function>(), Cpu(2)), IsEmpty());
  const Expr beside = FunctionOf({x, residual}, Depthwise(Add(inner, residual)));
  EXPECT_THAT(Xsmm().Variants(*beside->As<Function>(), Cpu(2)), IsEmpty()) << "a whole tensor beside what lies between";
}

/// What the backend is offered of a function: labels of matches that it accepts and that hold several convolutions.
std::vector<std::string> ChainsIn(const Expr& function) {
  const DataflowGraph graph(function);
  std::vector<std::string> labels;
  for (const PatternRule& rule : Xsmm().Rules().patterns) {
    ForEachMatch(graph, rule, [&](const PatternMatch& match) {
      const std::string label = LabelOf(rule, graph, match.inside);
      if (label.find("_conv2d") != std::string::npos && rule.check(match.match).accepted) labels.push_back(label);
    });
  }
  return labels;
}

TEST(FusedConvolutionsTest, ABlockOfMobileNetOffersTheChainOfThreeAndItsPairs) {
  const Expr x = Input({1, 24, 14, 14});
  EXPECT_THAT(ChainsIn(FunctionOf({x}, Add(InvertedResidual(x, 144, 24), x))),
              UnorderedElementsAre("xsmm.conv2d_bias_clip_conv2d_bias_clip", "xsmm.conv2d_bias_clip_conv2d_bias_clip_conv2d_bias",
                                   "xsmm.conv2d_bias_clip_conv2d_bias_clip_conv2d_bias_add", "xsmm.conv2d_bias_clip_conv2d_bias",
                                   "xsmm.conv2d_bias_clip_conv2d_bias_add"));
}

// From one block to the next lies the smallest tensor.
TEST(FusedConvolutionsTest, ChainsDoNotReachIntoTheNextBlock) {
  const Expr x = Input({1, 24, 14, 14});
  const Expr first = InvertedResidual(x, 144, 24);
  const size_t of_one = ChainsIn(FunctionOf({x}, first)).size();
  EXPECT_EQ(of_one, 3U);
  EXPECT_EQ(ChainsIn(FunctionOf({x}, InvertedResidual(first, 144, 24))).size(), 2 * of_one);
}

// As in EfficientNet, where the gate depends on what the depthwise convolution gives.
TEST(FusedConvolutionsTest, SqueezeAndExciteEndsTheChain) {
  const Expr x = Input({1, 24, 14, 14});
  const Expr inner = Silu(Biased(Depthwise(Silu(Biased(Pointwise(x, 96))))));
  const Expr gate = CallOp("sigmoid", {Biased(Pointwise(Silu(Biased(Pointwise(CallOp("nn.global_avg_pool2d", {inner}), 6))), 96))});
  const Expr block = Biased(Pointwise(CallOp("multiply", {inner, gate}), 24));
  EXPECT_THAT(ChainsIn(FunctionOf({x}, block)), testing::Contains("xsmm.conv2d_bias_sigmoid_multiply_conv2d_bias_sigmoid_multiply"));
}

}  // namespace
}  // namespace collage
