#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <set>
#include <thread>

#include "collage/backend/tuning.h"
#include "collage/backend/xsmm/panel_loops.h"
#include "tests/backend/kernel_harness.h"
#include "tests/backend/xsmm/dice.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const Backend& Xsmm() {
  static const Backend& backend = BackendNamed("xsmm");
  return backend;
}

std::vector<Variant> VariantsOf(const Expr& function) { return Xsmm().Variants(*function->As<Function>(), Cpu(2)); }

using Handler = void (*)(int);

std::vector<Handler> Handlers() {
  std::vector<Handler> handlers;
  for (const int signal : {SIGABRT, SIGSEGV}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    handlers.push_back(action.sa_handler);
  }
  return handlers;
}

/// Names of the variables: what they hold is nobody's business in a test's output.
std::set<std::string> Environment() {
  std::set<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) names.insert(std::string(*entry, std::strcspn(*entry, "=")));
  return names;
}

// Before any backend is opened.
const std::vector<Handler> kHandlersAtStart = Handlers();
const std::set<std::string> kEnvironmentAtStart = Environment();

Expr Dense(const Expr& x, int64_t units) { return CallOp("nn.dense", {x, RandomConstant({units, x->type().AsTensor()->shape.back()}, 2)}); }

Expr Pointwise(const Expr& x, int64_t channels, Attributes attributes = {}) {
  return CallOp("nn.conv2d", {x, RandomConstant({channels, x->type().AsTensor()->shape[1], 1, 1}, 2)}, std::move(attributes));
}

Expr Gelu(const Expr& x) {
  const Expr factor = CallOp("add", {CallOp("erf", {CallOp("divide", {x, Scalar(1.4142135)})}), Scalar(1)});
  return CallOp("multiply", {CallOp("multiply", {x, factor}), Scalar(0.5)});
}

TEST(XsmmTest, ProductsOfAnyNumberOfRowsAndColumns) {
  for (const Shape& data : {Shape{1, 3}, {5, 64}, {16, 100}, {197, 48}, {2, 33, 20}}) {
    for (const int64_t units : {1, 17, 64, 100, 200}) {
      SCOPED_TRACE(ToString(data) + " x " + std::to_string(units));
      const Expr x = Input(data);
      const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, Dense(x, units)));
      EXPECT_THAT(names, Contains("product"));
      const bool is_one_pass = ElementCount(data) / data.back() <= xsmm::kPanelRows;  // over the weights
      EXPECT_EQ(std::count(names.begin(), names.end(), "streamed"), is_one_pass ? 1 : 0);
    }
  }
}

TEST(XsmmTest, ConstantMatricesAreTakenEitherWayRound) {
  for (const bool transposed : {false, true}) {
    const Expr x = Input({3, 5, 40});
    const Expr single = RandomConstant(transposed ? Shape{70, 40} : Shape{40, 70}, 3);
    const Expr several = RandomConstant(transposed ? Shape{3, 70, 40} : Shape{3, 40, 70}, 4);
    for (const Expr& weight : {single, several})
      CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.matmul", {x, weight}, {{"transpose_b", transposed}})));
  }
}

TEST(XsmmTest, ProductsOfVariablesBroadcastTheirBatches) {
  struct Case {
    Shape a, b;
    bool transpose_b;
  };
  for (const Case& c : std::vector<Case>{{{3, 4, 5}, {5, 7}, false},
                                         {{2, 1, 4, 5}, {3, 7, 5}, true},
                                         {{6, 16}, {2, 16, 5}, false},
                                         {{4, 64, 64}, {4, 64, 64}, true},
                                         {{4, 64, 64}, {4, 64, 64}, false},
                                         {{2, 100, 33}, {2, 130, 33}, true}}) {
    SCOPED_TRACE(ToString(c.a) + " x " + ToString(c.b));
    const Expr a = Input(c.a);
    const Expr b = Input(c.b);
    CheckAllVariants(Xsmm(), FunctionOf({a, b}, CallOp("nn.matmul", {a, b}, {{"transpose_b", c.transpose_b}})));
  }
  const Expr a = Input({4, 3, 5});
  const Expr b = Input({4, 6, 5});
  CheckAllVariants(Xsmm(), FunctionOf({a, b}, CallOp("nn.batch_matmul", {a, b})));
}

