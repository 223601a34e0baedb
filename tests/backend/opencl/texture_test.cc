// Constants in textures: what they compute, and the memory that they take.

#include <gtest/gtest.h>

#include "tests/backend/device_harness.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using testing_backend::CallOp;
using testing_backend::FunctionOf;
using testing_backend::Input;
using testing_backend::RandomConstant;

class OpenClTextureTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const Backend*> found = FindBackend("opencl", device_);
    if (!found) GTEST_SKIP() << found.error().message;
    backend_ = *found;
    context_ = backend_->Open(device_).value();
    if (VariantsOf(TwoProducts()).size() < 2) GTEST_SKIP() << context_->name() << " has no images of floats";
  }

  /// Weights of 1.5 rows of a texture, and of less than one.
  static Expr TwoProducts() {
    const Expr x = Input({3, 64});
    const Expr hidden = CallOp("nn.relu", {CallOp("nn.dense", {x, RandomConstant({96, 64}, 7)})});
    return FunctionOf({x}, CallOp("nn.dense", {hidden, RandomConstant({8, 96}, 8)}));
  }

  [[nodiscard]] std::vector<Variant> VariantsOf(const Expr& function) const {
    return backend_->Variants(*function->As<Function>(), device_);
  }

  [[nodiscard]] std::unique_ptr<Kernel> Compile(const Expr& function, const Variant& variant) const {
    Result<std::unique_ptr<Kernel>> kernel = backend_->Compile(*function->As<Function>(), device_, variant);
    EXPECT_TRUE(kernel) << kernel.error().message;
    return std::move(*kernel);
  }

  const Device device_{DeviceKind::kOpenCl, 0, 1};
  const Backend* backend_ = nullptr;
  std::shared_ptr<DeviceContext> context_;
};

TEST_F(OpenClTextureTest, ComputesWhatBuffersCompute) {
  const Expr function = TwoProducts();
  const std::vector<Variant> variants = VariantsOf(function);
  ASSERT_EQ(variants[1].name, "element @texture");
  const std::vector<Tensor> inputs = testing_backend::RandomInputs(function);
  const std::vector<double> expected = testing_backend::RunOnDevice(*Compile(function, variants[0]), inputs).ToDouble();
  EXPECT_EQ(testing_backend::RunOnDevice(*Compile(function, variants[1]), inputs).ToDouble(), expected);
}

TEST_F(OpenClTextureTest, MemoryOfTexturesIsCountedAndGivenBack) {
  const Expr function = TwoProducts();
  const size_t before = context_->allocated_bytes();
  {
    const std::unique_ptr<Kernel> kernel = Compile(function, VariantsOf(function)[1]);
    constexpr size_t kElements = 2 * 4096 + 768;  // two whole rows, and one that is as long as it must be
    EXPECT_EQ(context_->allocated_bytes(), before + kElements * sizeof(float));
  }
  EXPECT_EQ(context_->allocated_bytes(), before);
}

TEST_F(OpenClTextureTest, IsNotOfferedWithoutConstants) {
  const Expr x = Input({3, 64});
  EXPECT_EQ(VariantsOf(FunctionOf({x}, CallOp("nn.relu", {x}))).size(), 1u);
}

}  // namespace
}  // namespace collage
