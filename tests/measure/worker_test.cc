#include "collage/measure/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "collage/ir/parse.h"
#include "collage/measure/verification.h"
#include "collage/op/table.h"
#include "tests/measure/fault_backend.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class WorkerTest : public testing::Test {
 protected:
  KernelJob Job(const std::string& variant, const Device& device = {}) const {
    const Expr function = ParseExpr("fn (%x: Tensor[(1, 64), float32]) { copy(%x) }", Operators()).value().expr;
    return {function, &backend_, {variant, {Layout()}, {Layout()}}, device, {}};
  }
  static WorkerOptions Options(double most_seconds) { return {COLLAGE_FAULT_WORKER, most_seconds, /*most_bytes=*/size_t{700} << 20}; }
  std::string Reason(const std::string& variant) { return timer_.Measure(Job(variant)).value().invalid_reason; }

  static constexpr Device kAccelerator{DeviceKind::kCuda, 0, 1};
  FaultBackend backend_;
  // So long that no machine is too slow for what does not hang.
  WorkerTimer timer_{Options(/*most_seconds=*/100)};
};

TEST_F(WorkerTest, RightKernelsAreTimedAndCompared) {
  const Measurement measurement = timer_.Measure(Job("right")).value();
  EXPECT_EQ(measurement.invalid_reason, "");
  EXPECT_GE(measurement.samples.size(), 7u);
  EXPECT_EQ(timer_.Difference(Job("right")).value(), 0);
  EXPECT_GT(timer_.Difference(Job("wrong")).value(), 0.1);
  const Measurement slow = timer_.Measure(Job("slow compiling")).value();
  EXPECT_FALSE(slow.samples.empty());
  EXPECT_GT(slow.compile_seconds, measurement.compile_seconds);
  EXPECT_EQ(timer_.starts(), 1u);
}

TEST_F(WorkerTest, ACrashSaysWhereAndTheNextJobRuns) {
  EXPECT_THAT(Reason("crash compiling"), StartsWith("crashed while compiling (signal 11"));
  EXPECT_THAT(Reason("crash running"), StartsWith("crashed while running (signal 11"));
  EXPECT_THAT(Reason("exit"), StartsWith("crashed while compiling (exit code 3"));
  EXPECT_EQ(Reason("right"), "");
  EXPECT_EQ(timer_.starts(), 4u);
}

TEST_F(WorkerTest, AHangEndsAtTheLimit) {
  WorkerTimer timer(Options(/*most_seconds=*/3));
  EXPECT_EQ(timer.Measure(Job("hang compiling")).value().invalid_reason, "was still compiling after 3 s");
  EXPECT_EQ(timer.Measure(Job("hang running")).value().invalid_reason, "was still running after 3 s");
  EXPECT_EQ(timer.Measure(Job("right")).value().invalid_reason, "");
}

TEST_F(WorkerTest, TooMuchMemoryEndsAtTheLimit) {
  EXPECT_THAT(Reason("leak"), HasSubstr("of memory while running, more than 700 MiB"));
  EXPECT_EQ(Reason("right"), "");
}

TEST_F(WorkerTest, AKernelThatBreaksItsDeviceIsTheOnlyOneToBlame) {
  const auto reason = [&](const std::string& variant) { return timer_.Measure(Job(variant, kAccelerator)).value().invalid_reason; };
  EXPECT_EQ(reason("right"), "");
  EXPECT_EQ(reason("breaks its device"), "it has fallen off the bus");
  EXPECT_EQ(reason("right"), "");
  EXPECT_EQ(timer_.starts(), 2u);
  EXPECT_TRUE(timer_.CheckDevice(backend_, kAccelerator));
  EXPECT_EQ(timer_.starts(), 2u);
}

TEST_F(WorkerTest, ADeviceIsGoneWhereNoProcessHasItAnyMore) {
  ::setenv(kDeviceIsGone, "1", /*overwrite=*/1);
  EXPECT_EQ(timer_.Measure(Job("right", kAccelerator)).value().invalid_reason, "it has fallen off the bus");
  const Status works = timer_.CheckDevice(backend_, kAccelerator);
  ::unsetenv(kDeviceIsGone);
  ASSERT_FALSE(works);
  EXPECT_EQ(works.error().message, "cuda:0 (fake accelerator) does not work any more: it has fallen off the bus");
  EXPECT_TRUE(timer_.CheckDevice(backend_, {})) << "the host";
  EXPECT_TRUE(timer_.CheckDevice(backend_, kAccelerator)) << "it is back";
}

