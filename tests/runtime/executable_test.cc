#include "collage/runtime/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <random>
#include <thread>

#include "collage/runtime/execution_plan.h"
#include "collage/runtime/plan_runner.h"
#include "tests/runtime/counting_new.h"
#include "tests/runtime/test_program.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr Device kDevice{DeviceKind::kCpu, 0, 2};

TEST(ExecutableTest, RandomProgramsGiveWhatDirectEvaluationGives) {
  for (unsigned seed = 0; seed < Rounds(400); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TestProgram test = RandomProgram(seed);
    std::mt19937 random(seed + 1000000);
    std::vector<std::vector<Tensor>> inputs;
    std::vector<std::vector<std::vector<uint32_t>>> expected;
    for (int run = 0; run < 3; ++run) {
      inputs.push_back(RandomInputs(test, random));
      expected.push_back(test.Evaluate(inputs.back()));
    }
    Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
    ASSERT_TRUE(executable) << executable.error().message;
    for (int run = 0; run < 3; ++run) {
      const Result<std::vector<Tensor>> outputs = executable->Run(inputs[run]);
      ASSERT_TRUE(outputs) << outputs.error().message;
      for (size_t i = 0; i < outputs->size(); ++i) ASSERT_EQ(Elements((*outputs)[i]), expected[run][i]) << "output " << i << " run " << run;
    }
  }
}

TEST(ExecutableTest, NothingIsAllocatedAfterTheFirstRun) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    TestProgram test = RandomProgram(seed);
    std::mt19937 random(seed);
    const std::vector<Tensor> inputs = RandomInputs(test, random);
    Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
    ASSERT_TRUE(executable);
    std::vector<Tensor> outputs = *executable->Run(inputs);
    ASSERT_TRUE(executable->Run(inputs, outputs));
    const size_t before = AllocationCount();
    const size_t in_use = ::mallinfo2().uordblks;
    const bool whole = executable->Run(inputs, outputs) && executable->Run(inputs, outputs);
    const size_t after = AllocationCount();
    EXPECT_EQ(::mallinfo2().uordblks, in_use);
    EXPECT_EQ(after, before) << "seed " << seed;
    EXPECT_TRUE(whole);
  }
}

std::vector<std::string> StepsOf(const Executable& executable) {
  std::vector<std::string> names;
  for (const StepProfile& step : executable.profile()) names.push_back(step.kind);
  return names;
}

TEST(ExecutableTest, OneConversionForAllWhoWantALayout) {
  TestProgram test;
  const TensorType type = IntType({1, 20, 4, 6});
  const Layout blocked = Layout::Of("aBcd16b");
  const size_t x = test.AddInput(type);
  const size_t a = test.AddCall({x}, {blocked}, {{type, blocked}})[0];
  const size_t b = test.AddCall({x, a}, {blocked, blocked}, {{type, blocked}})[0];
  test.AddOutput(test.AddCall({a, b}, {blocked, blocked}, {{type, Layout()}})[0]);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable);
  EXPECT_EQ(StepsOf(*executable), (std::vector<std::string>{"conversion", "kernel", "kernel", "kernel"}));
  EXPECT_EQ(executable->profile()[0].record.name, "plain -> aBcd16b of Tensor[(1, 20, 4, 6), int32]");
}

TEST(ExecutableTest, LayoutsThatAgreeOnEveryPlaceShareABuffer) {
  TestProgram test;
  const TensorType type = IntType({1, 480, 1, 1});
  const size_t x = test.AddCall({test.AddInput(type)}, {Layout()}, {{type, Layout::Of("aBcd16b")}})[0];
  const size_t view = test.AddView(x, IntType({1, 480}));
  test.AddOutput(test.AddCall({view, x}, {Layout(), Layout::Of("acdb")}, {{type, Layout()}})[0]);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable);
  EXPECT_EQ(StepsOf(*executable), (std::vector<std::string>{"kernel", "kernel"}));
}