TEST(XsmmTest, WhatFollowsAProductIsDoneOnItsTiles) {
  const Expr x = Input({2, 33, 20});
  const Expr residual = Input({2, 33, 100});
  const Expr dense = Dense(x, 100);
  const Expr biased = CallOp("nn.bias_add", {dense, RandomConstant({100}, 3)}, {{"axis", -1}});
  const Expr sum = CallOp("add", {residual, biased});
  const Expr cube = CallOp("power", {biased, Scalar(3)});
  for (const Expr& body :
       {CallOp("nn.relu", {biased}), Gelu(biased), CallOp("multiply", {dense, Scalar(0.125)}),
        CallOp("divide", {Scalar(2), CallOp("add", {CallOp("power", {biased, Scalar(2)}), Scalar(1)})}),
        CallOp("multiply", {biased, CallOp("sigmoid", {biased})}), CallOp("tanh", {CallOp("add", {biased, cube})}),
        CallOp("clip", {biased}, {{"a_min", -0.5}, {"a_max", 0.25}}), CallOp("nn.leaky_relu", {biased}, {{"alpha", 0.2}}),
        CallOp("nn.prelu", {biased, RandomConstant({100}, 9)}, {{"axis", -1}}), CallOp("subtract", {RandomConstant({1, 1, 100}, 8), dense}),
        CallOp("add", {dense, RandomConstant({2, 33, 100}, 8)})})
    CheckAllVariants(Xsmm(), FunctionOf({x}, body));
  for (const Expr& body : {sum, CallOp("nn.relu", {sum}), CallOp("maximum", {Gelu(sum), residual})})
    CheckAllVariants(Xsmm(), FunctionOf({x, residual}, body));
}

TEST(XsmmTest, PointwiseConvolutionsInEveryLayout) {
  for (const auto& [size, channels] : std::vector<std::pair<int64_t, int64_t>>{{14, 32}, {7, 32}, {5, 48}, {9, 20}, {1, 32}}) {
    for (const int64_t images : {1, 2}) {
      SCOPED_TRACE(std::to_string(images) + " images of " + std::to_string(size) + ", channels " + std::to_string(channels));
      const Expr x = Input({images, 64, size, size + 1});
      const Expr residual = Input({images, channels, size, size + 1});
      const Expr biased = CallOp("nn.bias_add", {Pointwise(x, channels), RandomConstant({channels}, 3)});
      const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, Pointwise(x, channels)));
      EXPECT_THAT(names, Contains("1x1/acdb"));
      EXPECT_THAT(names, Contains("1x1/plain"));
      const auto is_blocked = [](const std::string& name) { return name.starts_with("1x1/aBcd"); };
      EXPECT_EQ(std::count_if(names.begin(), names.end(), is_blocked), channels == 20 ? 0 : 1) << "where a vector divides the channels";
      CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.relu", {biased})));
      CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("nn.relu", {CallOp("add", {biased, residual})})));
      CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("multiply", {biased, RandomConstant({channels, 1, 1}, 5)})));
    }
  }
  const Expr x = Input({2, 64, 1, 1});
  EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf({x}, Pointwise(x, 32))), ElementsAre("1x1/acdb")) << "all layouts of one pixel are one";
}

std::vector<std::string> NamesOf(const Expr& product) {
  std::vector<std::string> names;
  for (const Variant& variant : VariantsOf(FunctionOf({product->As<Call>()->args[0]}, product))) names.push_back(variant.name);
  return names;
}

