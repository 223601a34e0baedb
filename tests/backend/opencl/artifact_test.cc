#include "collage/support/hash.h"
#include "tests/backend/device_harness.h"
#include "tests/backend/opencl/opencl_test.h"
#include "tests/support/log_lines.h"

namespace collage {
namespace {

using testing_backend::CallOp;
using testing_backend::FunctionOf;
using testing_backend::Input;
using testing_backend::RandomConstant;

/// Over the variants: constants in buffers, and in textures.
class OpenClArtifactTest : public testing_backend::OpenClTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    if (IsSkipped()) return;
    if (GetParam() == std::string_view(kTexture) && !HasImages()) GTEST_SKIP() << context_->name() << " has no images";
    // A constant, a tensor between two kernels, and loops.
    const Expr x = Input({4, 16});
    const Expr hidden = CallOp("nn.relu", {CallOp("nn.dense", {x, RandomConstant({32, 16}, 7)})});
    function_ = FunctionOf({x}, CallOp("nn.softmax", {hidden}));
    kernel_ = Compiled(function_, GetParam());
    ASSERT_NE(kernel_, nullptr);
  }

  [[nodiscard]] std::vector<double> Run(Kernel& kernel) const {
    return testing_backend::RunOnDevice(kernel, testing_backend::RandomInputs(function_)).ToDouble();
  }

  /// Loads it, and compares what it computes.
  void ExpectTheSame(const std::string& artifact) const {
    const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(artifact, device_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(Run(**loaded), Run(*kernel_));
  }

  /// Where the words about the device lie in an artifact; a hash, a length and the driver's code follow them.
  struct MadeBy {
    size_t begin;
    size_t end;
  };
  [[nodiscard]] MadeBy FindMadeBy(const std::string& artifact) const {
    const size_t begin = artifact.find(context_->name() + " (OpenCL");
    EXPECT_NE(begin, std::string::npos);
    uint64_t length = 0;
    std::memcpy(&length, artifact.data() + begin - sizeof length, sizeof length);
    return {begin, begin + length};
  }

  static constexpr const char* kCompiled = "kernels from their source";
  static constexpr const char* kTaken = "kernels from saved code";

  Expr function_;
  std::unique_ptr<Kernel> kernel_;
};

TEST_P(OpenClArtifactTest, ASavedKernelComputesTheSame) {
  const std::string artifact = kernel_->Serialize();
  ASSERT_FALSE(artifact.empty());
  const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(artifact, device_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(Run(**loaded), Run(*kernel_));
  EXPECT_FALSE((*loaded)->Serialize().empty());
}

TEST_P(OpenClArtifactTest, NothingIsCompiledWhereTheCodeIsOfTheSameDevice) {
  const LogLines log;
  ExpectTheSame(kernel_->Serialize());
  EXPECT_EQ(log.Count(kTaken), 1u);
  EXPECT_EQ(log.Count(kCompiled), 0u);
}

TEST_P(OpenClArtifactTest, CodeOfAnotherDeviceIsLeftAloneForItsSource) {
  std::string artifact = kernel_->Serialize();
  artifact[FindMadeBy(artifact).end - 1] ^= 1;
  const LogLines log;
  ExpectTheSame(artifact);
  EXPECT_EQ(log.Count("opencl: saved code is for " + context_->name()), 1u);
  EXPECT_EQ(log.Count(kCompiled), 1u);
  EXPECT_EQ(log.Count(kTaken), 0u);
}

TEST_P(OpenClArtifactTest, DamagedCodeIsLeftAloneForItsSource) {
  std::string artifact = kernel_->Serialize();
  artifact[artifact.size() - 100] ^= 1;
  const LogLines log;
  ExpectTheSame(artifact);
  EXPECT_EQ(log.Count("the saved code of a kernel is damaged"), 1u);
  EXPECT_EQ(log.Count(kCompiled), 1u);
  EXPECT_EQ(log.Count(kTaken), 0u);
}

TEST_P(OpenClArtifactTest, CodeThatTheDriverDoesNotTakeIsLeftAloneForItsSource) {
  std::string artifact = kernel_->Serialize();
  artifact.resize(FindMadeBy(artifact).end);
  const std::string code = "no code of any driver";
  for (const uint64_t number : {HashBytes(code), uint64_t{code.size()}})
    artifact.append(reinterpret_cast<const char*>(&number), sizeof number);
  const LogLines log;
  ExpectTheSame(artifact + code);
  EXPECT_EQ(log.Count("opencl: the driver does not take the code that it gave"), 1u);
  EXPECT_EQ(log.Count(kCompiled), 1u);
}

TEST_P(OpenClArtifactTest, ACutArtifactIsAnError) {
  const std::string artifact = kernel_->Serialize();
  for (const size_t size : {size_t{0}, size_t{7}, size_t{40}, artifact.size() / 2, artifact.size() - 1}) {
    const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(std::string_view(artifact).substr(0, size), device_);
    ASSERT_FALSE(loaded) << size;
    EXPECT_EQ(loaded.error().message.rfind("opencl: ", 0), 0u) << loaded.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, OpenClArtifactTest, testing::Values(OpenClArtifactTest::kBuffer, OpenClArtifactTest::kTexture),
                         [](const auto& one) { return std::string_view(one.param).ends_with("texture") ? "Texture" : "Buffer"; });

}  // namespace
}  // namespace collage
