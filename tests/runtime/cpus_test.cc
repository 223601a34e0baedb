#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "collage/runtime/call_order.h"
#include "collage/runtime/cpu_context.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/execution_plan.h"
#include "collage/runtime/kept_off.h"
#include "tests/runtime/test_program.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Device kHost{DeviceKind::kCpu, 0, 1};

/// Two CPUs beside the host. What is tested is who runs what and when, so on a machine of one processor they share that.
std::array<std::shared_ptr<CpuContext>, 2> OpenTwo() {
  const Processors usable = UsableProcessors();
  return {CpuContext::Open({1, {usable.back()}}).value(), CpuContext::Open({2, {usable.front()}}).value()};
}

void Move(Program::KernelCall& call, const std::shared_ptr<CpuContext>& cpu) {
  call.kernel = std::make_shared<KernelOnCpu>(std::move(call.kernel), cpu);
}

TEST(ProcessorsTest, ListsAreReadAndWritten) {
  EXPECT_EQ(*ParseProcessors("6,2-3,2"), (Processors{2, 3, 6}));
  EXPECT_EQ(ToText({2, 3, 6}), "2-3,6");
  EXPECT_EQ(ToText({0}), "0");
  for (const char* wrong : {"", ",", "1,", "a", "3-2", "-1", "1-", "1 ", "99999999999"}) {
    const Result<Processors> parsed = ParseProcessors(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, HasSubstr("'" + std::string(wrong) + "' is no list of processors"));
  }
}

TEST(ProcessorsTest, ACpuIsWrittenAsItIsRead) {
  const CpuStatement cpu{3, {0, 1, 5}};
  EXPECT_EQ(cpu.ToString(), "cpu:3 -processors=0-1,5");
  EXPECT_EQ(*CpuStatement::Parse(cpu.ToString()), cpu);
  EXPECT_EQ(cpu.ToDevice(), (Device{DeviceKind::kCpu, 3, 3}));
  for (const char* wrong : {"cpu:1", "opencl:0 -processors=1", "cpu:x -processors=1", "cpu:1 -processors="})
    EXPECT_FALSE(CpuStatement::Parse(wrong)) << wrong;
}

TEST(ProcessorsTest, ACpuIsReadAsUsersStateIt) {
  EXPECT_EQ(*CpuStatement::ParseStated("cpu:3=0-1,5"), (CpuStatement{3, {0, 1, 5}}));
  for (const char* wrong : {"cpu:1", "opencl:0=1", "=1", ""}) {
    EXPECT_EQ(CpuStatement::ParseStated(wrong).error().message,
              std::string(wrong) + ": expected a CPU and its processors, such as cpu:1=2-3");
  }
  EXPECT_EQ(CpuStatement::ParseStated("cpu:1=x").error().message, "cpu:1=x: 'x' is no list of processors, expected one such as 2-3,6");
}

TEST(ProcessorsTest, TheHostHasWhatIsLeft) {
  const Processors usable = UsableProcessors();
  const auto error = [](const std::vector<CpuStatement>& cpus) { return ThreadsBeside(cpus, 64).error().message; };
  EXPECT_EQ(*ThreadsBeside({}, 1), 1);
  EXPECT_THAT(error({{1, usable}}), HasSubstr("no processor is left for cpu:0"));
  EXPECT_THAT(error({{1, {CPU_SETSIZE - 1}}}), HasSubstr("cpu:1: processor 1023 is not there"));
  EXPECT_THAT(error({{0, {usable[0]}}}), HasSubstr("cpu:0 is the host"));
  if (usable.size() < 2) GTEST_SKIP() << "one processor";
  EXPECT_EQ(*ThreadsBeside({{1, {usable[1]}}}, 64), static_cast<int>(usable.size()) - 1);
  EXPECT_EQ(*ThreadsBeside({{1, {usable[1]}}}, 1), 1);
  EXPECT_THAT(error({{1, {usable[1]}}, {2, {usable[1]}}}), HasSubstr("is another CPU's, too"));
  EXPECT_THAT(error({{1, {usable[1]}}, {1, {usable[0]}}}), HasSubstr("stated twice"));
}

TEST(KeptOffTest, TheThreadComesBackToWhereItWas) {
  const Processors before = UsableProcessors();
  if (before.size() < 2) GTEST_SKIP() << "one processor";
  KeptOff kept(1, {before.back()});
  kept.Begin();
  EXPECT_EQ(UsableProcessors(), Without(before, {before.back()}));
  kept.End();
  EXPECT_EQ(UsableProcessors(), before);
  ASSERT_TRUE(KeepThreadOn({before.back()}));
  kept.Begin();
  EXPECT_EQ(UsableProcessors(), Without(before, {before.back()}));
  kept.End();
  EXPECT_EQ(UsableProcessors(), Processors{before.back()});
  ASSERT_TRUE(KeepThreadOn(before));
  KeptOff all(1, before);
  all.Begin();
  EXPECT_EQ(UsableProcessors(), before);
  all.End();
}