// Depths of several parts, panels of several threads.
TEST(XsmmTest, WeightsThatAreFarAwayAreFetched) {
  for (const Shape& data : {Shape{7, 97}, {64, 256}, {2, 65, 300}, {255, 193}}) {
    for (const int64_t units : {33, 200}) {
      SCOPED_TRACE(ToString(data) + " x " + std::to_string(units));
      const Expr x = Input(data);
      Shape result = data;
      result.back() = units;
      const Expr residual = Input(result);
      for (const Expr& function :
           {FunctionOf({x}, Dense(x, units)), FunctionOf({x, residual}, CallOp("add", {Gelu(Dense(x, units)), residual}))}) {
        EXPECT_THAT(CheckAllVariants(Xsmm(), function), Contains("fetched"));
        CheckAllVariants(Xsmm(), function, 1);
      }
    }
  }
  const Expr image = Input({2, 130, 7, 9});
  EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf({image}, CallOp("nn.relu", {Pointwise(image, 160)}))), Contains("fetched/acdb"));
  // Few rows wait for weights all the time, many do not; a few depths are one part; rows of a strided image lie apart.
  EXPECT_THAT(NamesOf(Dense(Input({6, 512}), 64)), Not(Contains("fetched")));
  EXPECT_THAT(NamesOf(Dense(Input({257, 512}), 64)), Not(Contains("fetched")));
  EXPECT_THAT(NamesOf(Dense(Input({64, 96}), 64)), Not(Contains("fetched")));
  EXPECT_THAT(NamesOf(Pointwise(Input({1, 128, 14, 14}), 64, {{"strides", std::vector<int64_t>{2, 2}}})), Not(Contains("fetched/acdb")));
}

TEST(XsmmTest, StrassensAlgorithmForProducts) {
  for (const Shape& data : {Shape{64, 128}, {57, 62}, {2, 49, 130}, {331, 256}}) {
    for (const int64_t units : {64, 92, 160, 318}) {
      SCOPED_TRACE(ToString(data) + " x " + std::to_string(units));
      const Expr x = Input(data);
      Shape result = data;
      result.back() = units;
      const Expr residual = Input(result);
      const Expr biased = CallOp("nn.bias_add", {Dense(x, units), RandomConstant({units}, 3)}, {{"axis", -1}});
      EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf({x}, Dense(x, units))), Contains("strassen"));
      CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.matmul", {x, RandomConstant({data.back(), units}, 4)})));
      CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("multiply", {biased, CallOp("sigmoid", {biased})})));
      CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("maximum", {Gelu(CallOp("add", {biased, residual})), residual})));
    }
  }
  const Expr image = Input({2, 96, 7, 9});
  EXPECT_THAT(CheckAllVariants(Xsmm(), FunctionOf({image}, CallOp("nn.relu", {Pointwise(image, 160)}))), Contains("strassen/acdb"));
}

// The algorithm subtracts sums of different rows from each other again, and of numbers that are not finite nothing is left then.
TEST(XsmmTest, NumbersThatAreNotFiniteStayInTheirRows) {
  constexpr int64_t kRows = 210;
  constexpr int64_t kDepth = 128;
  constexpr int64_t kUnits = 96;
  const Expr x = Input({kRows, kDepth});
  const Expr function = FunctionOf({x}, CallOp("nn.bias_add", {Dense(x, kUnits), RandomConstant({kUnits}, 3)}, {{"axis", -1}}));
  std::vector<Tensor> inputs = RandomInputs(function);
  const Tensor expected = Reference(function, inputs);
  const std::set<int64_t> rows = {5, 40, 73, kRows - 1};
  float* const data = inputs[0].MutableData<float>();
  data[5 * kDepth + 3] = std::numeric_limits<float>::infinity();
  data[40 * kDepth + 70] = std::numeric_limits<float>::quiet_NaN();
  data[73 * kDepth + 1] = data[73 * kDepth + 65] = std::numeric_limits<float>::max();  // whose sum overflows
  data[(kRows - 1) * kDepth + 127] = -std::numeric_limits<float>::infinity();
  for (const Variant& variant : VariantsOf(function)) {
    SCOPED_TRACE(variant.name);
    Runner run = Compiled(Xsmm(), function, variant, 2);
    const Tensor found = run(inputs);
    for (int64_t i = 0; i < kRows * kUnits; ++i) {
      if (rows.contains(i / kUnits)) continue;
      ASSERT_NEAR(found.Data<float>()[i], expected.Data<float>()[i], 1e-4) << "row " << i / kUnits;
    }
    for (int64_t c = 0; c < kUnits; ++c) {
      EXPECT_TRUE(std::isinf(found.Data<float>()[5 * kUnits + c]));
      EXPECT_TRUE(std::isnan(found.Data<float>()[40 * kUnits + c]));
      EXPECT_TRUE(std::isinf(found.Data<float>()[(kRows - 1) * kUnits + c]));
    }
  }
}

