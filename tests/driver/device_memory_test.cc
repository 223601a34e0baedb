#include "collage/driver/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collage/op/table.h"
#include "tests/driver/accelerator.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

class DeviceMemoryTest : public testing::Test {
 protected:
  DeviceMemoryTest() { options_.choose_devices = true; }

  /// The host's library first, then an accelerator that is faster and has so much memory.
  void Start(const Expr& function, size_t memory_bytes, const UserConstraints& said = {}) {
    cache_.emplace(MeasurementCache::Open({}).value());
    accelerator_.emplace(0, 100e-6, 10e-6, memory_bytes);
    decided_ = std::make_unique<Decided>(function, Decided::On{{TargetOf(library_), accelerator_->Target()}}, *cache_, options_,
                                         MeasureOptions(), said);
  }

  /// Decides, races and answers how many operators run on the accelerator.
  size_t OnDevice() {
    const Result<Decision> decision = decided_->DecideWithinMemory();
    EXPECT_TRUE(decision) << (decision ? "" : decision.error().message);
    if (!decision) return 0;
    const Result<RacedPlans> raced = decided_->RaceWithinMemory();
    EXPECT_TRUE(raced) << (raced ? "" : raced.error().message);
    if (!raced) return 0;
    EXPECT_TRUE(FitsMemory(decided_->placement(), raced->plans.plans.front().result.choices));
    EXPECT_LE(accelerator_->device->most_allocated, accelerator_->device->memory_bytes());
    const CompileReport report = decided_->Report(raced->plans.plans.front());
    return static_cast<size_t>(
        std::count_if(report.operators.begin(), report.operators.end(), [](const OperatorPlacement& op) { return op.device == "cuda:0"; }));
  }

  SimulatedClock clock_;
  HostLibrary library_{200e-6};
  std::optional<Accelerator> accelerator_;
  CompileOptions options_;
  std::optional<MeasurementCache> cache_;
  std::unique_ptr<Decided> decided_;
};

/// Three chains of tensors of 16384 bytes, whose results stay until the end.
constexpr const char* kThreeChains =
    "fn (%x: Tensor[(1, 4096), float32], %y: Tensor[(1, 4096), float32], %z: Tensor[(1, 4096), float32]) { "
    "%0 = nn.relu(%x); %1 = sigmoid(%0); %2 = tanh(%1); %3 = nn.relu(%y); %4 = sigmoid(%3); %5 = tanh(%4); "
    "%6 = nn.relu(%z); %7 = sigmoid(%6); %8 = tanh(%7); (%2, %5, %8) }";

TEST_F(DeviceMemoryTest, WhatFitsIsNotTouched) {
  Start(Parsed(kThreeChains), size_t{1} << 20);
  EXPECT_EQ(OnDevice(), 9u);
  EXPECT_TRUE(DescribeKeptOff(decided_->placement()).empty());
}

TEST_F(DeviceMemoryTest, OnlyWhatIsTooMuchIsKeptOff) {
  // Three results and what the last chain reads are 65536 bytes.
  Start(Parsed(kThreeChains), 60000);
  const size_t on_device = OnDevice();
  EXPECT_GE(on_device, 6u);
  EXPECT_LT(on_device, 9u);
  ASSERT_EQ(DescribeKeptOff(decided_->placement()).size(), 1u);
  EXPECT_THAT(DescribeKeptOff(decided_->placement())[0], HasSubstr("kept off cuda:0, whose memory is too small for the cheapest plan"));
}

TEST_F(DeviceMemoryTest, WithoutMemoryEverythingStaysOnTheHost) {
  Start(Parsed(kThreeChains), 0);
  EXPECT_EQ(OnDevice(), 0u);
}

TEST_F(DeviceMemoryTest, PinsThatDoNotFitAreAnErrorThatSaysWhy) {
  Start(Parsed(kThreeChains), 60000, {{"nn.relu=cuda:0", "sigmoid=cuda:0", "tanh=cuda:0"}, {}});
  const Result<Decision> decision = decided_->DecideWithinMemory();
  ASSERT_FALSE(decision);
  EXPECT_THAT(decision.error().message, HasSubstr("kept off cuda:0, whose memory is too small"));
}

TEST_F(DeviceMemoryTest, TheConstantsOfAKernelStayOnItsDevice) {
  const Expr x = MakeVar("x", TensorType{{1, 64}});
  const auto dense = [](const Expr& data, uint64_t seed) {
    Tensor weight(TensorType{{64, 64}});
    FillRandom(weight, seed);
    return MakeCall(Operators().Find("nn.dense"), {data, MakeConstant(weight)}).value();
  };
  Start(*MakeFunction({x}, dense(dense(dense(x, 1), 2), 3)), 40000);
  // Two of three matrices of 16384 bytes, and small tensors.
  EXPECT_EQ(OnDevice(), 2u);
}

/// Operators that take what came before, of several widths.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  Expr Make(size_t operators) {
    const Expr x = MakeVar("x", TensorType{{1, Width()}});
    values_ = {x};
    while (values_.size() <= operators) values_.push_back(Next());
    // Whatever nobody reads is a result.
    std::vector<Expr> results(values_.begin() + 1, values_.end());
    std::erase_if(results, [&](const Expr& value) { return std::find(read_.begin(), read_.end(), value) != read_.end(); });
    return *MakeFunction({x}, results.size() == 1 ? results[0] : MakeTuple(results));
  }

 private:
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  int64_t Width() { return int64_t{16} << Below(6); }

  Expr Pick() {
    read_.push_back(values_[Below(values_.size())]);
    return read_.back();
  }

  Expr Next() {
    const Expr data = Pick();
    const int64_t width = data->type().AsTensor()->shape.back();
    const size_t kind = Below(5);
    if (kind == 0) {
      Tensor weight(TensorType{{Width(), width}});
      FillRandom(weight, values_.size());
      return MakeCall(Operators().Find("nn.dense"), {data, MakeConstant(weight)}).value();
    }
    if (kind == 1) {
      const Expr other = Pick();
      if (other->type() == data->type() && other != data) return MakeCall(Operators().Find("add"), {data, other}).value();
    }
    constexpr std::array<const char*, 3> kUnary{"nn.relu", "sigmoid", "tanh"};
    return MakeCall(Operators().Find(kUnary[Below(kUnary.size())]), {data}).value();
  }

  std::mt19937_64 random_;
  std::vector<Expr> values_;
  std::vector<Expr> read_;
};

TEST_F(DeviceMemoryTest, APlanThatFitsIsFoundForAnyGraphAndMemory) {
  size_t on_device = 0;
  size_t limited = 0;
  for (size_t round = 0; round < Rounds(60); ++round) {
    // Each of sixty once, and few of them are of many kinds.
    const uint64_t seed = round * 7 % 60;
    SCOPED_TRACE(seed);
    const Expr function = RandomGraph(seed).Make(4 + seed % 9);
    // From none to what hardly ever is too little.
    Start(function, (size_t{1} << (seed % 18)) - 1);
    on_device += OnDevice();
    limited += DescribeKeptOff(decided_->placement()).empty() ? 0 : 1;
    if (HasFailure()) return;
  }
  EXPECT_GT(on_device, Rounds(60));
  EXPECT_GT(limited, Rounds(10));
}

}  // namespace
}  // namespace collage