TEST(ExecutableTest, AccumulationCopiesOnlyWhatIsStillNeeded) {
  const TensorType type = IntType({1, 20, 4, 6});
  for (const bool still_needed : {false, true}) {
    TestProgram test;
    const size_t x = test.AddInput(type);
    const size_t a = test.AddCall({x}, {Layout()}, {{type, Layout()}})[0];
    const size_t sum = test.AddCall({x, a}, {Layout(), Layout()}, {{type, Layout()}}, 1)[0];
    test.AddOutput(test.AddCall({sum, still_needed ? a : x}, {Layout(), Layout()}, {{type, Layout()}})[0]);
    Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
    ASSERT_TRUE(executable);
    EXPECT_EQ(executable->profile().size(), still_needed ? 4u : 3u);
  }
}

TEST(ExecutableTest, WhatIsJoinedIsComputedInPlace) {
  TestProgram test;
  const Layout blocked = Layout::Of("aBcd16b");
  const TensorType type = IntType({1, 32, 5, 3});
  const size_t x = test.AddInput(type);
  const auto call = [&](size_t input, const Layout& from) { return test.AddCall({input}, {from}, {{type, blocked}})[0]; };
  const size_t a = call(x, Layout());
  const size_t b = call(a, blocked);
  const size_t first = *test.AddJoin({a, b}, 1, blocked);
  const size_t c = test.AddCall({first}, {blocked}, {{type, blocked}})[0];
  const size_t second = *test.AddJoin({a, b, c}, 1, blocked);  // as dense blocks join
  const size_t half = *test.AddSlice(second, 1, 16, 48, blocked);
  test.AddOutput(test.AddCall({second, half}, {blocked, blocked}, {{type, Layout()}})[0]);
  std::mt19937 random(5);
  const std::vector<Tensor> inputs = RandomInputs(test, random);
  const std::vector<uint32_t> expected = test.Evaluate(inputs)[0];
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable) << executable.error().message;
  EXPECT_EQ(StepsOf(*executable), (std::vector<std::string>{"kernel", "kernel", "kernel", "kernel"}));
  EXPECT_EQ(Elements(executable->Run(inputs).value()[0]), expected);
}

TEST(ExecutableTest, PartsThatHaveAPlaceElsewhereAreCopied) {
  TestProgram test;
  const TensorType type = IntType({1, 32, 5, 3});
  const size_t x = test.AddInput(type);
  const size_t a = test.AddCall({x}, {Layout()}, {{type, Layout()}})[0];
  const size_t b = test.AddCall({x}, {Layout()}, {{type, Layout()}})[0];
  const size_t ab = *test.AddJoin({a, b}, 1, Layout());
  const size_t ba = *test.AddJoin({b, a}, 1, Layout());  // one of them has to be elsewhere
  const size_t with_input = *test.AddJoin({x, a}, 1, Layout());
  test.AddOutput(test.AddCall({ab, ba, with_input}, {Layout(), Layout(), Layout()}, {{type, Layout()}})[0]);
  std::mt19937 random(3);
  const std::vector<Tensor> inputs = RandomInputs(test, random);
  const std::vector<uint32_t> expected = test.Evaluate(inputs)[0];
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable) << executable.error().message;
  const std::vector<std::string> steps = StepsOf(*executable);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "copy"), 2);
  EXPECT_EQ(Elements(executable->Run(inputs).value()[0]), expected);
}

TEST(ExecutableTest, AJoinMayBeTheOutputItself) {
  TestProgram test;
  const TensorType type = IntType({1, 32, 5, 3});
  const size_t x = test.AddInput(type);
  const size_t a = test.AddCall({x}, {Layout()}, {{type, Layout()}})[0];
  const size_t b = test.AddCall({a}, {Layout()}, {{type, Layout()}})[0];
  test.AddOutput(*test.AddJoin({a, b}, 1, Layout()));
  test.AddOutput(b);  // lies inside of the other output
  std::mt19937 random(4);
  const std::vector<Tensor> inputs = RandomInputs(test, random);
  const auto expected = test.Evaluate(inputs);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable) << executable.error().message;
  EXPECT_EQ(StepsOf(*executable), (std::vector<std::string>{"kernel", "kernel", "copy"}));
  const std::vector<Tensor> outputs = executable->Run(inputs).value();
  EXPECT_EQ(Elements(outputs[0]), expected[0]);
  EXPECT_EQ(Elements(outputs[1]), expected[1]);
}