TEST(CpusTest, RandomProgramsOnThreeCpusGiveWhatDirectEvaluationGives) {
  const auto cpus = OpenTwo();
  for (unsigned seed = 0; seed < Rounds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TestProgram test = RandomProgram(seed);
    std::mt19937 random(seed + 5000000);
    for (Program::KernelCall& call : test.program.calls) {
      if (const size_t place = random() % 3) Move(call, cpus[place - 1]);
    }
    Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
    ASSERT_TRUE(executable) << executable.error().message;
    ASSERT_NO_FATAL_FAILURE(ExpectWhatEvaluationGives(*executable, RandomProgram(seed), random));
  }
}

/// A kernel that ends only when another one of its pair runs at the same time, or after two seconds.
class Meeting {
 public:
  std::atomic<int> there = 0;
  std::atomic<bool> have_met = false;

  bool Arrive() {
    ++there;
    const auto start = std::chrono::steady_clock::now();
    while (there < 2 && std::chrono::steady_clock::now() - start < std::chrono::seconds(2)) std::this_thread::yield();
    if (there == 2) have_met = true;
    return true;
  }
};

class MeetingKernel : public Kernel {
 public:
  MeetingKernel(std::shared_ptr<Kernel> kernel, Meeting& meeting, Processors* ran_on = nullptr)
      : Kernel(*kernel), kernel_(std::move(kernel)), meeting_(meeting), ran_on_(ran_on) {}
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    if (ran_on_) *ran_on_ = UsableProcessors();
    meeting_.Arrive();
    return kernel_->Run(inputs, outputs, workspace);
  }

 private:
  std::shared_ptr<Kernel> kernel_;
  Meeting& meeting_;
  Processors* ran_on_;
};

/// x -> a (host) and x -> b -> c (cpu:1) -> d (host), written so that the program's order gives the host its own branch first.
TestProgram ForkAndJoin() {
  TestProgram test;
  const TensorType type = IntType({480});
  const auto call = [&](const std::vector<size_t>& inputs) {
    return test.AddCall(inputs, std::vector<Layout>(inputs.size()), {{type, Layout()}}, std::nullopt, 256)[0];
  };
  const size_t x = test.AddInput(type);
  const size_t a = call({x});
  const size_t b = call({x});
  const size_t c = call({b});
  test.AddOutput(call({a, c}));
  return test;
}

std::vector<std::string> StepsOf(const Executable& executable) {
  std::vector<std::string> names;
  for (const StepProfile& step : executable.profile()) names.push_back(step.kind + " " + step.record.name + "@" + ToString(step.device));
  return names;
}

TEST(CpusTest, BranchesRunAtTheSameTimeOnTheirProcessorsWithoutACopy) {
  const Processors usable = UsableProcessors();
  if (usable.size() < 2) GTEST_SKIP() << "one processor";
  const auto cpu = CpuContext::Open({1, {usable.back()}}).value();
  TestProgram test = ForkAndJoin();
  Meeting meeting;
  Processors host;
  Processors other;
  test.program.calls[0].kernel = std::make_shared<MeetingKernel>(test.program.calls[0].kernel, meeting, &host);
  test.program.calls[2].kernel = std::make_shared<MeetingKernel>(test.program.calls[2].kernel, meeting, &other);
  Move(test.program.calls[1], cpu);
  Move(test.program.calls[2], cpu);
  Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
  ASSERT_TRUE(executable) << executable.error().message;
  EXPECT_THAT(StepsOf(*executable),
              ElementsAre("kernel k1@cpu:1", "kernel k2@cpu:1", "kernel k0@cpu:0", "wait wait for cpu:1@cpu:0", "kernel k3@cpu:0"));
  TestProgram same = ForkAndJoin();
  std::mt19937 random(1);
  const std::vector<Tensor> inputs = RandomInputs(same, random);
  const Result<std::vector<Tensor>> outputs = executable->Run(inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_TRUE(meeting.have_met);
  EXPECT_EQ(other, Processors{usable.back()});
  EXPECT_EQ(host, Without(usable, {usable.back()}));
  EXPECT_EQ(UsableProcessors(), usable);
  EXPECT_EQ(Elements((*outputs)[0]), same.Evaluate(inputs)[0]);
}

TEST(CpusTest, TheProfileShowsWhatOverlaps) {
  if (UsableProcessors().size() < 2) GTEST_SKIP() << "one processor";
  const auto cpu = CpuContext::Open({1, {UsableProcessors().back()}}).value();
  TestProgram test = ForkAndJoin();
  Meeting meeting;
  for (const size_t call : {size_t{0}, size_t{1}})
    test.program.calls[call].kernel = std::make_shared<MeetingKernel>(test.program.calls[call].kernel, meeting);
  Move(test.program.calls[1], cpu);
  Move(test.program.calls[2], cpu);
  Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
  ASSERT_TRUE(executable);
  executable->SetProfiling(true);
  TestProgram same = ForkAndJoin();
  std::mt19937 random(1);
  ASSERT_TRUE(executable->Run(RandomInputs(same, random)));
  const auto& profile = executable->profile();
  const auto end = [&](size_t step) {
    return profile[step].last_began +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(profile[step].last_microseconds));
  };
  for (const StepProfile& step : profile) EXPECT_EQ(step.calls, 1U) << step.record.name;
  EXPECT_LT(profile[0].last_began, end(2));  // k1 on cpu:1 and k0 on the host
  EXPECT_LT(profile[2].last_began, end(0));
}

