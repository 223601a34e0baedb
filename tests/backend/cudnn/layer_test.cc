#include "collage/backend/cudnn/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/cudnn/layers.h"

namespace collage {
namespace {

using cudnn::Operation;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing_backend;  // NOLINT(google-build-using-namespace)

using Kind = cudnn::ActivationKind;

Result<cudnn::Layer> Recognised(const std::vector<Expr>& parameters, const Expr& body) {
  return cudnn::RecogniseLayer(*ToOpSequence(*FunctionOf(parameters, body)->As<Function>()));
}

std::string Refusal(const std::vector<Expr>& parameters, const Expr& body) {
  const Result<cudnn::Layer> layer = Recognised(parameters, body);
  return layer ? "" : layer.error().message;
}

class CudnnLayerTest : public testing::Test {
 protected:
  const Expr x_ = Input({1, 4, 8, 8});
  const Expr z_ = Input({1, 6, 8, 8});
  const Expr convolution_ = CallOp("nn.conv2d", {x_, RandomConstant({6, 4, 3, 3}, 1)}, Pads({1, 1, 1, 1}));
  const Expr bias_ = RandomConstant({6, 1, 1}, 2);
};

TEST_F(CudnnLayerTest, ABiasAndATensorAreTakenInEitherOrder) {
  const Expr biased = CallOp("add", {convolution_, bias_});
  const Expr summed = CallOp("add", {z_, convolution_});
  for (const Expr& body : {CallOp("add", {biased, z_}), CallOp("add", {bias_, summed}),
                           CallOp("nn.bias_add", {summed, RandomConstant({6}, 2)}, {{"axis", 1}})}) {
    const Result<cudnn::Layer> layer = Recognised({x_, z_}, body);
    ASSERT_TRUE(layer) << layer.error().message;
    EXPECT_EQ(layer->operation, Operation::kConvolution);
    EXPECT_TRUE(layer->bias && layer->added && layer->weight);
    EXPECT_EQ(layer->activation.kind, Kind::kNone);
  }
  const Result<cudnn::Layer> alone = Recognised({x_}, convolution_);
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->HasTail());
  EXPECT_THAT(alone->window.pad_begin, ElementsAre(1, 1));
}

TEST_F(CudnnLayerTest, OneActivationIsTakenBehindTheSum) {
  const Expr sum = CallOp("add", {convolution_, bias_});
  struct Case {
    Expr body;
    Kind kind;
  };
  for (const Case& c : std::vector<Case>{{CallOp("nn.relu", {sum}), Kind::kRelu},
                                         {CallOp("nn.leaky_relu", {sum}, {{"alpha", 0.2}}), Kind::kRelu},
                                         {Clipped(sum, 0, 6), Kind::kRelu},
                                         {CallOp("sigmoid", {sum}), Kind::kSigmoid},
                                         {CallOp("tanh", {sum}), Kind::kTanh},
                                         {Swish(sum), Kind::kSwish},
                                         {GeluByErf(sum), Kind::kGeluByErf}}) {
    const Result<cudnn::Layer> layer = Recognised({x_}, c.body);
    ASSERT_TRUE(layer) << layer.error().message;
    EXPECT_EQ(layer->activation.kind, c.kind);
    EXPECT_TRUE(layer->bias);
  }
  EXPECT_EQ(Recognised({x_}, Clipped(sum, 0, 6))->activation.upper, 6);
  EXPECT_EQ(Recognised({x_}, CallOp("nn.leaky_relu", {sum}, {{"alpha", 0.2}}))->activation.slope, 0.2);
}

TEST_F(CudnnLayerTest, OtherTailsAreRefused) {
  const Expr relu = CallOp("nn.relu", {convolution_});
  for (const Expr& body : {CallOp("add", {relu, bias_}), CallOp("tanh", {relu}), Clipped(convolution_, -1, 1), Clipped(convolution_, 0, 0),
                           CallOp("multiply", {convolution_, bias_}), CallOp("add", {convolution_, convolution_}),
                           CallOp("add", {CallOp("add", {convolution_, bias_}), bias_}), CallOp("add", {convolution_, Scalar(1)}),
                           CallOp("nn.bias_add", {convolution_, RandomConstant({8}, 2)}, {{"axis", 2}})})
    EXPECT_THAT(Refusal({x_}, body), HasSubstr("cudnn: behind a convolution only"));
  EXPECT_THAT(Refusal({x_, z_}, CallOp("add", {CallOp("add", {convolution_, z_}), z_})), HasSubstr("add is not"));
}

TEST_F(CudnnLayerTest, TransposedConvolutionsAreGradientsOfConvolutions) {
  const Expr weight = RandomConstant({4, 6, 3, 3}, 1);
  const std::vector<int64_t> twice{2, 2};
  const Expr transposed = CallOp("nn.conv2d_transpose", {x_, weight}, {{"strides", twice}, {"output_padding", std::vector<int64_t>{1, 1}}});
  const Result<cudnn::Layer> layer = Recognised({x_}, CallOp("nn.relu", {transposed}));
  ASSERT_TRUE(layer) << layer.error().message;
  EXPECT_EQ(layer->operation, Operation::kTransposedConvolution);
  // A convolution of that result would give a larger plane than the data are.
  const Attributes dilated{{"dilation", twice}, {"output_padding", std::vector<int64_t>{1, 1}}};
  EXPECT_THAT(Refusal({x_}, CallOp("nn.conv2d_transpose", {x_, weight}, dilated)), HasSubstr("is not all that the windows"));
  const Attributes uneven{{"padding", std::vector<int64_t>{0, 1, 2, 0}}};
  EXPECT_THAT(Refusal({x_}, CallOp("nn.conv2d_transpose", {x_, weight}, uneven)), HasSubstr("padded alike"));
}

TEST_F(CudnnLayerTest, PoolingsArePaddedForTheirLastWindow) {
  const Expr x = Input({1, 4, 8, 8});
  Attributes pooling{{"pool_size", std::vector<int64_t>{3, 3}}, {"strides", std::vector<int64_t>{2, 2}}, {"ceil_mode", true}};
  const Result<cudnn::Layer> layer = Recognised({x}, CallOp("nn.max_pool2d", {x}, pooling));
  ASSERT_TRUE(layer) << layer.error().message;
  EXPECT_EQ(layer->operation, Operation::kMaxPooling);
  EXPECT_THAT(layer->window.pad_end, ElementsAre(1, 1));
  EXPECT_EQ(Recognised({x}, CallOp("nn.avg_pool2d", {x}, pooling))->operation, Operation::kAveragePooling);
  pooling.Set("count_include_pad", true);
  EXPECT_THAT(Refusal({x}, CallOp("nn.avg_pool2d", {x}, pooling)), HasSubstr("ceil_mode"));
  pooling.Set("ceil_mode", false);
  EXPECT_EQ(Recognised({x}, CallOp("nn.avg_pool2d", {x}, pooling))->operation, Operation::kAveragePoolingWithPadding);
  const Attributes dilated{{"pool_size", std::vector<int64_t>{2, 2}}, {"dilation", std::vector<int64_t>{2, 2}}};
  EXPECT_THAT(Refusal({x}, CallOp("nn.max_pool2d", {x}, dilated)), HasSubstr("no dilation"));
  const Attributes uneven{
      {"pool_size", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{1, 0, 0, 0}}, {"count_include_pad", true}};
  EXPECT_THAT(Refusal({x}, CallOp("nn.avg_pool2d", {x}, uneven)), HasSubstr("padded alike"));
}

TEST_F(CudnnLayerTest, GlobalPoolingsHaveOneWindow) {
  const Expr x = Input({1, 4, 7, 9});
  const Result<cudnn::Layer> layer = Recognised({x}, CallOp("nn.global_avg_pool2d", {x}));
  ASSERT_TRUE(layer) << layer.error().message;
  EXPECT_THAT(layer->window.kernel, ElementsAre(7, 9));
  EXPECT_THAT(Refusal({x}, CallOp("nn.relu", {CallOp("nn.global_max_pool2d", {x})})), HasSubstr("behind a pooling nothing"));
}

TEST_F(CudnnLayerTest, OtherOperatorsAndTypesAreRefused) {
  EXPECT_THAT(Refusal({x_}, CallOp("nn.relu", {x_})), HasSubstr("nn.relu is neither a convolution nor a pooling"));
  const Expr wide = MakeVar("x", TensorType{{1, 4, 8, 8}, DType::kFloat64});
  EXPECT_THAT(Refusal({wide}, CallOp("nn.global_avg_pool2d", {wide})), HasSubstr("float32 and float16"));
}

}  // namespace
}  // namespace collage