TEST(ExecutableTest, SlicesAndJoinsThatDoNotFitAreErrors) {
  const TensorType type = IntType({1, 32, 5, 3});
  const auto error_of = [&](const std::function<void(TestProgram&, size_t x, size_t a)>& change) {
    TestProgram test;
    const size_t x = test.AddInput(type);
    const size_t a = test.AddCall({x}, {Layout()}, {{type, Layout()}})[0];
    change(test, x, a);
    test.AddOutput(test.program.values.size() - 1);
    const Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
    return executable ? std::string("none") : executable.error().message;
  };
  const auto slice = [](Shape shape, Program::Slice slice) {
    return [=](TestProgram& test, size_t, size_t a) {
      const size_t value = test.AddValue(IntType(shape));
      test.program.values[value].slice = slice;
      test.program.values[value].slice->of = a;
    };
  };
  EXPECT_EQ(error_of(slice({1, 16, 5, 3}, {0, 1, 16, Layout()})), "none");
  EXPECT_THAT(error_of(slice({1, 16, 5, 3}, {0, 1, 17, Layout()})), HasSubstr("from element 17"));
  EXPECT_THAT(error_of(slice({1, 16, 5, 3}, {0, 1, 1, Layout()})), HasSubstr("from a multiple of 64 bytes on"));
  EXPECT_THAT(error_of(slice({1, 32, 2, 3}, {0, 2, 1, Layout()})), HasSubstr("does not lie together"));
  EXPECT_THAT(error_of(slice({1, 16, 5, 3}, {0, 7, 0, Layout()})), HasSubstr("along axis 7"));
  EXPECT_THAT(error_of(slice({1, 16, 5, 3}, {0, 1, 0, Layout::Of("ba")})), HasSubstr("in layout ba"));
  EXPECT_THAT(error_of(slice({1, 16, 5, 3}, {0, 1, -16, Layout()})), HasSubstr("from element -16"));
  EXPECT_THAT(error_of([&](TestProgram& test, size_t, size_t a) {
                test.AddValue(IntType({1, 64, 5, 3}));
                test.program.values.back().join = Program::Join{{a}, 1, Layout()};
              }),
              HasSubstr("not all of it"));
  EXPECT_THAT(error_of([&](TestProgram& test, size_t, size_t a) {
                const size_t value = test.AddValue(IntType({1, 64, 5, 3}));
                test.program.values[value].join = Program::Join{{a, value}, 1, Layout()};
              }),
              HasSubstr("made of a later value"));
}

TEST(ExecutableTest, AnAccumulatedInputOfTheCallerIsNotTouched) {
  TestProgram test;
  const TensorType type = IntType({480});
  const size_t x = test.AddInput(type);
  test.AddOutput(test.AddCall({x}, {Layout()}, {{type, Layout()}}, 0)[0]);
  std::mt19937 random(1);
  const std::vector<Tensor> inputs = RandomInputs(test, random);
  const std::vector<uint32_t> before = Elements(inputs[0]);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable->Run(inputs));
  EXPECT_EQ(Elements(inputs[0]), before);
}

