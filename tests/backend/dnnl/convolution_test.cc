#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

struct Convolution {
  int64_t in, out, height, width, kernel;
  int64_t stride = 1, dilation = 1, groups = 1;
  std::vector<int64_t> padding = {0, 0, 0, 0};
};

Expr Convolve(const Expr& data, const Convolution& c) {
  const Shape weight = {c.out, c.in / c.groups, c.kernel, c.kernel};
  const double scale = 1 / std::sqrt(static_cast<double>(weight[1] * c.kernel * c.kernel));
  return CallOp("nn.conv2d", {data, RandomConstant(weight, 11, -scale, scale)},
                {{"strides", std::vector<int64_t>{c.stride, c.stride}},
                 {"padding", c.padding},
                 {"dilation", std::vector<int64_t>{c.dilation, c.dilation}},
                 {"groups", c.groups}});
}

Expr BiasAdd(const Expr& data, int64_t channels) { return CallOp("nn.bias_add", {data, RandomConstant({channels}, 3)}, {{"axis", 1}}); }

Expr Data(const Convolution& c) { return Input({1, c.in, c.height, c.width}); }

TEST(DnnlConvolutionTest, AllVariantsOfOddShapesAgreeWithTheReference) {
  const std::vector<Convolution> shapes = {
      {3, 17, 19, 23, 7, 2, 1, 1, {3, 3, 3, 3}},
      {100, 17, 9, 11, 3, 1, 1, 1, {1, 1, 1, 1}},
      {3, 100, 13, 13, 3, 1, 1, 1, {1, 0, 2, 1}},
      {17, 3, 8, 9, 1},
      {1, 8, 12, 12, 5, 1, 1, 1, {2, 2, 2, 2}},
      {32, 48, 10, 10, 3, 1, 2, 1, {2, 2, 2, 2}},
      {64, 64, 7, 7, 3, 2, 1, 1, {0, 0, 1, 1}},
      {48, 48, 9, 9, 3, 2, 1, 48, {1, 1, 1, 1}},
      {17, 17, 9, 9, 3, 1, 1, 17, {1, 1, 1, 1}},
      {16, 32, 9, 9, 3, 1, 1, 4, {1, 1, 1, 1}},
      {30, 60, 6, 6, 1, 1, 1, 3},
      {32, 64, 1, 1, 1},
  };
  for (const Convolution& c : shapes) {
    SCOPED_TRACE(std::to_string(c.in) + "->" + std::to_string(c.out) + " kernel " + std::to_string(c.kernel));
    const Expr x = Data(c);
    CheckAllVariants(Dnnl(), FunctionOf({x}, CallOp("nn.relu", {BiasAdd(Convolve(x, c), c.out)})));
  }
}

TEST(DnnlConvolutionTest, RandomConvolutionsAgreeWithTheReference) {
  std::mt19937 random(20);
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 40; ++i) {
    const int64_t groups = pick(0, 2) == 0 ? pick(2, 8) : 1;
    Convolution c{groups * pick(1, 20),
                  groups * pick(1, 20),
                  pick(7, 14),
                  pick(7, 14),
                  pick(1, 3),
                  pick(1, 2),
                  pick(1, 2),
                  groups,
                  {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)}};
    SCOPED_TRACE("random convolution " + std::to_string(i));
    const Expr x = Data(c);
    CheckAllVariants(Dnnl(), FunctionOf({x}, Convolve(x, c)), static_cast<int>(pick(1, 2)));
  }
}

// The library has it for AVX-512 only.
bool OffersWinograd(const std::vector<std::string>& names) {
  const bool is_offered = std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("winograd/"); });
  EXPECT_EQ(is_offered, __builtin_cpu_supports("avx512f") != 0) << testing::PrintToString(names);
  return is_offered;
}

TEST(DnnlConvolutionTest, WinogradIsAVariantOfItsOwnAndExactEnough) {
  const Convolution c{64, 64, 28, 28, 3, 1, 1, 1, {1, 1, 1, 1}};
  const Expr x = Data(c);
  const Expr plain = FunctionOf({x}, Convolve(x, c));
  const std::vector<std::string> names = CheckAllVariants(Dnnl(), plain);
  EXPECT_THAT(names, Contains(StartsWith("direct/")));
  if (OffersWinograd(names)) {
    EXPECT_THAT(names, Contains(testing::AllOf(StartsWith("winograd/"), HasSubstr("wino_"))));
  }
  const Expr fused = FunctionOf({x}, CallOp("nn.relu", {BiasAdd(Convolve(x, c), c.out)}));
  OffersWinograd(CheckAllVariants(Dnnl(), fused));
}

TEST(DnnlConvolutionTest, AStridedConvolutionHasNoWinogradVariant) {
  const Convolution c{64, 64, 28, 28, 3, 2, 1, 1, {1, 1, 1, 1}};
  const Expr x = Data(c);
  EXPECT_THAT(CheckAllVariants(Dnnl(), FunctionOf({x}, Convolve(x, c))), Each(testing::Not(StartsWith("winograd"))));
}

TEST(DnnlConvolutionTest, VariantsCoverPlainAndPreferredLayouts) {
  const Convolution c{64, 64, 14, 14, 1};
  const Expr x = Data(c);
  bool plain = false, other = false;
  for (const Variant& variant : Dnnl().Variants(*FunctionOf({x}, Convolve(x, c))->As<Function>(), Cpu(2))) {
    plain |= variant.inputs[0].IsPlain() && variant.outputs[0].IsPlain();
    other |= !variant.inputs[0].IsPlain() && variant.inputs[0] == variant.outputs[0];
  }
  EXPECT_TRUE(plain);
  EXPECT_TRUE(other);
}

