#include "collage/lower/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "collage/ir/parse.h"
#include "collage/op/interpreter.h"
#include "tests/lower/interpreter_backend.h"
#include "tests/lower/random_partitioned_module.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LowerTest : public ::testing::Test {
 protected:
  LowerTest() {
    options_.device.threads = 2;
    options_.program.fallback_backend = "library";
    options_.program.default_backend = "machine";
    options_.find_backend = [this](const std::string& name, const Device&) -> Result<const Backend*> {
      if (name == "library") return &library_;
      if (name == "machine") return &machine_;
      return Fail("unknown backend '" + name + "'; available: library, machine");
    };
  }

  static IRModule Parse(const std::string& text) {
    Result<ParsedModule> parsed = ParseModule(text, Operators(), {{}, RandomConstants(1), {}});
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed->module;
  }

  std::string ErrorOf(const std::string& text) {
    const Result<LoweredModel> model = Lower(Parse(text), options_);
    return model ? "no error" : model.error().message;
  }

  InterpreterBackend library_{"library", false};
  InterpreterBackend machine_{"machine", true};
  LowerOptions options_;
};

TEST_F(LowerTest, RandomPartitionedModulesGiveWhatTheirOperatorsGive) {
  for (unsigned seed = 0; seed < Rounds(250); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const IRModule module = RandomPartitionedModule(seed).Make();
    Result<LoweredModel> model = Lower(module, options_);
    ASSERT_TRUE(model) << model.error().message;
    for (uint64_t run = 0; run < 2; ++run) {
      std::vector<Tensor> inputs;
      for (const NamedType& input : model->executable.inputs())
        FillRandom(inputs.emplace_back(input.type), seed * 10 + run + inputs.size());
      const std::vector<Tensor> expected = Interpret(module.Main(), inputs);
      const Result<std::vector<Tensor>> outputs = model->executable.Run(inputs);
      ASSERT_TRUE(outputs) << outputs.error().message;
      ASSERT_EQ(outputs->size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitwiseEqual((*outputs)[i], expected[i])) << "output " << i;
    }
  }
}

constexpr const char* kInPlaceProgram = R"(
    def @join(%a: Tensor[(1, 16, 2, 2), float32], %b: Tensor[(1, 16, 2, 2), float32], Primitive=1, Compiler="in_place", Variant="aBcd8b")
        -> Tensor[(1, 32, 2, 2), float32] { %0 = (%a, %b); concatenate(%0, axis=1) }
    def @cut(%a: Tensor[(1, 32, 2, 2), float32], Primitive=1, Compiler="in_place", Variant="plain")
        -> (Tensor[(1, 8, 2, 2), float32], Tensor[(1, 24, 2, 2), float32]) { split(%a, indices_or_sections=[8], axis=1) }
    def @main(%x: Tensor[(1, 16, 2, 2), float32]) {
      %0 = tanh(%x);
      %1 = @join(%0, %x);
      %2 = @cut(%1);
      (exp(%2.1), %2.0)
    })";

TEST_F(LowerTest, PartitionsInPlaceHaveNoKernel) {
  const IRModule module = Parse(kInPlaceProgram);
  Result<LoweredModel> model = Lower(module, options_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->executable.calls().size(), 2u);
  Tensor input(TensorType{{1, 16, 2, 2}, DType::kFloat32});
  FillRandom(input, 5);
  const std::vector<Tensor> outputs = model->executable.Run(std::vector<Tensor>{input}).value();
  const std::vector<Tensor> expected = InterpretMain(module, {input}).value();
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(BitwiseEqual(outputs[i], expected[i])) << i;
}

TEST_F(LowerTest, WhatCannotBeInPlaceIsAnErrorThatNamesThePartition) {
  EXPECT_THAT(ErrorOf(R"(
    def @f(%a: Tensor[(1, 4), float32], Primitive=1, Compiler="in_place", Variant="plain") -> Tensor[(1, 4), float32] { tanh(%a) }
    def @main(%x: Tensor[(1, 4), float32]) { @f(%x) })"),
              HasSubstr("partition 'f': expected one concatenate, split or strided_slice"));
  EXPECT_THAT(ErrorOf(R"(
    def @f(%a: Tensor[(2, 4), float32], Primitive=1, Compiler="in_place", Variant="plain") -> Tensor[(2, 2), float32]
        { strided_slice(%a, begin=[0], end=[2], axes=[1]) }
    def @main(%x: Tensor[(2, 4), float32]) { tanh(@f(%x)) })"),
              HasSubstr("in which it does not lie together"));
}

TEST_F(LowerTest, RecordsSayWhatRunsWhere) {
  const Result<LoweredModel> model = Lower(Parse(R"(
    def @f(%a: Tensor[(1, 4, 2, 2), float32], Primitive=1) -> Tensor[(1, 4, 2, 2), float32] { nn.relu(%a) }
    def @main(%x: Tensor[(1, 4, 2, 2), float32]) {
      %0 = fn (%a: Tensor[(1, 4, 2, 2), float32], Primitive=1, Compiler="library", global_symbol="p0", Variant="acdb")
           -> Tensor[(1, 4, 2, 2), float32] { %1 = tanh(%a); add(%1, %a) };
      %2 = %0(%x);
      %3 = reshape(%2, newshape=[1, 2, 4, 2]);
      %4 = @f(%2);
      (%4, exp(%3))
    })"),
                                           options_);
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<Program::KernelCall>& calls = model->executable.calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].record.name, "p0");
  EXPECT_EQ(calls[0].record.variant, "acdb");
  EXPECT_EQ(calls[0].record.backend_version, "1.0");
  EXPECT_THAT(calls[0].record.operators, ElementsAre("tanh", "add"));
  // The view makes exp's result the deeper one.
  EXPECT_EQ(calls[1].record.name, "collage_library_exp");
  EXPECT_EQ(calls[2].record.backend, "machine");
  EXPECT_EQ(calls[2].record.name, "f");
  EXPECT_EQ(calls[2].record.variant, "plain");
  EXPECT_EQ(model->executable.inputs()[0].name, "x");
  EXPECT_EQ(model->executable.outputs()[1].name, "output1");
  EXPECT_EQ(model->executable.outputs()[1].type.shape, (Shape{1, 2, 4, 2}));
}

