#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "collage/backend/cuda_device/context.h"
#include "collage/backend/cuda_device/driver.h"
#include "tests/backend/cast_values.h"
#include "tests/backend/device_harness.h"
#include "tests/backend/generated_functions.h"

namespace collage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using namespace testing_backend;  // NOLINT(google-build-using-namespace)

class CudaTest : public DeviceTest {
 protected:
  CudaTest() : DeviceTest("cuda", kGpu) {}

  static Expr Relu() {
    const Expr x = Input({64, 100});
    return FunctionOf({x}, CallOp("nn.relu", {x}));
  }
};

TEST_F(CudaTest, EveryVariantComputesWhatTheReferenceDoes) {
  for (const auto& [name, function] : GeneratedFunctions()) {
    SCOPED_TRACE(name);
    ExpectAgreement(function);
  }
}

TEST_F(CudaTest, EveryNumberIsCastAsTheReferenceDoes) {
  ForEachCast([this](const Expr& function, const Tensor& values) {
    const std::unique_ptr<Kernel> kernel = Compiled(function, "element");
    ASSERT_TRUE(kernel);
    ExpectBits(RunOnDevice(*kernel, {values}), function, values);
  });
}

TEST_F(CudaTest, ASavedKernelComputesTheSame) {
  const Expr function = Relu();
  const std::string saved = Compiled(function, "element")->Serialize();
  Result<std::unique_ptr<Kernel>> loaded = backend_->Load(saved, device_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<Tensor> inputs = RandomInputs(function, 3);
  EXPECT_TRUE(BitwiseEqual(RunOnDevice(**loaded, inputs), Reference(function, inputs)));
  for (size_t bytes = 0; bytes < saved.size(); bytes += 1 + bytes / 8) {
    Result<std::unique_ptr<Kernel>> cut = backend_->Load(saved.substr(0, bytes), device_);
    EXPECT_FALSE(cut);
  }
}

TEST_F(CudaTest, RecordedWorkIsGivenAgainAndTellsTheTimesOfItsParts) {
  const Expr function = Relu();
  const std::unique_ptr<Kernel> kernel = Compiled(function, "element");
  const Tensor input = RandomInputs(function, 3)[0];
  const size_t bytes = input.ByteCount();
  const DeviceMemory from = *DeviceMemory::Allocate(context_, bytes);
  const DeviceMemory between = *DeviceMemory::Allocate(context_, bytes);
  const DeviceMemory to = *DeviceMemory::Allocate(context_, bytes);
  const auto run = [&] {
    const std::array<const void*, 1> inputs = {from.address()};
    const std::array<void*, 1> outputs = {between.address()};
    return kernel->Run(inputs, outputs, nullptr);
  };
  const auto copy = [&] { return context_->CopyWithin(to.address(), between.address(), bytes); };
  const std::unique_ptr<RecordedWork> work = *context_->RecordWork({run, copy});
  std::array<double, 2> seconds = {};
  for (const bool timed : {false, true, false}) {
    Tensor output(input.type());
    ASSERT_TRUE(context_->CopyIn(to.address(), output.Bytes(), bytes));
    ASSERT_TRUE(context_->CopyIn(from.address(), input.Bytes(), bytes));
    ASSERT_TRUE(timed ? work->GiveTimed(seconds) : work->Give());
    ASSERT_TRUE(context_->CopyOut(output.MutableBytes(), to.address(), bytes));
    ASSERT_TRUE(context_->WaitForAll());
    EXPECT_TRUE(BitwiseEqual(output, Reference(function, {input})));
  }
  EXPECT_THAT(seconds, ElementsAre(Gt(0), Gt(0)));
}

TEST_F(CudaTest, MemoryIsCountedAndTooMuchOfItRefused) {
  const size_t before = context_->allocated_bytes();
  {
    const DeviceMemory some = *DeviceMemory::Allocate(context_, 1000);
    EXPECT_EQ(context_->allocated_bytes(), before + 1000);
  }
  EXPECT_EQ(context_->allocated_bytes(), before);
  const Result<DeviceMemory> too_much = DeviceMemory::Allocate(context_, context_->memory_bytes() + 1);
  ASSERT_FALSE(too_much);
  EXPECT_THAT(too_much.error().message, HasSubstr("too many"));
}

TEST_F(CudaTest, EmptyingTheCachesTakesAsLongAsWritingThemOver) {
  const cuda::CudaContext& context = static_cast<const cuda::CudaContext&>(*context_);
  ASSERT_TRUE(context_->EmptyCaches().value());
  const auto empty = [&] { return context_->EmptyCaches() ? Status() : Fail("cannot be emptied"); };
  const std::unique_ptr<RecordedWork> work = *context_->RecordWork({empty});
  std::array<double, 1> seconds = {};
  ASSERT_TRUE(work->GiveTimed(seconds));
  constexpr double kMostBytesPerSecond = 2e13;  // above all caches that are sold
  EXPECT_GT(seconds[0], static_cast<double>(context.capabilities().l2_bytes) / kMostBytesPerSecond);
}

TEST_F(CudaTest, LayoutsAreConvertedAsTheHostDoes) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 64, 7, 7}, Shape{3, 33, 65, 31}, Shape{1, 1, 32, 2}, Shape{70000, 2, 2, 1}}) {
      const TensorType type{shape, dtype};
      const Layout last = Layout::Of("acdb");
      for (const auto& [from, to] : {std::pair(Layout(), last), std::pair(last, Layout())}) {
        const auto transposition = AsTransposition(type, from, to);
        if (!transposition) continue;
        SCOPED_TRACE(ToString(type) + " " + from.ToString());
        ASSERT_TRUE(context_->CanTranspose(*transposition));
        Tensor tensor(type);
        for (size_t i = 0; i < tensor.ByteCount(); ++i) tensor.MutableBytes()[i] = static_cast<std::byte>(i * 7 + i / 256);
        const DeviceMemory source = *DeviceMemory::Allocate(context_, tensor.ByteCount());
        const DeviceMemory target = *DeviceMemory::Allocate(context_, tensor.ByteCount());
        ASSERT_TRUE(context_->CopyIn(source.address(), tensor.Bytes(), tensor.ByteCount()));
        ASSERT_TRUE(context_->Transpose(*transposition, target.address(), source.address()));
        Tensor found(type);
        ASSERT_TRUE(context_->CopyOut(found.MutableBytes(), target.address(), found.ByteCount()));
        ASSERT_TRUE(context_->WaitForAll());
        EXPECT_TRUE(BitwiseEqual(found, Converted(tensor, from, to)));
      }
    }
  }
}

