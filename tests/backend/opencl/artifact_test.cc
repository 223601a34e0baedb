#include <gtest/gtest.h>

#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using testing_backend::CallOp;
using testing_backend::FunctionOf;
using testing_backend::Input;
using testing_backend::RandomConstant;

class OpenClArtifactTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const Backend*> found = FindBackend("opencl", device_);
    if (!found) GTEST_SKIP() << found.error().message;
    backend_ = *found;
    context_ = backend_->Open(device_).value();
    // A constant, a tensor between two kernels, and loops.
    const Expr x = Input({4, 16});
    const Expr hidden = CallOp("nn.relu", {CallOp("nn.dense", {x, RandomConstant({32, 16}, 7)})});
    function_ = FunctionOf({x}, CallOp("nn.softmax", {hidden}));
    const Function& function = *function_->As<Function>();
    Result<std::unique_ptr<Kernel>> kernel = backend_->Compile(function, device_, backend_->Variants(function, device_).at(0));
    ASSERT_TRUE(kernel) << kernel.error().message;
    kernel_ = std::move(*kernel);
  }

  [[nodiscard]] std::vector<double> Run(Kernel& kernel) const {
    Tensor input(TensorType{{4, 16}});
    FillRandom(input, 11);
    Tensor output(TensorType{{4, 32}});
    const DeviceMemory in = DeviceMemory::Allocate(context_, input.ByteCount()).value();
    const DeviceMemory out = DeviceMemory::Allocate(context_, output.ByteCount()).value();
    const DeviceMemory workspace = DeviceMemory::Allocate(context_, std::max<size_t>(kernel.workspace_bytes(), 1)).value();
    EXPECT_TRUE(context_->CopyIn(in.address(), input.Bytes(), input.ByteCount()));
    const void* inputs[] = {in.address()};
    void* outputs[] = {out.address()};
    const Status status = kernel.Run(inputs, outputs, workspace.address());
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    EXPECT_TRUE(context_->CopyOut(output.MutableBytes(), out.address(), output.ByteCount()));
    EXPECT_TRUE(context_->WaitForAll());
    return output.ToDouble();
  }

  const Device device_{DeviceKind::kOpenCl, 0, 1};
  const Backend* backend_ = nullptr;
  std::shared_ptr<DeviceContext> context_;
  Expr function_;
  std::unique_ptr<Kernel> kernel_;
};

TEST_F(OpenClArtifactTest, ASavedKernelComputesTheSame) {
  const std::string artifact = kernel_->Serialize();
  ASSERT_FALSE(artifact.empty());
  const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(artifact, device_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(Run(**loaded), Run(*kernel_));
  EXPECT_FALSE((*loaded)->Serialize().empty());
}

TEST_F(OpenClArtifactTest, ACutArtifactIsAnError) {
  const std::string artifact = kernel_->Serialize();
  for (const size_t size : {size_t{0}, size_t{7}, size_t{40}, artifact.size() / 2, artifact.size() - 1}) {
    const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(std::string_view(artifact).substr(0, size), device_);
    ASSERT_FALSE(loaded) << size;
    EXPECT_EQ(loaded.error().message.rfind("opencl: ", 0), 0u) << loaded.error().message;
  }
}

}  // namespace
}  // namespace collage
