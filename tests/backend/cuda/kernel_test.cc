#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "collage/backend/cuda_device/context.h"
#include "tests/backend/cast_values.h"
#include "tests/backend/device_harness.h"
#include "tests/backend/generated_functions.h"

namespace collage {
namespace {

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

TEST(CudaPresenceTest, AnotherDeviceIsNoneOfItsOwn) {
  EXPECT_EQ(cuda::ProbeDevice(Device{}).reason.rfind("it runs on GPUs of CUDA only", 0), 0u);
  const Presence presence = cuda::ProbeDevice({DeviceKind::kCuda, 99, 1});
  EXPECT_FALSE(presence.present);
  EXPECT_NE(presence.reason, "");
  EXPECT_FALSE(cuda::ContextOf({DeviceKind::kCuda, 99, 1}));
}

}  // namespace
}  // namespace collage
