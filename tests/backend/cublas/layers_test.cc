#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/tensor/narrow.h"
#include "tests/backend/device_harness.h"
#include "tests/backend/written_out.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing_backend;  // NOLINT(google-build-using-namespace)

class CublasTest : public DeviceTest {
 protected:
  CublasTest() : DeviceTest("cublas", kGpu) {}
};

TEST_F(CublasTest, ProductsAgreeWithTheReferenceForEveryTransposeAndBatch) {
  struct Case {
    Shape a, b;
  };
  for (const Case& c : std::vector<Case>{{{4, 5}, {5, 7}},
                                         {{3, 4, 5}, {5, 7}},
                                         {{4, 5}, {3, 5, 7}},
                                         {{2, 3, 4, 5}, {2, 3, 5, 7}},
                                         {{2, 3, 4, 5}, {1, 1, 5, 7}},
                                         {{1, 4, 5}, {6, 5, 7}},
                                         {{64, 96}, {96, 128}},
                                         {{130, 70}, {70, 65}},
                                         {{3, 130, 70}, {3, 70, 65}}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        Shape shape_a = c.a;
        Shape shape_b = c.b;
        if (transpose_a) std::swap(shape_a[shape_a.size() - 1], shape_a[shape_a.size() - 2]);
        if (transpose_b) std::swap(shape_b[shape_b.size() - 1], shape_b[shape_b.size() - 2]);
        SCOPED_TRACE(ToString(shape_a) + (transpose_a ? " transposed, " : ", ") + ToString(shape_b) + (transpose_b ? " transposed" : ""));
        const Expr a = Input(shape_a);
        const Expr b = Input(shape_b);
        ExpectAgreement(FunctionOf({a, b}, CallOp("nn.matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}})));
      }
    }
  }
}

TEST_F(CublasTest, BatchMatmulMultipliesByTheTransposeOfEachMatrix) {
  for (const int64_t batches : {1, 4}) {
    const Expr a = Input({batches, 3, 5});
    const Expr b = Input({4, 6, 5});
    ExpectAgreement(FunctionOf({a, b}, CallOp("nn.batch_matmul", {a, b})));
  }
}

TEST_F(CublasTest, RowsColumnsAndVectorsAreProducts) {
  for (const Shape& shape : std::vector<Shape>{{1, 300}, {300}, {1, 1, 300}}) {
    const Expr row = Input(shape);
    const Expr dense = CallOp("nn.dense", {row, RandomConstant({129, 300}, 2)});
    ExpectAgreement(FunctionOf({row}, dense));
    ExpectAgreement(FunctionOf({row}, CallOp("nn.relu", {CallOp("add", {dense, RandomConstant({129}, 3)})})));
  }
  const Expr column = Input({300, 1});
  ExpectAgreement(FunctionOf({column}, CallOp("nn.matmul", {RandomConstant({129, 300}, 2), column})));
  const Expr a = Input({1, 300});
  ExpectAgreement(FunctionOf({a, column}, CallOp("nn.matmul", {a, column})));
}

TEST_F(CublasTest, AFactorABiasASumAndAnActivationAreComputedInEveryCombination) {
  for (const Shape& shape : std::vector<Shape>{{6, 20}, {2, 65, 70}}) {
    const Expr x = Input(shape);
    Shape result = shape;
    result.back() = 33;
    const Expr sum = Input(result);
    const Expr dense = CallOp("nn.dense", {x, RandomConstant({33, shape.back()}, 2)});
    for (unsigned parts = 0; parts < 24; ++parts) {
      SCOPED_TRACE(parts);
      Expr body = dense;
      if ((parts & 1U) != 0) body = CallOp("divide", {body, Scalar(8)});
      if ((parts & 2U) != 0) body = CallOp("nn.bias_add", {body, RandomConstant({33}, 3)}, {{"axis", -1}});
      if ((parts & 4U) != 0) body = CallOp("add", {sum, body});
      if (parts / 8 == 1) body = CallOp("nn.relu", {body});
      if (parts / 8 == 2) body = GeluByTanh(body);
      ExpectAgreement((parts & 4U) != 0 ? FunctionOf({x, sum}, body) : FunctionOf({x}, body));
    }
  }
}

TEST_F(CublasTest, BatchesShareABiasAndHaveASumOfTheirOwn) {
  const Expr a = Input({3, 17, 20});
  const Expr b = Input({3, 20, 33});
  const Expr sum = Input({3, 17, 33});
  const Expr scaled = CallOp("multiply", {CallOp("nn.matmul", {a, b}), Scalar(0.25)});
  const Expr biased = CallOp("add", {scaled, RandomConstant({33}, 3)});
  ExpectAgreement(FunctionOf({a, b}, CallOp("nn.relu", {biased})));
  ExpectAgreement(FunctionOf({a, b, sum}, CallOp("add", {biased, sum})));
  ExpectAgreement(FunctionOf({a, b}, CallOp("add", {scaled, RandomConstant({3, 17, 33}, 4)})));
}

TEST_F(CublasTest, OneTensorMayBeBothOperandsAndWhatIsAdded) {
  const Expr x = Input({48, 48});
  ExpectAgreement(FunctionOf({x}, CallOp("add", {CallOp("nn.matmul", {x, x}), x})));
}

TEST_F(CublasTest, DeepProductsKeepTheAccuracyOfFloat32) {
  const Expr x = Input({2, 25088});
  ExpectAgreement(FunctionOf({x}, CallOp("nn.dense", {x, RandomConstant({64, 25088}, 2)})));
}

TEST_F(CublasTest, Float16IsSummedInFloat32) {
  const auto constant = [](Shape shape, uint64_t seed) {
    Tensor tensor(TensorType{std::move(shape), DType::kFloat16});
    FillRandom(tensor, seed);
    return MakeConstant(tensor);
  };
  const Expr x = MakeVar("x", TensorType{{24, 512}, DType::kFloat16});
  const Expr sum = MakeVar("x", TensorType{{24, 40}, DType::kFloat16});
  const Expr dense = CallOp("nn.dense", {x, constant({40, 512}, 2)});
  const Expr scaled = CallOp("multiply", {dense, MakeConstant(ScalarOf(0.125, DType::kFloat16))});
  const Expr biased = CallOp("add", {scaled, constant({40}, 3)});
  ExpectAgreement(FunctionOf({x}, dense));
  ExpectAgreement(FunctionOf({x}, CallOp("nn.relu", {biased})));
  ExpectAgreement(FunctionOf({x, sum}, CallOp("add", {biased, sum})));
}

TEST_F(CublasTest, VariantsAreTheProposalsOfTheLibraryInItsOrder) {
  const Expr x = Input({512, 512});
  const Expr function = FunctionOf({x}, CallOp("nn.dense", {x, RandomConstant({512, 512}, 2)}));
  const std::vector<Variant> variants = VariantsOf(function);
  ASSERT_FALSE(variants.empty());
  for (size_t i = 0; i < variants.size(); ++i) {
    EXPECT_EQ(variants[i].name, "heuristic" + std::to_string(i));
    EXPECT_EQ(variants[i].inputs, std::vector<Layout>{Layout()});
    EXPECT_EQ(variants[i].outputs, std::vector<Layout>{Layout()});
  }
  const Variant absent{"heuristic99", {Layout()}, {Layout()}};
  const Result<std::unique_ptr<Kernel>> kernel = backend_->Compile(*function->As<Function>(), device_, absent);
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("there is no variant 'heuristic99'"));
}

TEST_F(CublasTest, AKernelCanBeRecordedAndGivenAgain) {
  const Expr x = Input({65, 300});
  const Expr biased = CallOp("add", {CallOp("nn.dense", {x, RandomConstant({129, 300}, 2)}), RandomConstant({129}, 3)});
  const Expr function = FunctionOf({x}, CallOp("nn.relu", {biased}));
  ExpectRecordable(function);
}

TEST_F(CublasTest, ATwinComputesTheSameWithTheWeightsOfTheFirst) {
  const Expr x = Input({65, 300});
  ExpectTwinsShareWeights(FunctionOf({x}, CallOp("nn.dense", {x, RandomConstant({129, 300}, 2)})));
}

TEST_F(CublasTest, FunctionsThatAreNoLayerHaveNoVariants) {
  const Expr x = Input({4, 4});
  for (const Expr& body : {CallOp("nn.relu", {x}), CallOp("tanh", {CallOp("nn.matmul", {x, x})}),
                           CallOp("add", {CallOp("nn.matmul", {x, x}), RandomConstant({4, 1}, 1)}), GeluByErf(CallOp("nn.matmul", {x, x}))})
    EXPECT_TRUE(VariantsOf(FunctionOf({x}, body)).empty());
}

TEST_F(CublasTest, ADeviceHasOneContextAndTheVersionNamesLibraryAndDriver) {
  EXPECT_EQ(backend_->Open(device_).value(), backend_->Open(device_).value());
  EXPECT_THAT(backend_->Probe(device_).version, HasSubstr(" with driver "));
  EXPECT_THAT(backend_->Probe(device_).version, Not(StartsWith("0.")));
  const Expr x = Input({4, 4});
  const Expr function = FunctionOf({x}, CallOp("nn.matmul", {x, x}));
  const std::unique_ptr<Kernel> kernel = Compiled(function, VariantsOf(function).at(0));
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->context(), backend_->Open(device_).value());
}

}  // namespace
}  // namespace collage
