#include "tests/backend/cudnn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collage/ir/permitted_precision.h"
#include "tests/backend/device_harness.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing_backend;  // NOLINT(google-build-using-namespace)

class CudnnTest : public DeviceTest {
 protected:
  CudnnTest() : DeviceTest("cudnn", kGpu) {}
};

TEST_F(CudnnTest, ConvolutionsAgreeWithTheReference) {
  struct Case {
    Shape data, weight;
    Attributes attributes;
  };
  const std::vector<int64_t> two{2, 2};
  const std::vector<int64_t> same{1, 1, 1, 1};
  for (const Case& c : std::vector<Case>{{{2, 8, 7, 9}, {12, 8, 1, 1}, {}},
                                         {{1, 64, 28, 28}, {64, 64, 3, 3}, Pads(same)},
                                         {{2, 3, 9, 8}, {5, 3, 3, 3}, Pads(same)},
                                         {{1, 3, 64, 64}, {16, 3, 7, 7}, {{"strides", two}, {"padding", std::vector<int64_t>{3, 3, 3, 3}}}},
                                         {{1, 4, 11, 10}, {6, 4, 3, 2}, {{"strides", std::vector<int64_t>{2, 3}}}},
                                         {{1, 4, 11, 10}, {6, 4, 3, 3}, {{"strides", two}, {"padding", std::vector<int64_t>{0, 1, 1, 0}}}},
                                         {{1, 4, 11, 10}, {6, 4, 3, 3}, {{"dilation", std::vector<int64_t>{2, 1}}}},
                                         {{2, 6, 8, 8}, {4, 3, 3, 3}, {{"groups", 2}, {"padding", std::vector<int64_t>{1, 0, 1, 0}}}},
                                         {{1, 16, 14, 14}, {16, 1, 3, 3}, {{"groups", 16}, {"padding", same}}},
                                         {{1, 16, 1, 1}, {5, 16, 1, 1}, {}},
                                         {{1, 1, 8, 8}, {3, 1, 2, 2}, {}}}) {
    SCOPED_TRACE(ToString(c.data) + " " + ToString(c.weight));
    const Expr x = Input(c.data);
    ExpectAgreement(FunctionOf({x}, CallOp("nn.conv2d", {x, RandomConstant(c.weight, 3)}, c.attributes)));
  }
}

TEST_F(CudnnTest, WeightsMayBeGiven) {
  const Expr x = Input({1, 3, 6, 6});
  const Expr w = Input({4, 3, 3, 3});
  ExpectAgreement(FunctionOf({x, w}, CallOp("nn.conv2d", {x, w})));
  ExpectAgreement(FunctionOf({w, x}, CallOp("nn.relu", {CallOp("nn.conv2d", {x, w})})));
}

TEST_F(CudnnTest, SumsAndActivationsAreComputedBehindAConvolution) {
  const Expr x = Input({2, 16, 10, 12});
  const Expr z = Input({2, 24, 10, 12});
  const Expr bare = CallOp("nn.conv2d", {x, RandomConstant({24, 16, 3, 3}, 1)}, Pads({1, 1, 1, 1}));
  const Expr biased = CallOp("nn.bias_add", {bare, RandomConstant({24}, 2)});
  const Expr summed = CallOp("add", {z, CallOp("add", {bare, RandomConstant({1, 24, 1, 1}, 2)})});
  for (const Expr& body : {biased, CallOp("nn.relu", {bare}), CallOp("nn.relu", {biased}), Clipped(biased, 0, 1),
                           CallOp("sigmoid", {biased}), CallOp("tanh", {biased})})
    ExpectAgreement(FunctionOf({x}, body));
  for (const Expr& body : {CallOp("add", {bare, z}), summed, CallOp("nn.relu", {summed}), CallOp("nn.relu", {CallOp("add", {bare, z})})})
    ExpectAgreement(FunctionOf({x, z}, body));
  // The library generates kernels of these, for channels that lie last.
  for (const Expr& body : {CallOp("nn.leaky_relu", {biased}, {{"alpha", 0.2}}), Swish(biased), GeluByErf(biased), Swish(bare)})
    ExpectAgreement(FunctionOf({x}, body));
}