TEST(XsmmTest, StrassensAlgorithmIsNotOfferedWhereItSavesNothing) {
  for (const auto& [data, units] : std::vector<std::pair<Shape, int64_t>>{
           {{48, 1024}, 1024}, {{256, 127}, 128}, {{256, 128}, 127}, {{256, 16}, 256}, {{256, 256}, 16}}) {
    SCOPED_TRACE(ToString(data) + " x " + std::to_string(units));
    EXPECT_THAT(NamesOf(Dense(Input(data), units)), Not(Contains("strassen")));
  }
  const Expr strided = Pointwise(Input({1, 256, 28, 28}), 256, {{"strides", std::vector<int64_t>{2, 2}}});
  EXPECT_THAT(NamesOf(strided), Not(Contains("strassen/acdb")));
}

TEST(XsmmTest, StridedPointwiseConvolutions) {
  for (const std::vector<int64_t>& strides : {std::vector<int64_t>{2, 2}, {1, 3}, {3, 1}}) {
    const Expr x = Input({2, 32, 15, 41});
    const Expr product = Pointwise(x, 64, {{"strides", strides}});
    const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.relu", {product})));
    EXPECT_THAT(names, Contains("1x1/acdb"));
    EXPECT_THAT(names, Not(Contains("1x1/plain"))) << "its pixels do not lie side by side";
  }
}

TEST(XsmmTest, AnInputThatIsAlsoTheResidualHasOneLayout) {
  const Expr x = Input({1, 32, 6, 6});
  CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("add", {Pointwise(x, 32), x})));
}

TEST(XsmmTest, EverySizeOfAPartComputesTheSame) {
  const Expr x = Input({1, 64, 33, 35});
  const Expr few = Input({1, 200, 15, 15});
  const Expr pointwise = Pointwise(x, 96);
  const Expr winograd = CallOp("nn.conv2d", {x, RandomConstant({96, 64, 3, 3}, 2)}, {{"padding", std::vector<int64_t>{1, 1}}});
  const Expr grouped = CallOp("nn.conv2d", {x, RandomConstant({96, 4, 3, 3}, 2)}, {{"groups", int64_t{16}}});
  for (const Expr& product : {pointwise, Pointwise(few, 100), winograd, grouped}) {
    const Expr function = FunctionOf({product->As<Call>()->args[0]}, CallOp("nn.relu", {product}));
    const std::vector<Tensor> inputs = RandomInputs(function);
    const Tensor expected = Reference(function, inputs);
    for (const Variant& variant : VariantsOf(function)) {
      const std::vector<TuningParameter> parameters = Xsmm().Tuning(*function->As<Function>(), Cpu(2), variant);
      ASSERT_EQ(parameters.size(), 1U);
      EXPECT_GT(parameters[0].values.size(), 2U);
      for (size_t value = 0; value < parameters[0].values.size(); ++value) {
        const Variant tuned = TunedVariant(variant, parameters, {value});
        SCOPED_TRACE(tuned.name);
        EXPECT_EQ(Objection(Compare(Compiled(Xsmm(), function, tuned, 2)(inputs), expected)), "");
      }
    }
  }
}