/// Breaks the device for this process, so it is run in one of its own, where somebody asks for it.
class CudaLostDeviceTest : public CudaTest {
 protected:
  void SetUp() override {
    if (!std::getenv("COLLAGE_TEST_BREAKS_DEVICE")) GTEST_SKIP() << "COLLAGE_TEST_BREAKS_DEVICE is not set: no test could follow";
    CudaTest::SetUp();
  }

  /// Gives the device a kernel that ends in a trap.
  static void Break(const cuda::CudaContext& context) {
    const cuda::Driver& driver = cuda::Driver::Use();
    ASSERT_TRUE(context.Enter());
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    constexpr const char* kText = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry broken() { trap; }\n";
    ASSERT_EQ(driver.cuModuleLoadData(&module, kText), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuModuleGetFunction(&function, module, "broken"), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, context.stream(), nullptr, nullptr), CUDA_SUCCESS);
  }
};

TEST_F(CudaLostDeviceTest, ErrorsSaySoFromThenOn) {
  const std::unique_ptr<Kernel> kernel = Compiled(Relu(), "element");
  ASSERT_TRUE(kernel);
  const DeviceMemory memory = *DeviceMemory::Allocate(context_, size_t{64} * 100 * sizeof(float));
  ASSERT_NO_FATAL_FAILURE(Break(static_cast<const cuda::CudaContext&>(*context_)));
  EXPECT_FALSE(context_->WaitForAll());
  const Status works = context_->Check();
  ASSERT_FALSE(works);
  EXPECT_THAT(works.error().message, AllOf(HasSubstr("cuda:0"), HasSubstr("does not work any more")));
  const std::array<const void*, 1> inputs = {memory.address()};
  const std::array<void*, 1> outputs = {memory.address()};
  const bool is_given = static_cast<bool>(kernel->Run(inputs, outputs, nullptr));
  EXPECT_FALSE(is_given && context_->WaitForAll());
}

TEST(CudaPresenceTest, AnotherDeviceIsNoneOfItsOwn) {
  EXPECT_EQ(cuda::ProbeDevice(Device{}).reason.rfind("it runs on GPUs of CUDA only", 0), 0u);
  const Presence presence = cuda::ProbeDevice({DeviceKind::kCuda, 99, 1});
  EXPECT_FALSE(presence.present);
  EXPECT_NE(presence.reason, "");
  EXPECT_FALSE(cuda::ContextOf({DeviceKind::kCuda, 99, 1}));
}

}  // namespace
}  // namespace collage
