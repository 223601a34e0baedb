// Constants in textures: what they compute, and the memory that they take.

#include "tests/backend/device_harness.h"
#include "tests/backend/opencl/opencl_test.h"

namespace collage {
namespace {

using testing_backend::CallOp;
using testing_backend::FunctionOf;
using testing_backend::Input;
using testing_backend::RandomConstant;

class OpenClTextureTest : public testing_backend::OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    if (!IsSkipped() && !HasImages()) GTEST_SKIP() << context_->name() << " has no images";
  }

  /// Weights of 1.5 rows of a texture, and of less than one.
  static Expr TwoProducts() {
    const Expr x = Input({3, 64});
    const Expr hidden = CallOp("nn.relu", {CallOp("nn.dense", {x, RandomConstant({96, 64}, 7)})});
    return FunctionOf({x}, CallOp("nn.dense", {hidden, RandomConstant({8, 96}, 8)}));
  }
};

TEST_F(OpenClTextureTest, ComputesWhatBuffersCompute) {
  const Expr function = TwoProducts();
  const std::unique_ptr<Kernel> buffers = Compiled(function, kBuffer);
  const std::unique_ptr<Kernel> textures = Compiled(function, kTexture);
  ASSERT_TRUE(buffers && textures);
  const std::vector<Tensor> inputs = testing_backend::RandomInputs(function);
  EXPECT_EQ(testing_backend::RunOnDevice(*textures, inputs).ToDouble(), testing_backend::RunOnDevice(*buffers, inputs).ToDouble());
}

TEST_F(OpenClTextureTest, MemoryOfTexturesIsCountedAndGivenBack) {
  const size_t before = context_->allocated_bytes();
  {
    const std::unique_ptr<Kernel> kernel = Compiled(TwoProducts(), kTexture);
    constexpr size_t kElements = 2 * 4096 + 768;  // two whole rows, and one that is as long as it must be
    EXPECT_EQ(context_->allocated_bytes(), before + kElements * sizeof(float));
  }
  EXPECT_EQ(context_->allocated_bytes(), before);
}

TEST_F(OpenClTextureTest, IsNotOfferedWithoutConstants) {
  const Expr x = Input({3, 64});
  EXPECT_EQ(NamesOf(FunctionOf({x}, CallOp("nn.relu", {x}))), std::vector<std::string>{kBuffer});
}

}  // namespace
}  // namespace collage
