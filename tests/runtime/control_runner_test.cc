#include "collage/runtime/control_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/counting_new.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using Step = ControlProgram::Step;

const TensorType kNumber{{}, DType::kInt64};
const TensorType kTruth{{}, DType::kBool};

/// Counts down: block 0 gives n - 1 and whether that is above zero, and adds n to a sum.
ControlProgram CountDown() {
  ControlProgram program;
  ControlProgram::Function main{"main", {kNumber, kNumber, kTruth, kNumber}, 1, {}, {}, {3}};
  main.constants.emplace_back(1, Tensor::Scalar(int64_t{0}, DType::kInt64));
  main.constants.emplace_back(2, Tensor::Scalar(true, DType::kBool));
  main.steps.push_back({Step::Kind::kCall, 1, {0, 1, 2}, {3}});
  ControlProgram::Function loop{"loop", {kNumber, kNumber, kTruth, kNumber}, 3, {}, {}, {3}};
  loop.steps.push_back({Step::Kind::kBranch, 2, {0, 1}, {3}, 2, 3, {1}});
  ControlProgram::Function again{"again", {kNumber, kNumber, kNumber, kNumber, kTruth, kNumber}, 2, {}, {}, {5}};
  again.steps.push_back({Step::Kind::kBlock, 0, {0, 1}, {2, 3, 4}});
  again.steps.push_back({Step::Kind::kCall, 1, {2, 3, 4}, {5}});
  program.functions = {main, loop, again, {"end", {kNumber}, 1, {}, {}, {0}}};
  return program;
}

const std::vector<Signature> kBlocks{{{kNumber, kNumber}, {kNumber, kNumber, kTruth}}};

const std::vector<ControlRunner::Updates> kNoUpdates{ControlRunner::Updates(3)};

Status RunCount(size_t, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t n = *inputs[0].Data<int64_t>();
  const int64_t sum = *inputs[1].Data<int64_t>();
  if (n < 0) return Fail("a number below zero");
  *outputs[0].MutableData<int64_t>() = n - 1;
  *outputs[1].MutableData<int64_t>() = sum + n;
  *outputs[2].MutableData<bool>() = n > 1;
  return {};
}

int64_t SumTo(ControlRunner& runner, int64_t n) {
  const std::vector<Tensor> inputs{Tensor::Scalar(n, DType::kInt64)};
  std::vector<Tensor> outputs{Tensor(kNumber)};
  const Status status = runner.Run(0, inputs, outputs, RunCount);
  EXPECT_TRUE(status) << status.error().message;
  return *outputs[0].Data<int64_t>();
}

std::string ErrorOf(const ControlProgram& program) {
  const Status status = CheckControlProgram(program, kBlocks);
  return status ? "no error" : status.error().message;
}

TEST(ControlRunner, CountsInTheMemoryOfTwoIterations) {
  ASSERT_EQ(ErrorOf(CountDown()), "no error");
  ControlRunner runner(CountDown(), kBlocks, kNoUpdates);
  EXPECT_EQ(SumTo(runner, 3), 6);
  const size_t bytes = runner.held_bytes();
  const auto last = static_cast<int64_t>(Rounds(1000000));
  EXPECT_EQ(SumTo(runner, last), last * (last + 1) / 2);
  EXPECT_EQ(runner.held_bytes(), bytes);
}

TEST(ControlRunner, AllocatesNothingOnceItIsWarm) {
  ControlRunner runner(CountDown(), kBlocks, kNoUpdates);
  const std::vector<Tensor> inputs{Tensor::Scalar(int64_t{100}, DType::kInt64)};
  std::vector<Tensor> outputs{Tensor(kNumber)};
  const ControlRunner::RunBlock run_block = RunCount;
  ASSERT_TRUE(runner.Run(0, inputs, outputs, run_block));
  const size_t before = AllocationCount();
  ASSERT_TRUE(runner.Run(0, inputs, outputs, run_block));
  EXPECT_EQ(AllocationCount(), before);
}

TEST(ControlRunner, AnErrorOfABlockEndsTheRunAndLeavesItUsable) {
  ControlRunner runner(CountDown(), kBlocks, kNoUpdates);
  std::vector<Tensor> outputs{Tensor(kNumber)};
  const Status status = runner.Run(0, std::vector<Tensor>{Tensor::Scalar(int64_t{-1}, DType::kInt64)}, outputs, RunCount);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "a number below zero");
  EXPECT_EQ(SumTo(runner, 4), 10);
}