TEST_F(CudnnTest, OneTensorMayBeConvolvedAndAdded) {
  const Expr x = Input({1, 8, 9, 9});
  const Expr convolved = CallOp("nn.conv2d", {x, RandomConstant({8, 8, 3, 3}, 1)}, Pads({1, 1, 1, 1}));
  ExpectAgreement(FunctionOf({x}, CallOp("nn.relu", {CallOp("add", {convolved, x})})));
  ExpectAgreement(FunctionOf({x}, CallOp("add", {convolved, RandomConstant({1, 8, 9, 9}, 2)})));
}

TEST_F(CudnnTest, VolumesAreConvolved) {
  const Expr x = Input({1, 4, 6, 9, 8});
  const std::vector<int64_t> same{1, 1, 1, 1, 1, 1};
  const Expr convolved = CallOp("nn.conv3d", {x, RandomConstant({6, 4, 3, 3, 3}, 1)}, Pads(same));
  ExpectAgreement(FunctionOf({x}, convolved));
  ExpectAgreement(FunctionOf({x}, CallOp("nn.relu", {CallOp("add", {convolved, RandomConstant({6, 1, 1, 1}, 2)})})));
  const Attributes depthwise{{"groups", 4}, {"strides", std::vector<int64_t>{1, 2, 2}}};
  ExpectAgreement(FunctionOf({x}, CallOp("nn.conv3d", {x, RandomConstant({4, 1, 3, 3, 3}, 1)}, depthwise)));
}

TEST_F(CudnnTest, TransposedConvolutionsAgreeWithTheReference) {
  const std::vector<int64_t> two{2, 2};
  const Expr x = Input({1, 8, 7, 7});
  for (const Attributes& attributes :
       {Attributes{{"strides", two}, {"padding", std::vector<int64_t>{1, 1, 1, 1}}},
        Attributes{{"padding", std::vector<int64_t>{2, 1, 2, 1}}},
        Attributes{{"strides", two}, {"output_padding", std::vector<int64_t>{1, 1}}}, Attributes{{"dilation", two}}}) {
    ExpectAgreement(FunctionOf({x}, CallOp("nn.conv2d_transpose", {x, RandomConstant({8, 6, 4, 4}, 1)}, attributes)));
  }
  const Expr grouped = CallOp("nn.conv2d_transpose", {x, RandomConstant({8, 3, 4, 4}, 1)}, {{"groups", 2}, {"strides", two}});
  ExpectAgreement(FunctionOf({x}, grouped));
  const Expr plain = CallOp("nn.conv2d_transpose", {x, RandomConstant({8, 8, 4, 4}, 1)}, {{"strides", two}});
  ExpectAgreement(FunctionOf({x}, CallOp("nn.relu", {CallOp("add", {plain, RandomConstant({8, 1, 1}, 2)})})));
  const Expr volume = Input({1, 8, 4, 5, 5});
  const Attributes twice{{"strides", std::vector<int64_t>{2, 2, 2}}};
  ExpectAgreement(FunctionOf({volume}, CallOp("nn.conv3d_transpose", {volume, RandomConstant({8, 6, 3, 3, 3}, 1)}, twice)));
}