TEST(DnnlConvolutionTest, AResidualIsAccumulatedIntoTheResult) {
  const Convolution c{32, 40, 10, 10, 3, 1, 1, 1, {1, 1, 1, 1}};
  for (const bool residual_first : {false, true}) {
    const Expr x = Data(c);
    const Expr residual = Input({1, c.out, 10, 10});
    const Expr body = BiasAdd(Convolve(x, c), c.out);
    const Expr sum = residual_first ? CallOp("add", {residual, body}) : CallOp("add", {body, residual});
    const Expr function = FunctionOf({x, residual}, CallOp("nn.relu", {sum}));
    OffersWinograd(CheckAllVariants(Dnnl(), function));
    const Variant first = Dnnl().Variants(*function->As<Function>(), Cpu(2))[0];
    EXPECT_EQ(Compiled(Dnnl(), function, first, 2).kernel().accumulated_input(), std::optional<size_t>(1));
  }
}

TEST(DnnlConvolutionTest, TheConvolvedTensorItselfIsNotAccumulatedInto) {
  const Convolution c{32, 32, 10, 10, 3, 1, 1, 1, {1, 1, 1, 1}};
  const Expr x = Data(c);
  const Expr function = FunctionOf({x}, CallOp("add", {Convolve(x, c), x}));
  CheckAllVariants(Dnnl(), function);
  for (const Variant& variant : Dnnl().Variants(*function->As<Function>(), Cpu(2)))
    EXPECT_FALSE(Compiled(Dnnl(), function, variant, 2).kernel().accumulated_input());
}

TEST(DnnlConvolutionTest, ActivationsAreFused) {
  const Convolution c{32, 48, 10, 10, 3, 1, 1, 1, {1, 1, 1, 1}};
  const auto check = [&](const auto& activation) {
    const Expr x = Data(c);
    CheckAllVariants(Dnnl(), FunctionOf({x}, activation(BiasAdd(Convolve(x, c), c.out))));
  };
  check([](const Expr& y) { return CallOp("clip", {y}, {{"a_min", 0.0}, {"a_max", 6.0}}); });
  check([](const Expr& y) { return CallOp("sigmoid", {y}); });
  check([](const Expr& y) { return CallOp("tanh", {y}); });
  check([](const Expr& y) { return CallOp("nn.leaky_relu", {y}, {{"alpha", 0.1}}); });
  check([](const Expr& y) { return CallOp("multiply", {y, CallOp("sigmoid", {y})}); });
  check([](const Expr& y) {
    const Expr gate = CallOp("clip", {CallOp("add", {y, Scalar(3)})}, {{"a_min", 0.0}, {"a_max", 6.0}});
    return CallOp("divide", {CallOp("multiply", {y, gate}), Scalar(6)});
  });
}

TEST(DnnlConvolutionTest, TransposedConvolutionsAgreeWithTheReference) {
  struct Case {
    int64_t in, out, extent, kernel, stride, groups;
    std::vector<int64_t> padding, output_padding;
  };
  for (const Case& c : std::vector<Case>{{16, 24, 5, 4, 2, 1, {1, 1, 1, 1}, {0, 0}},
                                         {100, 17, 3, 4, 1, 1, {0, 0, 0, 0}, {0, 0}},
                                         {16, 3, 6, 3, 2, 1, {1, 1, 1, 1}, {1, 1}},
                                         {16, 32, 5, 3, 2, 4, {1, 0, 0, 1}, {0, 0}}}) {
    const Expr x = Input({1, c.in, c.extent, c.extent});
    const Expr call = CallOp("nn.conv2d_transpose", {x, RandomConstant({c.in, c.out / c.groups, c.kernel, c.kernel}, 4, -0.1, 0.1)},
                             {{"strides", std::vector<int64_t>{c.stride, c.stride}},
                              {"padding", c.padding},
                              {"output_padding", c.output_padding},
                              {"groups", c.groups}});
    CheckAllVariants(Dnnl(), FunctionOf({x}, call));
    CheckAllVariants(Dnnl(), FunctionOf({x}, CallOp("nn.relu", {BiasAdd(call, c.out)})));
  }
}

TEST(DnnlConvolutionTest, TwoKernelsMayRunInTurns) {
  const Convolution c{32, 32, 14, 14, 3, 1, 1, 1, {1, 1, 1, 1}};
  const Expr x = Data(c);
  const Expr function = FunctionOf({x}, Convolve(x, c));
  const std::vector<Variant> variants = Dnnl().Variants(*function->As<Function>(), Cpu(2));
  ASSERT_GE(variants.size(), 2u);
  Runner a = Compiled(Dnnl(), function, variants.front(), 2);
  Runner b = Compiled(Dnnl(), function, variants.back(), 1);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<Tensor> inputs = RandomInputs(function, seed);
    const Tensor expected = Reference(function, inputs);
    EXPECT_EQ(Objection(Compare(a(inputs), expected)), "");
    EXPECT_EQ(Objection(Compare(b(inputs), expected)), "");
  }
}

TEST(DnnlConvolutionTest, TwoConvolutionsInOneFunctionAreDeclined) {
  const Convolution c{32, 32, 14, 14, 3, 1, 1, 1, {1, 1, 1, 1}};
  const Expr x = Data(c);
  EXPECT_TRUE(Dnnl().Variants(*FunctionOf({x}, Convolve(Convolve(x, c), c))->As<Function>(), Cpu(2)).empty());
}

TEST(DnnlConvolutionTest, AnUnknownVariantIsAnError) {
  const Convolution c{32, 32, 14, 14, 3};
  const Expr x = Data(c);
  const auto kernel = Dnnl().Compile(*FunctionOf({x}, Convolve(x, c))->As<Function>(), Cpu(2), Variant{"fast/please"});
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("fast/please"));
}

}  // namespace
}  // namespace collage
