// Generated code on tensors of each type, against the reference.

#include "tests/backend/cast_values.h"
#include "tests/backend/device_harness.h"
#include "tests/backend/generated_functions.h"
#include "tests/backend/opencl/opencl_test.h"
#include "tests/support/log_lines.h"

namespace collage {
namespace {

using testing_backend::CallOp;
using testing_backend::FunctionOf;

using OpenClTypesTest = testing_backend::OpenClTest;

TEST_F(OpenClTypesTest, EveryVariantComputesWhatTheReferenceDoes) {
  const LogLines log;
  for (const auto& [name, function] : testing_backend::GeneratedFunctions()) {
    SCOPED_TRACE(name);
    ExpectAgreement(function);
  }
  EXPECT_EQ(log.Count("built again with the driver's declarations"), 0u);
}

TEST_F(OpenClTypesTest, EveryNumberIsCastAsTheReferenceDoes) {
  testing_backend::ForEachCast([this](const Expr& function, const Tensor& values) {
    const std::unique_ptr<Kernel> kernel = Compiled(function, kBuffer);
    ASSERT_TRUE(kernel);
    testing_backend::ExpectBits(testing_backend::RunOnDevice(*kernel, {values}), function, values);
  });
}

/// A tensor between two kernels has two bytes an element, too.
TEST_F(OpenClTypesTest, ASavedKernelOfFloat16ComputesTheSame) {
  const Expr x = testing_backend::Input({4, 16});
  const Expr hidden = CallOp("nn.relu", {CallOp("nn.dense", {x, testing_backend::RandomConstant({32, 16}, 7)})});
  const Expr whole = FunctionOf({x}, CallOp("nn.softmax", {hidden}));
  const Expr function = InType(*whole->As<Function>(), DType::kFloat16);
  const std::unique_ptr<Kernel> kernel = Compiled(function, kBuffer);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->workspace_bytes(), size_t{4} * 32 * sizeof(uint16_t));
  const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(kernel->Serialize(), device_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<Tensor> inputs = testing_backend::RandomInputs(function);
  EXPECT_TRUE(BitwiseEqual(testing_backend::RunOnDevice(**loaded, inputs), testing_backend::RunOnDevice(*kernel, inputs)));
  ExpectAgreementOf(**loaded, function, 3);
}

/// Textures are of floats.
TEST_F(OpenClTypesTest, ConstantsOfOtherTypesLieInBuffers) {
  const Expr x = testing_backend::Input({3, 64});
  const Expr whole = FunctionOf({x}, CallOp("nn.dense", {x, testing_backend::RandomConstant({8, 64}, 8)}));
  const Expr function = InType(*whole->As<Function>(), DType::kFloat16);
  EXPECT_EQ(NamesOf(function), std::vector<std::string>{kBuffer});
}

TEST_F(OpenClTypesTest, TypesWithoutCodeAreNamed) {
  const auto reason = [this](const char* op, DType dtype) {
    return backend_->Rules().supports(CallOp(op, {MakeVar("x", TensorType{{2, 3}, dtype})})).reason;
  };
  EXPECT_EQ(reason("transpose", DType::kFloat64), "opencl: tensors of float64");
  EXPECT_EQ(reason("abs", DType::kInt32), "opencl: no code for abs of int32");
  EXPECT_EQ(reason("transpose", DType::kInt32), "");
  EXPECT_EQ(reason("nn.softmax", DType::kBFloat16), "");
}

}  // namespace
}  // namespace collage