TEST(ExecutableTest, WhatIsOnlyUpdatedMayLieWhereItsInputLies) {
  size_t found = 0;
  for (unsigned seed = 0; seed < Rounds(1000); ++seed) {
    const TestProgram test = RandomProgram(seed, /*plain=*/true);
    const ExecutionPlan plan = PlanExecution(test.program, 1);
    const auto types = [&](const std::vector<Endpoint>& endpoints) {
      std::vector<TensorType> types;
      for (const Endpoint& endpoint : endpoints) types.push_back(test.program.values[endpoint.value].type);
      return types;
    };
    const std::vector<std::optional<size_t>> updated = UpdatedInputs(plan, types(test.program.inputs), types(test.program.outputs));
    std::mt19937 random(seed);
    const std::vector<Tensor> inputs = RandomInputs(test, random);
    const std::vector<std::vector<uint32_t>> expected = test.Evaluate(inputs);
    std::vector<Tensor> outputs;
    std::vector<const void*> input_pointers;
    std::vector<void*> output_pointers;
    for (const Tensor& input : inputs) input_pointers.push_back(input.Bytes());
    for (size_t i = 0; i < updated.size(); ++i) {
      found += updated[i] ? 1 : 0;
      outputs.push_back(updated[i] ? inputs[*updated[i]] : Tensor(test.program.values[test.program.outputs[i].value].type));
      output_pointers.push_back(outputs.back().MutableBytes());
    }
    PlanRunner runner(plan, test.program, 1);
    Tensor memory(TensorType{{static_cast<int64_t>(runner.memory_bytes())}, DType::kUInt8});
    runner.PlaceMemory(memory.MutableBytes());
    runner.Bind(input_pointers, output_pointers);
    for (const ExecutionPlan::Step& step : plan.steps) {
      const bool is_kernel = step.kind == ExecutionPlan::Step::Kind::kKernel;
      ASSERT_TRUE(runner.RunStep(step, is_kernel ? test.program.calls[step.call].kernel.get() : nullptr)) << "seed " << seed;
    }
    for (size_t i = 0; i < outputs.size(); ++i) ASSERT_EQ(Elements(outputs[i]), expected[i]) << "seed " << seed << ", output " << i;
  }
  EXPECT_GT(found, Rounds(20));
}

