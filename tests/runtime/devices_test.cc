#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>

#include "collage/runtime/executable.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/test_program.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Device kHost{DeviceKind::kCpu, 0, 2};

using Devices = std::array<std::shared_ptr<FakeDevice>, 2>;
Devices MakeDevices(size_t memory = size_t{1} << 30) {
  return {std::make_shared<FakeDevice>(0, memory), std::make_shared<FakeDevice>(1, memory)};
}

void Move(Program::KernelCall& call, const std::shared_ptr<FakeDevice>& device) {
  call.kernel = std::make_unique<FakeDeviceKernel>(device, std::move(call.kernel));
}

/// Puts calls onto devices by chance: 0 is the host.
std::vector<size_t> PutAnywhere(TestProgram& test, const Devices& devices, std::mt19937& random) {
  std::vector<size_t> places;
  for (Program::KernelCall& call : test.program.calls) {
    places.push_back(random() % 3);
    if (places.back() > 0) Move(call, devices[places.back() - 1]);
  }
  return places;
}

/// What has to be copied where all tensors are in row-major order: each tensor once to each place where it is wanted and not made; from one
/// accelerator to another by way of the host.
size_t CopiesNeeded(const TestProgram& test, const std::vector<size_t>& places) {
  const auto tensor_of = [&](size_t value) {
    while (test.program.values[value].view_of) value = *test.program.values[value].view_of;
    return value;
  };
  std::vector<size_t> made(test.program.values.size(), 0);
  std::set<std::pair<size_t, size_t>> copies;  // tensor, place
  const std::function<void(size_t, size_t)> want = [&](size_t value, size_t place) {
    const size_t tensor = tensor_of(value);
    // Slices and joins lie on the host.
    for (const size_t source : test.program.values[tensor].Sources()) want(source, 0);
    if (test.program.values[tensor].constant.Defined() || made[tensor] == place) return;
    copies.emplace(tensor, place);
    if (made[tensor] > 0 && place > 0) copies.emplace(tensor, 0);
  };
  for (size_t i = 0; i < places.size(); ++i) {
    for (const size_t input : test.calls[i].inputs) want(input, places[i]);
    for (const size_t output : test.calls[i].outputs) made[output] = places[i];
  }
  for (const Endpoint& output : test.program.outputs) want(output.value, 0);
  return copies.size();
}

TEST(DevicesTest, RandomProgramsOnThreeDevicesGiveWhatDirectEvaluationGives) {
  for (unsigned seed = 0; seed < Rounds(400); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Devices devices = MakeDevices();
    TestProgram test = RandomProgram(seed);
    std::mt19937 random(seed + 2000000);
    for (const auto& device : devices) device->transposes = random() % 2 == 0;
    PutAnywhere(test, devices, random);
    Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
    ASSERT_TRUE(executable) << executable.error().message;
    ASSERT_NO_FATAL_FAILURE(ExpectWhatEvaluationGives(*executable, RandomProgram(seed), random));
  }
}

TEST(DevicesTest, ExactlyTheNeededCopiesAreMade) {
  for (unsigned seed = 0; seed < Rounds(400); ++seed) {
    const Devices devices = MakeDevices();
    TestProgram test = RandomProgram(seed, /*plain=*/true);
    std::mt19937 random(seed + 3000000);
    const std::vector<size_t> places = PutAnywhere(test, devices, random);
    const size_t needed = CopiesNeeded(test, places);
    const std::vector<Tensor> inputs = RandomInputs(test, random);
    Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
    ASSERT_TRUE(executable) << executable.error().message;
    for (const auto& device : devices) device->copies_in = device->copies_out = 0;
    ASSERT_TRUE(executable->Run(inputs));
    int made = 0;
    for (const auto& device : devices) made += device->copies_in + device->copies_out;
    ASSERT_EQ(made, static_cast<int>(needed)) << "seed " << seed;
  }
}