TEST_F(WorkerTest, AnExceptionCostsNoWorker) {
  EXPECT_EQ(Reason("throw compiling"), "threw an exception: out of luck");
  EXPECT_EQ(Reason("throw running"), "threw an exception: out of luck");
  EXPECT_EQ(timer_.starts(), 1u);
}

TEST_F(WorkerTest, SeveralAreCompiledAtTheSameTimeAndTimedOneByOne) {
  const std::filesystem::path shared = std::filesystem::path(testing::TempDir()) / ("worker_test_" + std::to_string(::getpid()));
  ASSERT_EQ(::setenv(kSharedFile, shared.c_str(), 1), 0);
  WorkerOptions options = Options(/*most_seconds=*/100);
  options.at_once = 2;
  WorkerTimer two(options);
  const std::vector<KernelJob> jobs(2, Job("meet, then alone"));
  const std::vector<Measurement> measurements = two.MeasureEach(jobs).value();
  for (const Measurement& measurement : measurements) {
    EXPECT_EQ(measurement.invalid_reason, "");
    EXPECT_FALSE(measurement.samples.empty());
  }
  EXPECT_EQ(two.starts(), 2u);
  std::filesystem::remove(shared);
}

TEST_F(WorkerTest, OfSeveralEachFailsForItself) {
  WorkerOptions options = Options(/*most_seconds=*/3);
  options.at_once = 2;
  WorkerTimer two(options);
  const auto reasons = [&](const std::vector<const char*>& variants) {
    std::vector<KernelJob> jobs;
    for (const char* variant : variants) jobs.push_back(Job(variant));
    std::vector<std::string> found;
    const std::vector<Measurement> measurements = two.MeasureEach(jobs).value();
    for (const Measurement& measurement : measurements) {
      found.push_back(measurement.invalid_reason);
      EXPECT_EQ(measurement.samples.empty(), !measurement.invalid_reason.empty());
    }
    return found;
  };
  EXPECT_THAT(reasons({"crash compiling", "right"}), ElementsAre(StartsWith("crashed while compiling"), ""));
  EXPECT_THAT(reasons({"right", "crash running"}), ElementsAre("", StartsWith("crashed while running")));
  EXPECT_THAT(reasons({"hang compiling", "hang running"}), ElementsAre("was still compiling after 3 s", "was still running after 3 s"));
  EXPECT_THAT(reasons({"right", "throw running", "right"}), ElementsAre("", "threw an exception: out of luck", "")) << "more than at once";
}

TEST_F(WorkerTest, AWorkerThatIsNotThereIsAnErrorNotAnInvalidKernel) {
  WorkerTimer none({"/nonexistent/worker"});
  const Result<Measurement> measurement = none.Measure(Job("right"));
  ASSERT_FALSE(measurement.has_value());
  EXPECT_THAT(measurement.error().message, StartsWith("/nonexistent/worker: "));
}

TEST_F(WorkerTest, WhatIsWrongByLittleOrInOneElementDoesNotPass) {
  for (const char* fault : {"wrong", "slightly wrong", "wrong in one", "not a number", "unwritten"}) {
    const Result<double> difference = timer_.Difference(Job(fault));
    EXPECT_FALSE(difference && *difference <= kTolerance) << fault << ": " << *difference;
  }
  const Result<double> right = timer_.Difference(Job("right"));
  EXPECT_TRUE(right && *right <= kTolerance);
}

/// A copy of %x, which is what the fault backend computes, agrees where the constant makes no difference.
Result<double> DifferenceOfCopy(WorkerTimer& timer, KernelJob job, const Tensor& constant, const std::string& body) {
  const std::string type = ToString(constant.type());
  const ParseOptions parse{.constants = {constant}};
  job.function = ParseExpr("fn (%x: " + type + ") { " + body + " }", Operators(), parse).value().expr;
  return timer.Difference(job);
}

// Large constants that look like weights are made again in the worker, like the real ones; small ones travel as they are.
TEST_F(WorkerTest, WeightsReachTheWorkerWithTheirRange) {
  for (const int64_t elements : {3, 40000}) {
    Tensor weights(TensorType{{1, elements}, DType::kFloat32});
    FillRandom(weights, 1, 2, 3);
    // The input is below the constant's range everywhere, so what only copies is wrong everywhere, or right.
    EXPECT_NEAR(DifferenceOfCopy(timer_, Job("right"), weights, "maximum(%x, meta[relay.Constant][0])").value(), 1, 0.5) << elements;
    EXPECT_EQ(DifferenceOfCopy(timer_, Job("right"), weights, "minimum(%x, meta[relay.Constant][0])").value(), 0) << elements;
  }
}

}  // namespace
}  // namespace collage