TEST(CpusTest, WhatOneStreamAloneUsesIsReusedWithoutWaiting) {
  const auto cpu = OpenTwo()[0];
  TestProgram test;
  const TensorType type = IntType({480});
  size_t value = test.AddInput(type);
  for (int i = 0; i < 20; ++i) value = test.AddCall({value}, {Layout()}, {{type, Layout()}})[0];
  test.AddOutput(value);
  for (Program::KernelCall& call : test.program.calls) Move(call, cpu);
  const ExecutionPlan plan = PlanExecution(test.program, 1);
  EXPECT_EQ(plan.arenas[0].bytes, 0U);
  EXPECT_EQ(plan.arenas[1].bytes, 2 * type.ByteCount());
  EXPECT_EQ(std::count_if(plan.steps.begin(), plan.steps.end(),
                          [](const ExecutionPlan::Step& step) { return step.kind == ExecutionPlan::Step::Kind::kWait; }),
            1);
}

class FailingKernel : public Kernel {
 public:
  explicit FailingKernel(const Kernel& like) : Kernel(like) {}
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override { return Fail("the kernel failed"); }
};

TEST(CpusTest, AnErrorIsThatOfTheProgramWhoseKernelFailedAndTheNextRunIsWhole) {
  const auto cpu = OpenTwo()[0];
  TestProgram good = ForkAndJoin();
  TestProgram bad = ForkAndJoin();
  bad.program.calls[1].kernel = std::make_shared<FailingKernel>(*bad.program.calls[1].kernel);
  for (TestProgram* test : {&good, &bad}) Move(test->program.calls[1], cpu);
  Executable failing = std::move(Executable::Create(std::move(bad.program), kHost).value());
  Executable working = std::move(Executable::Create(std::move(good.program), kHost).value());
  TestProgram same = ForkAndJoin();
  std::mt19937 random(1);
  const std::vector<Tensor> inputs = RandomInputs(same, random);
  std::thread other([&] {
    for (int run = 0; run < 50; ++run) {
      const Result<std::vector<Tensor>> outputs = failing.Run(inputs);
      ASSERT_FALSE(outputs);
      EXPECT_EQ(outputs.error().message, "cpu:1: the kernel failed");
    }
  });
  for (int run = 0; run < 50; ++run) {
    const Result<std::vector<Tensor>> outputs = working.Run(inputs);
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(Elements((*outputs)[0]), same.Evaluate(inputs)[0]);
  }
  other.join();
}

TEST(CpusTest, TwinsRunAtTheSameTimeInOneStream) {
  const auto cpu = OpenTwo()[0];
  const auto make = [&] {
    TestProgram test = ForkAndJoin();
    Move(test.program.calls[1], cpu);
    Move(test.program.calls[2], cpu);
    return test;
  };
  Executable first = std::move(Executable::Create(std::move(make().program), kHost).value());
  Result<Executable> second = first.Twin([&](size_t, size_t call) -> Result<std::unique_ptr<Kernel>> {
    std::shared_ptr<Kernel> plain = ForkAndJoin().program.calls[call].kernel;
    if (call == 1 || call == 2) return std::make_unique<KernelOnCpu>(plain, cpu);
    auto* made = new MeetingKernel(plain, *new Meeting{2});  // for tests: lives as long as the process
    return std::unique_ptr<Kernel>(made);
  });
  ASSERT_TRUE(second) << second.error().message;
  TestProgram same = ForkAndJoin();
  const auto run = [&](Executable& executable, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 100; ++i) {
      const std::vector<Tensor> inputs = RandomInputs(same, random);
      const Result<std::vector<Tensor>> outputs = executable.Run(inputs);
      ASSERT_TRUE(outputs) << outputs.error().message;
      ASSERT_EQ(Elements((*outputs)[0]), same.Evaluate(inputs)[0]);
    }
  };
  std::thread other([&] { run(*second, 1); });
  run(first, 2);
  other.join();
}

TEST(CallOrderTest, TheHostGivesFirstAndWaitsLast) {
  TestProgram test = ForkAndJoin();
  EXPECT_THAT(CallOrder(test.program, {0, 0, 0, 0}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CallOrder(test.program, {0, 1, 1, 0}), ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(CallOrder(test.program, {1, 0, 0, 0}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CallOrder(test.program, {0, 1, 0, 1}), ElementsAre(1, 0, 2, 3));
}

}  // namespace
}  // namespace collage