std::vector<std::string> StepsOf(const Executable& executable) {
  std::vector<std::string> names;
  for (const StepProfile& step : executable.profile()) names.push_back(step.kind + " " + ToString(step.device));
  return names;
}

/// A chain on a device beside a call of the host, and one that reads both.
TestProgram TwoBranches(const std::shared_ptr<FakeDevice>& device) {
  TestProgram test;
  const TensorType type = IntType({480});
  const auto call = [&](const std::vector<size_t>& inputs) {
    return test.AddCall(inputs, std::vector<Layout>(inputs.size()), {{type, Layout()}})[0];
  };
  const size_t x = test.AddInput(type);
  const size_t a = call({x});
  const size_t b = call({a});
  const size_t c = call({x});
  test.AddOutput(call({b, c}));
  Move(test.program.calls[0], device);
  Move(test.program.calls[1], device);
  return test;
}

TEST(DevicesTest, TheHostWaitsWhereItReads) {
  const auto device = std::make_shared<FakeDevice>();
  TestProgram test = TwoBranches(device);
  Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
  ASSERT_TRUE(executable);
  EXPECT_THAT(StepsOf(*executable), ElementsAre("transfer cuda:0", "kernel cuda:0", "kernel cuda:0", "kernel cpu:0", "transfer cuda:0",
                                                "wait cuda:0", "kernel cpu:0"));
  EXPECT_EQ(executable->profile()[0].record.name, "plain@cpu:0 -> plain@cuda:0 of Tensor[(480,), int32]");
  device->waits = 0;
  ASSERT_TRUE(executable->Run(RandomInputs(TwoBranches(device), *std::make_unique<std::mt19937>(1))));
  EXPECT_EQ(device->waits, 1);
}

/// A call on a device that gives its result with channels last, and two that want it with channels first.
TestProgram ChannelsLastThenFirst(const std::shared_ptr<FakeDevice>& device) {
  TestProgram test;
  const TensorType type = IntType({2, 5, 3, 4});
  const Layout last = Layout::Of("acdb");
  const size_t x = test.AddInput(type);
  const size_t a = test.AddCall({x}, {last}, {{type, last}})[0];
  test.AddOutput(test.AddCall({a}, {Layout()}, {{type, last}})[0]);
  test.AddOutput(test.AddCall({a}, {Layout()}, {{type, Layout()}})[0]);
  for (Program::KernelCall& call : test.program.calls) Move(call, device);
  return test;
}

TEST(DevicesTest, ADeviceThatTransposesConvertsLayoutsItself) {
  const auto device = std::make_shared<FakeDevice>();
  device->transposes = true;
  TestProgram test = ChannelsLastThenFirst(device);
  Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
  ASSERT_TRUE(executable);
  EXPECT_THAT(StepsOf(*executable),
              ElementsAre("transfer cuda:0", "conversion cuda:0", "kernel cuda:0", "conversion cuda:0", "kernel cuda:0", "kernel cuda:0",
                          "conversion cuda:0", "transfer cuda:0", "transfer cuda:0", "wait cuda:0"));
  EXPECT_EQ(executable->profile()[1].record.name, "plain@cuda:0 -> acdb@cuda:0 of Tensor[(2, 5, 3, 4), int32]");
  EXPECT_EQ(executable->profile()[7].record.name, "plain@cuda:0 -> plain@cpu:0 of Tensor[(2, 5, 3, 4), int32]");
  std::mt19937 random(3);
  for (int run = 0; run < 3; ++run) ASSERT_NO_FATAL_FAILURE(ExpectWhatEvaluationGives(*executable, ChannelsLastThenFirst(device), random));
  EXPECT_EQ(device->recordings, 1) << "conversions are no reason to stop recording";
  EXPECT_GT(device->transpositions, 0);
}

