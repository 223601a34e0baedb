#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/device_harness.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_backend::CallOp;
using testing_backend::FunctionOf;
using testing_backend::Input;
using testing_backend::RandomConstant;
using testing_backend::Scalar;

class ClblastTest : public testing_backend::DeviceTest {
 protected:
  ClblastTest() : DeviceTest("clblast", testing_backend::kOpenCl) {}

  /// Every variant against the reference; answers the variants' names.
  [[nodiscard]] std::vector<std::string> Checked(const Expr& function) const {
    ExpectAgreement(function);
    return NamesOf(function);
  }
};

TEST_F(ClblastTest, ProductsBroadcastTheirBatches) {
  struct Case {
    Shape a, b;
    bool transpose_a, transpose_b;
    std::vector<std::string> variants;
  };
  for (const Case& c : std::vector<Case>{{{3, 4, 5}, {5, 7}, false, false, {"gemm"}},
                                         {{2, 1, 4, 5}, {3, 7, 5}, false, true, {"gemm", "gemm_batched"}},
                                         {{5, 4}, {5, 7}, true, false, {"gemm"}},
                                         {{2, 5, 4}, {2, 7, 5}, true, true, {"gemm", "gemm_batched"}},
                                         {{2, 5, 4}, {5, 7}, true, false, {"gemm", "gemm_batched"}},
                                         {{4, 5}, {2, 5, 7}, false, false, {"gemm", "gemm_batched"}},
                                         {{130, 70}, {70, 65}, false, false, {"gemm"}}}) {
    const Expr a = Input(c.a);
    const Expr b = Input(c.b);
    const Expr product = CallOp("nn.matmul", {a, b}, {{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}});
    EXPECT_EQ(Checked(FunctionOf({a, b}, product)), c.variants);
  }
  const Expr a = Input({4, 3, 5});
  const Expr b = Input({4, 6, 5});
  EXPECT_THAT(Checked(FunctionOf({a, b}, CallOp("nn.batch_matmul", {a, b}))), ElementsAre("gemm", "gemm_batched"));
}

TEST_F(ClblastTest, RowsAndColumnsAreProductsWithAVector) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Attributes attributes{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
      const Expr row = Input(transpose_a ? Shape{20, 1} : Shape{1, 20});
      const Expr column = Input(transpose_b ? Shape{1, 20} : Shape{20, 1});
      const Expr left = RandomConstant(transpose_a ? Shape{20, 9} : Shape{9, 20}, 2);
      const Expr right = RandomConstant(transpose_b ? Shape{9, 20} : Shape{20, 9}, 3);
      EXPECT_THAT(Checked(FunctionOf({row}, CallOp("nn.matmul", {row, right}, attributes))), ElementsAre("gemv", "gemm"));
      EXPECT_THAT(Checked(FunctionOf({column}, CallOp("nn.matmul", {left, column}, attributes))), ElementsAre("gemv", "gemm"));
    }
  }
}

TEST_F(ClblastTest, AFactorAndASumAreAlphaAndBeta) {
  const Expr x = Input({6, 20});
  const Expr sum = Input({6, 17});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  const Expr scaled = CallOp("divide", {dense, Scalar(8)});
  for (const Expr& body : {CallOp("multiply", {Scalar(0.125), dense}), scaled}) (void)Checked(FunctionOf({x}, body));
  for (const Expr& body : {CallOp("add", {dense, sum}), CallOp("add", {sum, scaled})}) {
    const Expr function = FunctionOf({x, sum}, body);
    EXPECT_THAT(Checked(function), ElementsAre("gemm"));
    EXPECT_EQ(Compiled(function, backend_->Variants(*function->As<Function>(), device_).at(0))->accumulated_input(), 1u);
  }
}