TEST_F(CudnnTest, PoolingsAgreeWithTheReference) {
  const Expr x = Input({2, 8, 13, 11});
  const std::vector<int64_t> window{3, 2};
  const std::vector<int64_t> pads{1, 0, 1, 1};
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const bool ceil_mode : {false, true}) {
      SCOPED_TRACE(op);
      const Attributes attributes{
          {"pool_size", window}, {"strides", std::vector<int64_t>{2, 2}}, {"padding", pads}, {"ceil_mode", ceil_mode}};
      ExpectAgreement(FunctionOf({x}, CallOp(op, {x}, attributes)));
    }
  }
  const Attributes counting{{"pool_size", window}, {"padding", std::vector<int64_t>{1, 1, 1, 1}}, {"count_include_pad", true}};
  ExpectAgreement(FunctionOf({x}, CallOp("nn.avg_pool2d", {x}, counting)));
  for (const char* op : {"nn.global_avg_pool2d", "nn.global_max_pool2d"}) ExpectAgreement(FunctionOf({x}, CallOp(op, {x})));
  const Expr volume = Input({1, 4, 6, 7, 8});
  const Attributes halves{{"pool_size", std::vector<int64_t>{2, 2, 2}}, {"strides", std::vector<int64_t>{2, 2, 2}}};
  for (const char* op : {"nn.max_pool3d", "nn.avg_pool3d"}) ExpectAgreement(FunctionOf({volume}, CallOp(op, {volume}, halves)));
}

TEST_F(CudnnTest, LongSumsKeepTheAccuracyOfFloat32) {
  const Expr x = Input({1, 512, 14, 14});
  ExpectAgreement(FunctionOf({x}, CallOp("nn.conv2d", {x, RandomConstant({64, 512, 3, 3}, 1)}, Pads({1, 1, 1, 1}))));
}

TEST_F(CudnnTest, Float16IsSummedInFloat32) {
  const auto constant = [](Shape shape, uint64_t seed) {
    Tensor tensor(TensorType{std::move(shape), DType::kFloat16});
    FillRandom(tensor, seed);
    return MakeConstant(tensor);
  };
  const Expr x = MakeVar("x", TensorType{{1, 64, 14, 14}, DType::kFloat16});
  const Expr z = MakeVar("x", TensorType{{1, 32, 14, 14}, DType::kFloat16});
  const Expr convolved = CallOp("nn.conv2d", {x, constant({32, 64, 3, 3}, 1)}, Pads({1, 1, 1, 1}));
  const Expr biased = CallOp("add", {convolved, constant({32, 1, 1}, 2)});
  ExpectAgreement(FunctionOf({x}, convolved));
  ExpectAgreement(FunctionOf({x}, CallOp("nn.relu", {biased})));
  ExpectAgreement(FunctionOf({x, z}, CallOp("nn.relu", {CallOp("add", {biased, z})})));
  ExpectAgreement(FunctionOf({x}, CallOp("nn.max_pool2d", {x}, {{"pool_size", std::vector<int64_t>{3, 3}}})));
}

TEST_F(CudnnTest, VariantsAreEnginesWithTheirKnobsAndOthersAreRefused) {
  const Expr x = Input({1, 16, 14, 14});
  const Expr function = FunctionOf({x}, CallOp("nn.conv2d", {x, RandomConstant({16, 16, 3, 3}, 1)}));
  const std::vector<Variant> variants = VariantsOf(function);
  std::vector<std::string> names;
  for (const Variant& variant : variants) {
    names.push_back(variant.name);
    EXPECT_THAT(variant.name, HasSubstr("engine"));
    EXPECT_EQ(variant.outputs[0].ToString(), "plain");
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const char* name : {"engine", "engine0(", "engine0(2)", "engine0(2=1,)", "engine0()", "engine0x", "heuristic0", ""}) {
    const Variant absent{name, {Layout()}, {Layout()}};
    const Result<std::unique_ptr<Kernel>> kernel = backend_->Compile(*function->As<Function>(), device_, absent);
    ASSERT_FALSE(kernel) << name;
    EXPECT_THAT(kernel.error().message, HasSubstr("cudnn: there is no variant"));
  }
  EXPECT_FALSE(backend_->Compile(*function->As<Function>(), device_, {"engine99999", {Layout()}, {Layout()}}));
}