TEST(DevicesTest, WhatADeviceIsGivenBetweenStepsOfTheHostIsRecordedOnceAndToldApartByItsClock) {
  const auto device = std::make_shared<FakeDevice>();
  TestProgram test = TwoBranches(device);
  Executable executable = *Executable::Create(std::move(test.program), kHost);
  std::mt19937 random(1);
  // Four runs, the third of them profiled. The first is none of a recording's: what runs for the first time may allocate.
  ASSERT_NO_FATAL_FAILURE(ExpectWhatEvaluationGives(executable, TwoBranches(device), random));
  EXPECT_EQ(device->recordings, 1);
  EXPECT_EQ(device->recorded_runs, 3);
  size_t kernels = 0;
  for (const StepProfile& step : executable.profile()) {
    EXPECT_EQ(step.calls, 1u) << step.kind;
    if (step.kind != "kernel" || step.device.kind != DeviceKind::kCuda) continue;
    EXPECT_DOUBLE_EQ(step.microseconds, FakeDevice::kSecondsOfPart * 1e6);
    ++kernels;
  }
  EXPECT_EQ(kernels, 2u);
}

TEST(DevicesTest, ErrorsOfADeviceSayWhichAndTheNextRunIsWhole) {
  const auto device = std::make_shared<FakeDevice>();
  TestProgram test = TwoBranches(device);
  std::mt19937 random(1);
  const std::vector<Tensor> inputs = RandomInputs(test, random);
  const std::vector<uint32_t> expected = test.Evaluate(inputs)[0];
  Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
  ASSERT_TRUE(executable);
  device->good_copies = 1;
  const Result<std::vector<Tensor>> failed = executable->Run(inputs);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "cuda:0: the copy failed");
  device->good_copies = -1;
  const Result<std::vector<Tensor>> outputs = executable->Run(inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ(Elements((*outputs)[0]), expected);
}

TEST(DevicesTest, MemoryThatIsExceededIsAnErrorThatSaysByHowMuch) {
  constexpr size_t kTensor = size_t{480} * 4;  // a multiple of the alignment
  for (const size_t memory : {3 * kTensor, 3 * kTensor - 8}) {
    const auto device = std::make_shared<FakeDevice>(0, memory);
    TestProgram test;
    const TensorType type = IntType({480});
    const std::vector<Layout> two(2);
    std::mt19937 random(1);
    const size_t x = test.AddInput(type);
    const size_t weight = test.AddConstant(RandomTensor(type, random));
    test.AddOutput(test.AddCall({x, weight}, two, {{type, Layout()}})[0]);
    Move(test.program.calls[0], device);
    const Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
    EXPECT_EQ(executable.has_value(), memory == 3 * kTensor);
    if (!executable) {
      EXPECT_THAT(executable.error().message, HasSubstr("8 too many"));
    }
    EXPECT_EQ(device->allocated_bytes(), executable ? 3 * kTensor : 0);
  }
}

TEST(DevicesTest, ConstantsAreCopiedOnceForAllRuns) {
  const auto device = std::make_shared<FakeDevice>();
  TestProgram test;
  const TensorType type = IntType({1, 20, 4, 6});
  std::mt19937 random(1);
  const size_t x = test.AddInput(type);
  const size_t weight = test.AddConstant(RandomTensor(type, random));
  const Layout blocked = Layout::Of("aBcd16b");
  test.AddOutput(test.AddCall({x, weight}, {Layout(), blocked}, {{type, blocked}})[0]);
  Move(test.program.calls[0], device);
  const std::vector<Tensor> inputs = RandomInputs(test, random);
  const std::vector<uint32_t> expected = test.Evaluate(inputs)[0];
  Result<Executable> executable = Executable::Create(std::move(test.program), kHost);
  ASSERT_TRUE(executable);
  EXPECT_EQ(device->copies_in, 1);
  for (int run = 0; run < 2; ++run) EXPECT_EQ(Elements((*executable->Run(inputs))[0]), expected);
  EXPECT_EQ(device->copies_in, 3);
  EXPECT_EQ(device->copies_out, 2);
}

}  // namespace
}  // namespace collage