// Sizes that no tile divides, parts of one tile and of all, rows of padding beside which nothing lies, and channels of several panels.
TEST(XsmmTest, ConvolutionsByThreeByThreeInWinogradsForm) {
  struct Case {
    Shape data;
    int64_t channels;
    std::vector<int64_t> padding;
  };
  for (const Case& c : std::vector<Case>{{{1, 16, 4, 4}, 16, {1, 1, 1, 1}},
                                         {{1, 32, 14, 15}, 64, {1, 1, 1, 1}},
                                         {{2, 16, 9, 37}, 112, {0, 0, 0, 0}},
                                         {{1, 48, 7, 7}, 16, {2, 0, 1, 3}},
                                         {{1, 16, 3, 50}, 32, {7, 0, 0, 9}},
                                         {{3, 64, 56, 20}, 208, {1, 1, 1, 1}}}) {
    SCOPED_TRACE(ToString(c.data) + " to " + std::to_string(c.channels));
    const Expr x = Input(c.data);
    const Expr product = CallOp("nn.conv2d", {x, RandomConstant({c.channels, c.data[1], 3, 3}, 2)}, {{"padding", c.padding}});
    const Expr biased = CallOp("nn.bias_add", {product, RandomConstant({c.channels}, 3)});
    const Expr residual = Input(product->type().AsTensor()->shape);
    const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, product));
    EXPECT_THAT(names, testing::Contains(testing::StartsWith("winograd/")));
    CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.relu", {biased})));
    CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("maximum", {Gelu(CallOp("add", {biased, residual})), residual})));
    CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("nn.relu", {CallOp("add", {biased, residual})})));
  }
}

struct Window {
  int64_t kernel, stride, dilation, pad_begin, pad_end, extent;
};

Window RollWindow(xsmm::Dice& dice) {
  Window window{dice.Roll(1, 6), dice.Roll(1, 3), dice.Roll(1, 3), 0, 0, 0};
  if (dice.Flip()) window.stride = window.dilation = 1;
  // A result from padding alone is no product.
  window.pad_begin = dice.Roll(0, (window.kernel - 1) * window.dilation);
  window.pad_end = dice.Roll(0, (window.kernel - 1) * window.dilation);
  window.extent = std::max<int64_t>((window.kernel - 1) * window.dilation + 1 - window.pad_begin - window.pad_end, 1) + dice.Roll(0, 30);
  return window;
}

TEST(XsmmTest, ConvolutionsByAnyWindow) {
  xsmm::Dice dice(1);
  std::set<std::string> seen;
  for (int round = 0; round < 60; ++round) {
    const Window down = RollWindow(dice);
    const Window across = dice.Roll(0, 3) == 0 ? down : RollWindow(dice);
    const std::array<int64_t, 4> channels = {3, 16, 48, 112};
    const Shape data = {dice.Roll(1, 2), channels[static_cast<size_t>(dice.Roll(0, 3))], down.extent, across.extent};
    const Shape weight = {channels[static_cast<size_t>(dice.Roll(0, 3))], data[1], down.kernel, across.kernel};
    const Attributes attributes = {{"strides", std::vector<int64_t>{down.stride, across.stride}},
                                   {"dilation", std::vector<int64_t>{down.dilation, across.dilation}},
                                   {"padding", std::vector<int64_t>{down.pad_begin, across.pad_begin, down.pad_end, across.pad_end}}};
    const Expr x = Input(data);
    const Expr product = CallOp("nn.conv2d", {x, RandomConstant(weight, 2)}, attributes);
    const Expr function =
        FunctionOf({x}, dice.Flip() ? product : CallOp("nn.relu", {CallOp("nn.bias_add", {product, RandomConstant({weight[0]}, 3)})}));
    SCOPED_TRACE("round " + std::to_string(round) + ": " + ToString(data) + " by " + ToString(weight));
    const std::vector<std::string> names = CheckAllVariants(Xsmm(), function);
    seen.insert(names.begin(), names.end());
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"direct/acdb", "1x1/acdb", "winograd/4x4/acdb", "winograd/1x4/acdb"}));
}