/// As CountDown, but what it ends with has the sum of before the last iteration beside the sum.
ControlProgram CountDownAndKeep() {
  ControlProgram program = CountDown();
  ControlProgram::Function& again = program.functions[2];
  again.steps.insert(again.steps.begin() + 1, {Step::Kind::kBlock, 1, {1, 3}, {6}});
  again.types.push_back(kNumber);
  again.steps[2].inputs = {2, 6, 4};
  return program;
}

TEST(ControlRunner, WhatABlockOnlyUpdatesIsItsOutputWhereNobodyElseHoldsIt) {
  // Of the sum, whose first value is a constant.
  const std::vector<ControlRunner::Updates> updates{{std::nullopt, 1, std::nullopt}, {std::nullopt}};
  size_t runs = 0;
  size_t in_place = 0;
  const ControlRunner::RunBlock run_block = [&](size_t block, std::span<const Tensor> inputs, std::span<Tensor> outputs) -> Status {
    if (block == 1) {
      *outputs[0].MutableData<int64_t>() = *inputs[1].Data<int64_t>() - *inputs[0].Data<int64_t>();
      return {};
    }
    ++runs;
    in_place += inputs[1].Bytes() == outputs[1].Bytes() ? 1 : 0;
    return RunCount(block, inputs, outputs);
  };
  const std::vector<Tensor> inputs{Tensor::Scalar(int64_t{10}, DType::kInt64)};
  std::vector<Tensor> outputs{Tensor(kNumber)};
  ControlRunner runner(CountDown(), kBlocks, {updates[0]});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(runner.Run(0, inputs, outputs, run_block));
    EXPECT_EQ(*outputs[0].Data<int64_t>(), 55);
  }
  EXPECT_EQ(runs, 20);
  EXPECT_EQ(in_place, 18);
  // Here a later step reads what the first block is given.
  std::vector<Signature> blocks = kBlocks;
  blocks.push_back({{kNumber, kNumber}, {kNumber}});
  ASSERT_TRUE(CheckControlProgram(CountDownAndKeep(), blocks));
  ControlRunner keeping(CountDownAndKeep(), blocks, updates);
  in_place = 0;
  ASSERT_TRUE(keeping.Run(0, inputs, outputs, run_block));
  EXPECT_EQ(*outputs[0].Data<int64_t>(), 1);
  EXPECT_EQ(in_place, 0);
}

TEST(ControlProgram, WhatDoesNotFitTogetherIsAnError) {
  const auto changed = [](const auto& change) {
    ControlProgram program = CountDown();
    change(program.functions);
    return ErrorOf(program);
  };
  using Functions = std::vector<ControlProgram::Function>;
  EXPECT_EQ(changed([](Functions& f) { f.clear(); }), "there is no function to enter");
  EXPECT_EQ(changed([](Functions& f) { f[0].parameters = 9; }), "function 'main': has more parameters than tensors");
  EXPECT_EQ(changed([](Functions& f) { f[0].results = {9}; }), "function 'main': gives tensor 9, which is not there");
  EXPECT_THAT(changed([](Functions& f) { f[0].constants.pop_back(); }), HasSubstr("function 'main': uses tensor 2 before it is there"));
  EXPECT_THAT(changed([](Functions& f) { f[0].constants[0].first = 7; }), HasSubstr("names tensor 7 of 4"));
  EXPECT_THAT(changed([](Functions& f) { f[0].constants[0].second = Tensor(kTruth); }), HasSubstr("a constant is not of the type"));
  EXPECT_THAT(changed([](Functions& f) { f[0].steps[0].callee = 4; }), HasSubstr("runs number 4, which is not there"));
  EXPECT_THAT(changed([](Functions& f) { f[1].steps[0].otherwise = 4; }), HasSubstr("runs number 4, which is not there"));
  EXPECT_THAT(changed([](Functions& f) { f[1].steps[0].condition = 0; }), HasSubstr("a condition is"));
  EXPECT_THAT(changed([](Functions& f) { f[1].steps[0].condition = 77; }), HasSubstr("uses tensor 77 before it is there"));
  EXPECT_THAT(changed([](Functions& f) { f[2].steps[0].outputs = {2, 3, 0}; }), HasSubstr("outputs: number 2 is int64, expected bool"));
  EXPECT_THAT(changed([](Functions& f) { f[2].steps[0].outputs = {2, 2, 4}; }), HasSubstr("gives tensor 2 twice"));
  EXPECT_THAT(changed([](Functions& f) { f[2].steps[1].inputs = {2, 3}; }), HasSubstr("gives 2 inputs where 3 are right"));
}

}  // namespace
}  // namespace collage