TEST_F(CudnnTest, ChannelsAreLastWhereTensorCoresWantThemAndWhereThereIsNoEngineOtherwise) {
  const auto outputs = [&](DType dtype, bool swish) {
    const Expr x = MakeVar("x", TensorType{{1, 16, 14, 14}, dtype});
    const Expr w = MakeVar("w", TensorType{{16, 16, 3, 3}, dtype});
    Expr body = CallOp("nn.conv2d", {x, w});
    if (swish) body = CallOp("multiply", {body, CallOp("sigmoid", {body})});
    std::set<std::string> layouts;
    for (const Variant& variant : VariantsOf(FunctionOf({x, w}, body))) layouts.insert(variant.outputs[0].ToString());
    return layouts;
  };
  EXPECT_THAT(outputs(DType::kFloat32, false), ElementsAre("plain"));
  EXPECT_THAT(outputs(DType::kFloat32, true), ElementsAre("acdb"));
  EXPECT_THAT(outputs(DType::kFloat16, false), ElementsAre("acdb", "plain"));
}

TEST_F(CudnnTest, TensorCoresRoundFactorsByPermitOnly) {
  const Expr x = Input({1, 32, 14, 14});
  const Expr function = FunctionOf({x}, CallOp("nn.conv2d", {x, RandomConstant({32, 32, 3, 3}, 1)}));
  const Expr permitted = WithPrecision(function, *Precision::Parse("bf16"));
  const auto rounding = [&](const Expr& of) {
    std::vector<Variant> variants = VariantsOf(of);
    std::erase_if(variants, [](const Variant& variant) { return !variant.uses_precision; });
    return variants;
  };
  EXPECT_TRUE(rounding(function).empty());
  ASSERT_FALSE(rounding(permitted).empty());
  for (const Variant& variant : rounding(permitted)) {
    SCOPED_TRACE(variant.name);
    EXPECT_TRUE(variant.name.starts_with("tf32/"));
    const std::unique_ptr<Kernel> kernel = Compiled(permitted, variant);
    ASSERT_TRUE(kernel);
    const std::vector<Tensor> inputs = RandomInputs(function);
    const Place place(*kernel, inputs);
    ASSERT_TRUE(place.Run(*kernel));
    // Of 10 bits for each factor, and of none at all.
    const double difference = Compare(place.Result(), Reference(function, inputs)).difference;
    EXPECT_LT(difference, 4 * 0x1p-10);
    EXPECT_GT(difference, 0x1p-16);
  }
}

TEST_F(CudnnTest, AKernelCanBeRecordedAndGivenAgain) {
  const Expr x = Input({1, 16, 14, 14});
  const Expr convolved = CallOp("nn.conv2d", {x, RandomConstant({24, 16, 3, 3}, 1)});
  const Expr function = FunctionOf({x}, CallOp("nn.relu", {CallOp("add", {convolved, RandomConstant({24, 1, 1}, 2)})}));
  ExpectRecordable(function);
}

TEST_F(CudnnTest, ATwinComputesTheSameWithTheWeightsOfTheFirst) {
  const Expr x = Input({1, 16, 14, 14});
  ExpectTwinsShareWeights(FunctionOf({x}, CallOp("nn.conv2d", {x, RandomConstant({24, 16, 3, 3}, 1)})));
}

TEST_F(CudnnTest, FunctionsThatAreNoLayerHaveNoVariants) {
  const Expr x = Input({1, 4, 8, 8});
  const Expr convolved = CallOp("nn.conv2d", {x, RandomConstant({4, 4, 3, 3}, 1)}, Pads({1, 1, 1, 1}));
  for (const Expr& body : {CallOp("nn.relu", {x}), CallOp("multiply", {convolved, x}), CallOp("tanh", {CallOp("nn.relu", {convolved})})})
    EXPECT_TRUE(VariantsOf(FunctionOf({x}, body)).empty());
  EXPECT_TRUE(backend_->Variants(*FunctionOf({x}, convolved)->As<Function>(), Device{}).empty());
}

TEST_F(CudnnTest, ADeviceHasOneContextAndTheVersionNamesLibraryAndDriver) {
  EXPECT_EQ(backend_->Open(device_).value(), backend_->Open(device_).value());
  EXPECT_THAT(backend_->Probe(device_).version, HasSubstr(" with driver "));
  EXPECT_FALSE(backend_->Probe(Device{}).present);
}

}  // namespace
}  // namespace collage