// Every size of tile along one dimension and along both, dilated and not, with results that no tile divides.
TEST(XsmmTest, WinogradsFormsOfEveryWindow) {
  std::set<std::string> seen;
  for (const int64_t down : {1, 2, 3, 4, 5}) {
    for (const int64_t across : {1, 2, 3, 4, 5}) {
      for (const int64_t dilation : {1, 2}) {
        if (down == 1 && across == 1) continue;
        const Shape shape = {1, 16, 26, 23};
        SCOPED_TRACE(std::to_string(down) + "x" + std::to_string(across) + " dilated by " + std::to_string(dilation));
        const Expr x = Input(shape);
        const Expr product =
            CallOp("nn.conv2d", {x, RandomConstant({32, 16, down, across}, 2)},
                   {{"padding", std::vector<int64_t>{down - 1, 0, 1, across - 1}}, {"dilation", std::vector<int64_t>{dilation, dilation}}});
        const Expr biased = CallOp("nn.bias_add", {product, RandomConstant({32}, 3)});
        CheckAllVariants(Xsmm(), FunctionOf({x}, product));
        for (const std::string& name : CheckAllVariants(Xsmm(), FunctionOf({x}, Gelu(biased)))) seen.insert(name);
      }
    }
  }
  for (const char* tile : {"1x2", "2x1", "1x3", "3x1", "1x4", "4x1", "1x5", "5x1", "2x2", "3x3", "4x4", "5x5"})
    EXPECT_THAT(seen, Contains("winograd/" + std::string(tile) + "/acdb"));
}

TEST(XsmmTest, ConvolutionsOfVolumes) {
  xsmm::Dice dice(2);
  std::set<std::string> seen;
  int declined = 0;  // where large paddings and dilations leave results that see no data
  for (int round = 0; round < 60; ++round) {
    std::array<Window, 3> windows = {RollWindow(dice), RollWindow(dice), RollWindow(dice)};
    windows[0].kernel = std::min<int64_t>(windows[0].kernel, 3);
    windows[0].pad_begin = std::min(windows[0].pad_begin, windows[0].kernel - 1);
    windows[0].extent = std::min<int64_t>(std::max(windows[0].extent, windows[0].kernel * windows[0].dilation), 9);
    if (round % 2 == 0) {
      for (const size_t d : {1, 2}) windows[d] = {3, 1, 1, 1, dice.Roll(0, 1), dice.Roll(8, 20)};
    }
    if (round % 5 == 0) windows.fill({1, dice.Roll(1, 2), 1, 0, 0, dice.Roll(1, 9)});
    const std::array<int64_t, 3> channels = {3, 16, 80};
    Shape data = {dice.Roll(1, 2), channels[static_cast<size_t>(dice.Roll(0, 2))]};
    Shape weight = {channels[static_cast<size_t>(dice.Roll(0, 2))], data[1]};
    std::vector<int64_t> strides, dilations, padding, pad_end;
    for (const Window& window : windows) {
      data.push_back(window.extent);
      weight.push_back(window.kernel);
      strides.push_back(window.stride);
      dilations.push_back(window.dilation);
      padding.push_back(window.pad_begin);
      pad_end.push_back(window.pad_end);
    }
    padding.insert(padding.end(), pad_end.begin(), pad_end.end());
    SCOPED_TRACE("round " + std::to_string(round) + ": " + ToString(data) + " by " + ToString(weight));
    const Expr x = Input(data);
    const Expr product =
        CallOp("nn.conv3d", {x, RandomConstant(weight, 2)}, {{"strides", strides}, {"dilation", dilations}, {"padding", padding}});
    const Expr biased = CallOp("nn.bias_add", {product, RandomConstant({weight[0]}, 3)});
    const Expr residual = Input(product->type().AsTensor()->shape);
    if (VariantsOf(FunctionOf({x}, product)).empty()) {
      ++declined;
      continue;
    }
    const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, product));
    CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("nn.relu", {CallOp("add", {biased, residual})})));
    seen.insert(names.begin(), names.end());
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"direct/acdeb", "1x1/acdeb", "winograd/4x4/acdeb"}));
  EXPECT_THAT(seen, Contains(testing::StartsWith("winograd/4x4/aBcde")));
  EXPECT_LT(declined, 10);
}