TEST_F(ClblastTest, ConvolutionsAreProductsOfTheImageAsAMatrix) {
  struct Case {
    Shape data, weight;
    Attributes attributes;
    std::vector<std::string> variants;
  };
  const auto pads = [](std::vector<int64_t> padding) { return Attributes{{"padding", std::move(padding)}}; };
  for (const Case& c :
       std::vector<Case>{{{2, 8, 7, 9}, {12, 8, 1, 1}, {}, {"gemm", "convgemm"}},
                         {{2, 3, 9, 8}, {5, 3, 3, 3}, pads({1, 1, 1, 1}), {"im2col", "convgemm"}},
                         {{1, 4, 11, 10}, {6, 4, 3, 2}, {{"strides", std::vector<int64_t>{2, 3}}}, {"im2col", "convgemm"}},
                         {{1, 4, 11, 10}, {6, 4, 3, 3}, {{"dilation", std::vector<int64_t>{2, 1}}}, {"im2col", "convgemm"}},
                         {{2, 6, 8, 8}, {4, 3, 3, 3}, {{"groups", 2}, {"padding", std::vector<int64_t>{1, 0, 1, 0}}}, {"im2col"}},
                         {{1, 6, 8, 8}, {4, 3, 1, 1}, {{"groups", 2}}, {"gemm"}},
                         {{1, 2, 8, 8}, {3, 2, 1, 1}, {{"strides", std::vector<int64_t>{2, 2}}}, {"im2col", "convgemm"}},
                         // Of what is behind the image no window takes anything.
                         {{1, 2, 8, 8},
                          {3, 2, 2, 2},
                          {{"strides", std::vector<int64_t>{3, 3}}, {"padding", std::vector<int64_t>{0, 0, 1, 1}}},
                          {"im2col", "convgemm"}}}) {
    SCOPED_TRACE(ToString(c.data) + " " + ToString(c.weight));
    const Expr x = Input(c.data);
    EXPECT_EQ(Checked(FunctionOf({x}, CallOp("nn.conv2d", {x, RandomConstant(c.weight, 3)}, c.attributes))), c.variants);
  }
  const Expr x = Input({1, 3, 6, 6});
  const Expr w = Input({4, 3, 3, 3});
  (void)Checked(FunctionOf({x, w}, CallOp("nn.conv2d", {x, w})));
}

TEST_F(ClblastTest, OtherFunctionsAreDeclined) {
  const Expr x = Input({4, 4});
  const Expr image = Input({1, 4, 8, 8});
  const auto none = [&](const Expr& parameter, const Expr& body) { EXPECT_TRUE(VariantsOf(FunctionOf({parameter}, body)).empty()); };
  none(x, CallOp("nn.relu", {x}));
  none(x, CallOp("nn.relu", {CallOp("nn.matmul", {x, x})}));
  none(x, CallOp("add", {CallOp("nn.matmul", {x, RandomConstant({4, 4}, 1)}), x}));
  none(x, CallOp("add", {CallOp("nn.matmul", {x, x}), RandomConstant({4, 4}, 1)}));
  none(image, CallOp("nn.conv2d", {image, RandomConstant({4, 1, 3, 3}, 1)}, {{"groups", 4}}));
  none(image, CallOp("nn.conv2d", {image, RandomConstant({4, 4, 2, 2}, 1)}, {{"padding", std::vector<int64_t>{0, 0, 1, 1}}}));
}

TEST_F(ClblastTest, BackendsOfADeviceShareItsContext) {
  const Result<const Backend*> opencl = FindBackend("opencl", device_);
  ASSERT_TRUE(opencl) << opencl.error().message;
  EXPECT_EQ(backend_->Open(device_).value(), (*opencl)->Open(device_).value());
  EXPECT_THAT(backend_->Probe(device_).version, HasSubstr(" with driver "));
  EXPECT_EQ(backend_->Probe(Device{}).reason, "it runs on OpenCL devices only, which need a driver such as pocl-opencl-icd");
}

}  // namespace
}  // namespace collage