TEST(ExecutableTest, UnalignedInputsAreStaged) {
  TestProgram test;
  const TensorType type = IntType({480});
  test.AddOutput(test.AddCall({test.AddInput(type)}, {Layout()}, {{type, Layout()}})[0]);
  std::mt19937 random(2);
  const Tensor memory = RandomTensor(IntType({481}), random);
  const auto owner = std::make_shared<Tensor>(memory);
  const std::vector<Tensor> inputs = {Tensor::View(type, owner->Bytes() + 4, owner)};
  const std::vector<uint32_t> expected = test.Evaluate(inputs)[0];
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  const Result<std::vector<Tensor>> outputs = executable->Run(inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ(Elements((*outputs)[0]), expected);
}

TEST(ExecutableTest, WrongTensorsAreErrorsThatNameThem) {
  TestProgram test;
  const TensorType type = IntType({480});
  test.AddOutput(test.AddCall({test.AddInput(type)}, {Layout()}, {{type, Layout()}})[0]);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  const Tensor good(type);
  std::vector<Tensor> outputs = {Tensor(type)};
  const auto error = [&](const std::vector<Tensor>& inputs, std::vector<Tensor> results) {
    const Status status = executable->Run(inputs, results);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(error({good}, outputs), "");
  EXPECT_EQ(error({}, outputs), "0 inputs were given, expected 1");
  EXPECT_EQ(error({Tensor(IntType({48}))}, outputs), "input 'input0' has type Tensor[(48,), int32], expected Tensor[(480,), int32]");
  EXPECT_EQ(error({Tensor()}, outputs), "input 'input0' is not there, expected Tensor[(480,), int32]");
  EXPECT_THAT(error({good}, {Tensor({{480}, DType::kFloat32})}), HasSubstr("output 'output0' has type Tensor[(480,), float32]"));
  EXPECT_THAT(error({good}, {good}), HasSubstr("shares memory"));
  const auto owner = std::make_shared<Tensor>(type);
  EXPECT_THAT(error({good}, {Tensor::View(type, owner->Bytes(), owner)}), HasSubstr("read-only"));
}

TEST(ExecutableTest, InconsistentProgramsAreErrors) {
  const TensorType type = IntType({480});
  const auto error = [&](const std::function<void(TestProgram&)>& damage) {
    TestProgram test;
    const size_t x = test.AddInput(type);
    const size_t y = test.AddCall({x}, {Layout()}, {{type, Layout()}})[0];
    test.AddOutput(test.AddCall({y}, {Layout()}, {{type, Layout()}})[0]);
    damage(test);
    const Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
    return executable ? std::string("no error") : executable.error().message;
  };
  EXPECT_EQ(error([](TestProgram&) {}), "no error");
  EXPECT_THAT(error([](TestProgram& test) { std::swap(test.program.calls[0], test.program.calls[1]); }), HasSubstr("before it is defined"));
  EXPECT_THAT(error([](TestProgram& test) { test.program.calls[1].outputs[0] = 1; }), HasSubstr("defined twice"));
  EXPECT_THAT(error([](TestProgram& test) { test.program.calls[1].inputs[0] = 99; }), HasSubstr("value 99 of 3"));
  EXPECT_THAT(error([](TestProgram& test) { test.program.calls[1].inputs.push_back(0); }), HasSubstr("expected 2"));
  EXPECT_THAT(error([](TestProgram& test) { test.program.values[1].type.shape = {479}; }), HasSubstr("(479,)"));
  EXPECT_THAT(error([](TestProgram& test) { test.program.calls[1].kernel.reset(); }), HasSubstr("is not there"));
  EXPECT_THAT(error([](TestProgram& test) { test.program.outputs[0].value = 7; }), HasSubstr("output 'output0'"));
  EXPECT_THAT(error([](TestProgram& test) { test.AddView(2, IntType({5})), test.program.outputs[0].value = 3; }),
              HasSubstr("another size"));
}

TEST(ExecutableTest, SizesThatOverflowOrAreNotThereAreErrors) {
  const auto error = [&](const std::vector<Shape>& inputs, size_t workspace = 0) {
    TestProgram test;
    for (const Shape& shape : inputs) test.AddInput(IntType(shape));
    const TensorType type = IntType({16});
    const size_t x = test.AddInput(type);
    test.AddOutput(test.AddCall({x}, {Layout()}, {{type, Layout()}})[0]);
    if (workspace > 0) {
      test.program.calls[0].kernel = std::make_unique<FakeKernel>(std::vector<Port>{{type, Layout()}}, std::vector<Port>{{type, Layout()}},
                                                                  std::nullopt, workspace, 1);
    }
    const Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
    return executable ? std::string("no error") : executable.error().message;
  };
  EXPECT_EQ(error({{16}}), "no error");
  EXPECT_THAT(error({{int64_t{1} << 61, 2}}), HasSubstr("value 0 is no tensor that fits into memory"));
  EXPECT_THAT(error({{int64_t{1} << 61, 8, 0}}), HasSubstr("value 0 is no tensor that fits into memory"));
  const Shape half_of_all = {int64_t{1} << 43, 2};
  EXPECT_THAT(error({half_of_all, half_of_all}), HasSubstr("with value 0 the tensors are more than can be addressed"));
  EXPECT_THAT(error({{int64_t{1} << 42}}), HasSubstr("bytes for its tensors; there are"));
  EXPECT_THAT(error({}, SIZE_MAX), HasSubstr("workspace the tensors are more than can be addressed"));
  EXPECT_THAT(error({}, size_t{1} << 44), HasSubstr("bytes for its tensors; there are"));
}

TEST(ExecutableTest, ProfilesStepsOnDemand) {
  TestProgram test;
  const TensorType type = IntType({1, 20, 4, 6});
  const size_t y = test.AddCall({test.AddInput(type)}, {Layout()}, {{type, Layout::Of("acdb")}})[0];
  test.AddOutput(y);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  const std::vector<Tensor> inputs = {Tensor(type)};
  ASSERT_TRUE(executable->Run(inputs));
  EXPECT_EQ(executable->profile()[0].calls, 0u);
  executable->SetProfiling(true);
  ASSERT_TRUE(executable->Run(inputs));
  ASSERT_TRUE(executable->Run(inputs));
  executable->SetProfiling(false);
  ASSERT_TRUE(executable->Run(inputs));
  ASSERT_EQ(executable->profile().size(), 2u);
  EXPECT_EQ(executable->profile()[0].record.name, "k0");
  for (const StepProfile& step : executable->profile()) {
    EXPECT_EQ(step.calls, 2u);
    EXPECT_GT(step.microseconds, 0.0);
  }
}

class SlowKernel : public Kernel {
 public:
  explicit SlowKernel(const TensorType& type) { inputs_ = outputs_ = {{type, Layout()}}; }
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override {
    entered = true;
    while (!leave) std::this_thread::yield();
    return Fail("told to fail");
  }
  std::atomic<bool> entered{false};
  std::atomic<bool> leave{false};
};

TEST(ExecutableTest, ASecondRunMeanwhileIsRefusedAndKernelErrorsNameTheKernel) {
  const TensorType type = IntType({4});
  auto kernel = std::make_unique<SlowKernel>(type);
  SlowKernel& slow = *kernel;
  Program program;
  program.values = {{type}, {type}};
  program.inputs = {{"x", 0}};
  program.outputs = {{"y", 1}};
  program.calls.push_back({{"slow_0", "fake", "", "", {}, {}}, std::move(kernel), {0}, {1}});
  Result<Executable> executable = Executable::Create(std::move(program), kDevice);
  const std::vector<Tensor> inputs = {Tensor(type)};
  std::string first;
  std::thread thread([&] { first = executable->Run(inputs).error().message; });
  while (!slow.entered) std::this_thread::yield();
  EXPECT_THAT(executable->Run(inputs).error().message, HasSubstr("running already"));
  slow.leave = true;
  thread.join();
  EXPECT_EQ(first, "kernel 'slow_0' of backend 'fake': told to fail");
}

/// Keeps what is said to be running while it runs.
class WatchedKernel : public Kernel {
 public:
  WatchedKernel(const TensorType& type, const std::atomic<uint64_t>& now) : now_(now) { inputs_ = outputs_ = {{type, Layout()}}; }
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override {
    seen.push_back(now_.load());
    return fails ? Status(Fail("told to fail")) : Status();
  }
  std::vector<uint64_t> seen;
  bool fails = false;

 private:
  const std::atomic<uint64_t>& now_;
};

TEST(ExecutableTest, WatchSaysWhichStepRunsAndWhichOneFailed) {
  const TensorType type = IntType({4});
  std::atomic<uint64_t> now{0};
  Program program;
  program.values = {{type}, {type}, {type}, {type}};
  program.inputs = {{"x", 0}};
  program.outputs = {{"y", 3}};
  std::vector<WatchedKernel*> kernels;
  for (size_t i = 0; i < 3; ++i) {
    auto kernel = std::make_unique<WatchedKernel>(type, now);
    kernels.push_back(kernel.get());
    program.calls.push_back({{"k" + std::to_string(i), "fake", "", "", {}, {}}, std::move(kernel), {i}, {i + 1}});
  }
  Result<Executable> executable = Executable::Create(std::move(program), kDevice);
  ASSERT_TRUE(executable);
  ASSERT_EQ(executable->profile().size(), 3u);
  constexpr uint32_t kNobody = 0;
  executable->Watch(now, {7, kNobody, 9});
  const std::vector<Tensor> inputs = {Tensor(type)};
  for (const bool is_profiling : {false, true}) {
    executable->SetProfiling(is_profiling);
    for (WatchedKernel* kernel : kernels) kernel->seen.clear();
    ASSERT_TRUE(executable->Run(inputs));
    EXPECT_EQ(now.load(), 0u) << "all went well";
    ASSERT_TRUE(executable->Run(inputs));
    for (const size_t step : {0, 2}) {
      ASSERT_EQ(kernels[step]->seen.size(), 2u);
      EXPECT_NE(kernels[step]->seen[0], kernels[step]->seen[1]) << "what goes on can be told from what hangs";
      for (const uint64_t seen : kernels[step]->seen) EXPECT_EQ(static_cast<uint32_t>(seen), step == 0 ? 7u : 9u);
    }
    EXPECT_EQ(kernels[1]->seen, std::vector<uint64_t>(2, 0)) << "a step of nobody's";
    kernels[2]->fails = true;
    ASSERT_FALSE(executable->Run(inputs));
    EXPECT_EQ(static_cast<uint32_t>(now.load()), 9u);
    kernels[2]->fails = false;
  }
}

TEST(ExecutableTest, LongChainsPlanFastAndReuseTwoBuffers) {
  TestProgram test;
  const TensorType type = IntType({1000});
  size_t value = test.AddInput(type);
  for (size_t i = 0; i < Rounds(20000); ++i) value = test.AddCall({value}, {Layout()}, {{type, Layout()}})[0];
  test.AddOutput(value);
  Result<Executable> executable = Executable::Create(std::move(test.program), kDevice);
  ASSERT_TRUE(executable);
  EXPECT_EQ(executable->arena_bytes(), 2 * 4032u);
}

}  // namespace
}  // namespace collage