TEST(XsmmTest, ConvolutionsInGroups) {
  xsmm::Dice dice(3);
  for (const int64_t groups : {2, 3, 8}) {
    for (const int64_t kernel : {1, 3, 5}) {
      for (const int64_t stride : {1, 2}) {
        const int64_t inputs = 16 * dice.Roll(1, 2);
        const Expr x = Input({dice.Roll(1, 2), groups * inputs, dice.Roll(9, 20), dice.Roll(9, 20)});
        const int64_t outputs = 16 * dice.Roll(1, 5) * groups;
        SCOPED_TRACE(ToString(x->type().AsTensor()->shape) + " to " + std::to_string(outputs) + " in " + std::to_string(groups));
        const std::vector<int64_t> padding(2, kernel / 2);
        const Expr product = CallOp("nn.conv2d", {x, RandomConstant({outputs, inputs, kernel, kernel}, 2)},
                                    {{"groups", groups}, {"strides", std::vector<int64_t>{stride, stride}}, {"padding", padding}});
        const Expr biased = CallOp("nn.bias_add", {product, RandomConstant({outputs}, 3)});
        CheckAllVariants(Xsmm(), FunctionOf({x}, product));
        const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.relu", {biased})));
        const bool is_fast = kernel > 1 && stride == 1;
        EXPECT_THAT(names, Contains(testing::StartsWith(is_fast ? "winograd/" : "direct/")));
      }
    }
  }
}

// Of any width but whole vectors, as many channels of the result as of the data, more or fewer.
TEST(XsmmTest, ConvolutionsInSmallGroups) {
  xsmm::Dice dice(4);
  std::ptrdiff_t offered = 0;
  for (int round = 0; round < 80; ++round) {
    const Window down = RollWindow(dice);
    const Window across = dice.Roll(0, 3) == 0 ? down : RollWindow(dice);
    const int64_t width = dice.Roll(1, 12);
    const int64_t results = dice.Flip() ? width : dice.Roll(1, 12);
    const int64_t groups = 16 * dice.Roll(1, 3);
    const Shape data = {dice.Roll(1, 2), groups * width, down.extent, across.extent};
    const Attributes attributes = {{"groups", groups},
                                   {"strides", std::vector<int64_t>{down.stride, across.stride}},
                                   {"dilation", std::vector<int64_t>{down.dilation, across.dilation}},
                                   {"padding", std::vector<int64_t>{down.pad_begin, across.pad_begin, down.pad_end, across.pad_end}}};
    const Expr x = Input(data);
    const Expr product = CallOp("nn.conv2d", {x, RandomConstant({groups * results, width, down.kernel, across.kernel}, 2)}, attributes);
    const Expr biased = CallOp("nn.bias_add", {product, RandomConstant({groups * results}, 3)});
    const Expr residual = Input(product->type().AsTensor()->shape);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + ToString(data) + " to " + std::to_string(groups * results) + " in " +
                 std::to_string(groups) + " by " + std::to_string(down.kernel) + "x" + std::to_string(across.kernel));
    // Depthwise, or many groups of few channels of the result and many of the data.
    if (VariantsOf(FunctionOf({x}, product)).empty()) continue;
    // With AVX2 groups of eight are whole vectors.
    const std::vector<std::string> names = CheckAllVariants(Xsmm(), FunctionOf({x}, product));
    offered += std::count(names.begin(), names.end(), "groups/acdb");
    CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.relu", {biased})));
    CheckAllVariants(Xsmm(), FunctionOf({x}, Gelu(biased)));
    CheckAllVariants(Xsmm(), FunctionOf({x, residual}, CallOp("nn.relu", {CallOp("add", {residual, biased})})));
  }
  EXPECT_GT(offered, 40);
}

TEST(XsmmTest, ConvolutionsOfVolumesInSmallGroups) {
  xsmm::Dice dice(5);
  for (int round = 0; round < 20; ++round) {
    const std::array<Window, 3> windows = {RollWindow(dice), RollWindow(dice), RollWindow(dice)};
    Attributes attributes = {{"groups", int64_t{16}}};
    std::vector<int64_t> strides, dilation, begin, end;
    Shape data = {1, 64};
    Shape weight = {32, 4};
    for (const Window& window : windows) {
      data.push_back(std::min<int64_t>(window.extent, 8 + (window.kernel - 1) * window.dilation));
      weight.push_back(window.kernel);
      strides.push_back(window.stride);
      dilation.push_back(window.dilation);
      begin.push_back(window.pad_begin);
      end.push_back(window.pad_end);
    }
    begin.insert(begin.end(), end.begin(), end.end());
    attributes.Set("strides", strides);
    attributes.Set("dilation", dilation);
    attributes.Set("padding", begin);
    const Expr x = Input(data);
    SCOPED_TRACE(ToString(data) + " by " + ToString(weight));
    const std::vector<std::string> names =
        CheckAllVariants(Xsmm(), FunctionOf({x}, CallOp("nn.conv3d", {x, RandomConstant(weight, 2)}, attributes)));
    EXPECT_THAT(names, ElementsAre("groups/acdeb"));
  }
}