TEST_F(LowerTest, NamesComeFromTheOptions) {
  const IRModule module = Parse("fn (%x: Tensor[(2), float32]) { nn.relu(%x) }");
  options_.program.input_names = {"data"};
  options_.program.output_names = {"prob"};
  const Result<LoweredModel> model = Lower(module, options_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->executable.inputs()[0].name, "data");
  EXPECT_EQ(model->executable.outputs()[0].name, "prob");
  options_.program.output_names = {"a", "b"};
  EXPECT_EQ(Lower(module, options_).error().message, "2 output names for 1 outputs");
}

TEST_F(LowerTest, LetsAndUntouchedParametersWork) {
  Result<LoweredModel> model = Lower(Parse(R"(fn (%x: Tensor[(3), float32], %unused: Tensor[(2), float32]) {
      let %y = negative(%x); let %z = add(%y, %y); (%z, %x) })"),
                                     options_);
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<Tensor> inputs = {Tensor::FromVector<float>({{3}, DType::kFloat32}, {1, 2, 3}), Tensor({{2}, DType::kFloat32})};
  const std::vector<Tensor> outputs = *model->executable.Run(inputs);
  EXPECT_THAT(outputs[0].Values<float>(), ElementsAre(-2, -4, -6));
  EXPECT_THAT(outputs[1].Values<float>(), ElementsAre(1, 2, 3));
}

TEST_F(LowerTest, ErrorsNameThePartition) {
  const auto partition = [](const std::string& attributes) {
    return "fn (%x: Tensor[(2), float32]) { %0 = fn (%a: Tensor[(2), float32], Primitive=1, global_symbol=\"p7\", " + attributes +
           ") -> Tensor[(2), float32] { nn.relu(%a) }; %0(%x) }";
  };
  EXPECT_EQ(ErrorOf(partition("Compiler=\"library\"")), "no error");
  EXPECT_EQ(ErrorOf(partition("Compiler=\"cudnn\"")), "partition 'p7': unknown backend 'cudnn'; available: library, machine");
  EXPECT_EQ(ErrorOf(partition("Compiler=\"library\", Variant=\"winograd\"")),
            "partition 'p7': backend 'library' has no variant 'winograd' for it; it has: plain, acdb, aBcd16b");
  EXPECT_THAT(ErrorOf("fn (%x: Tensor[(2), float32]) { let %f = fn (%a: Tensor[(2), float32], Primitive=1) -> Tensor[(2), float32] "
                      "{ nn.relu(%a) }; %f(%x) }"),
              HasSubstr("a function used as a value"));
  EXPECT_THAT(ErrorOf("fn (%x: Tensor[(2), float32], %c: bool) { if (%c) { %x } else { nn.relu(%x) } }"), HasSubstr("not straight-line"));
}

TEST_F(LowerTest, StopsWhenAsked) {
  const std::atomic<bool> stop{true};
  options_.progress.stop_requested = &stop;
  EXPECT_EQ(ErrorOf("fn (%x: Tensor[(2), float32]) { nn.relu(%x) }"), "stopped");
}

TEST_F(LowerTest, ProgramsPutTogetherByHandRun) {
  const TensorType type{{2}, DType::kFloat32};
  const Expr a = MakeVar("a", type);
  const Expr function = *MakeFunction({a}, CallOf("negative", {a}), {{"Primitive", 1}});
  PartitionProgram program;
  program.values = {{type}, {type}};
  program.calls.push_back({{"timed", "library", "", "", {}, {}}, function, {0}, {1}});
  program.inputs = {{"in", 0}};
  program.outputs = {{"out", 1}};
  Result<LoweredModel> model = BuildExecutable(std::move(program), options_);
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<Tensor> inputs = {Tensor::FromVector<float>(type, {1, 2})};
  EXPECT_THAT((*model->executable.Run(inputs))[0].Values<float>(), ElementsAre(-1, -2));
}

TEST_F(LowerTest, DeepChainsNeedNoStack) {
  const TensorType type{{2}, DType::kFloat32};
  const Expr x = MakeVar("x", type);
  Expr body = x;
  for (int i = 0; i < 100000; ++i) body = CallOf("reshape", {body}, {{"newshape", std::vector<int64_t>{2}}});
  Result<LoweredModel> model = Lower(IRModule::FromMain(*MakeFunction({x}, body)), options_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->executable.calls().size(), 0u);
  const std::vector<Tensor> inputs = {Tensor::FromVector<float>(type, {1, 2})};
  EXPECT_THAT((*model->executable.Run(inputs))[0].Values<float>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace collage