TEST(XsmmTest, ResultsFromPaddingAloneAreNoProduct) {
  const Expr x = Input({1, 3, 4, 4});
  const Expr product = CallOp("nn.conv2d", {x, RandomConstant({8, 3, 3, 3}, 2)}, {{"padding", std::vector<int64_t>{3, 3}}});
  EXPECT_THAT(VariantsOf(FunctionOf({x}, product)), IsEmpty());
}

TEST(XsmmTest, TwinsRunAtTheSameTime) {
  const Expr x = Input({64, 128});
  const Expr function = FunctionOf({x}, Gelu(Dense(x, 128)));
  const std::vector<Tensor> inputs = RandomInputs(function);
  const Tensor expected = Reference(function, inputs);
  std::unique_ptr<Kernel> first = *Xsmm().Compile(*function->As<Function>(), Cpu(1), VariantsOf(function)[0]);
  std::unique_ptr<Kernel> second = first->Twin();
  ASSERT_NE(second, nullptr);
  first.reset();
  std::unique_ptr<Kernel> third = second->Twin();
  Runner run_second(std::move(second));
  Runner run_third(std::move(third));
  std::vector<std::string> objections(100);
  std::thread other([&] {
    for (std::string& objection : objections) objection = Objection(Compare(run_third(inputs), expected));
  });
  for (size_t i = 0; i < objections.size(); ++i) EXPECT_EQ(Objection(Compare(run_second(inputs), expected)), "");
  other.join();
  EXPECT_THAT(objections, testing::Each(""));
}

TEST(XsmmTest, OtherFunctionsAreDeclined) {
  const Expr x = Input({4, 4});
  const Expr image = Input({1, 8, 6, 6});
  const auto convolution = [&](const Shape& weight, const Attributes& attributes) {
    return CallOp("nn.conv2d", {image, RandomConstant(weight, 1)}, attributes);
  };
  using Ints = std::vector<int64_t>;
  for (const Expr& body :
       {CallOp("nn.relu", {x}), CallOp("nn.softmax", {CallOp("nn.matmul", {x, x})}),
        CallOp("add", {CallOp("nn.matmul", {x, x}), RandomConstant({4, 1}, 1)}), CallOp("nn.matmul", {x, x}, {{"transpose_a", true}})})
    EXPECT_THAT(VariantsOf(FunctionOf({x}, body)), IsEmpty());
  for (const Expr& body : {convolution({10, 4, 1, 1}, {{"groups", 2}}), convolution({8, 1, 3, 3}, {{"groups", 8}}),
                           convolution({8, 8, 1, 1}, {{"padding", Ints{1, 1}}})})
    EXPECT_THAT(VariantsOf(FunctionOf({image}, body)), IsEmpty());
}

// The library takes them when it is loaded.
TEST(XsmmTest, SignalsStayThoseOfTheProgram) {
  ASSERT_EQ(Xsmm().Name(), "xsmm");
  EXPECT_EQ(Handlers(), kHandlersAtStart);
}

// Where it asks OpenMP to bind threads, workers price other libraries on one processor. What stays is the one that we set.
TEST(XsmmTest, TheEnvironmentStaysThatOfTheProgram) {
  ASSERT_EQ(Xsmm().Name(), "xsmm");
  std::set<std::string> allowed = kEnvironmentAtStart;
  allowed.insert("GOMP_SPINCOUNT");
  EXPECT_THAT(Environment(), testing::IsSubsetOf(allowed));
}

}  // namespace
}  // namespace collage
