#include "collage/lower/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "collage/ir/parse.h"
#include "collage/lower/save.h"
#include "collage/op/interpreter.h"
#include "collage/transform/outline_blocks.h"
#include "tests/lower/interpreter_backend.h"
#include "tests/lower/random_control.h"
#include "tests/lower/random_partitioned_module.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

class ControlTest : public ::testing::Test {
 protected:
  ControlTest() {
    options_.device.threads = 2;
    options_.program.fallback_backend = "library";
    options_.find_backend = [this](const std::string&, const Device&) -> Result<const Backend*> { return &library_; };
  }
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "control_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static IRModule Parse(const std::string& text) {
    Result<ParsedModule> parsed = ParseModule(text, Operators(), {{}, RandomConstants(1), {}});
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed->module;
  }

  [[nodiscard]] LoweredModel Lowered(const std::string& text) const {
    const Result<IRModule> outlined = OutlineBlocks(Parse(text));
    EXPECT_TRUE(outlined) << outlined.error().message;
    Result<LoweredModel> model = LowerControl(*outlined, options_);
    EXPECT_TRUE(model) << model.error().message;
    return std::move(*model);
  }

  static std::vector<Tensor> RandomInputs(const Executable& executable, uint64_t seed) {
    std::vector<Tensor> inputs;
    for (const NamedType& input : executable.inputs()) FillRandom(inputs.emplace_back(input.type), seed * 10 + inputs.size());
    return inputs;
  }

  /// The program, run several times, and again from a file, gives what the reference executor gives.
  void ExpectRight(const std::string& text) {
    SCOPED_TRACE(text);
    const IRModule module = Parse(text);
    LoweredModel model = Lowered(text);
    const std::filesystem::path path = folder_ / "program";
    const Status saved = SaveProgram(model, "", path);
    ASSERT_TRUE(saved) << saved.error().message;
    Result<LoweredModel> loaded = LoadProgram(path, options_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const std::vector<Tensor> inputs = RandomInputs(model.executable, seed);
      const std::vector<Tensor> expected = InterpretMain(module, inputs).value();
      for (LoweredModel* one : {&model, &*loaded}) {
        const Result<std::vector<Tensor>> outputs = one->executable.Run(inputs);
        ASSERT_TRUE(outputs) << outputs.error().message;
        ASSERT_EQ(outputs->size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitwiseEqual((*outputs)[i], expected[i])) << "output " << i;
      }
    }
  }

  InterpreterBackend library_{"library", false};
  LowerOptions options_;
  std::filesystem::path folder_;
};

constexpr const char* kLoop = R"(
  def @main(%x: Tensor[(3), float32]) { @loop(0, %x, exp(%x)).1 }
  def @loop(%i: int32, %x: Tensor[(3), float32], %step: Tensor[(3), float32]) -> (int32, Tensor[(3), float32]) {
    if (less(%i, 50)) { @loop(add(%i, 1), add(tanh(%x), %step), %step) } else { (%i, %x) }
  })";

TEST_F(ControlTest, AFailureIsTheErrorOfTheRunThatCallsIt) {
  const std::string text = R"(
def @main(%x: Tensor[(3,), float32], %p: bool) -> Tensor[(3,), float32] { if (%p) { exp(%x) } else { @misfit() } }
def @misfit(Failure="the rate is none of the model's") -> Tensor[(3,), float32] { @misfit() }
)";
  LoweredModel model = Lowered(text);
  ASSERT_TRUE(SaveProgram(model, "", folder_ / "program"));
  Result<LoweredModel> loaded = LoadProgram(folder_ / "program", options_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::vector<Tensor> inputs = RandomInputs(model.executable, 1);
  for (LoweredModel* one : {&model, &*loaded}) {
    for (const bool fits : {false, true, false}) {
      inputs[1] = Tensor::Scalar(fits, DType::kBool);
      const Result<std::vector<Tensor>> expected = InterpretMain(Parse(text), inputs);
      const Result<std::vector<Tensor>> outputs = one->executable.Run(inputs);
      ASSERT_EQ(outputs.has_value(), fits);
      ASSERT_EQ(expected.has_value(), fits);
      if (fits) {
        EXPECT_TRUE(BitwiseEqual((*outputs)[0], (*expected)[0]));
      } else {
        EXPECT_THAT(outputs.error().message, HasSubstr("the rate is none of the model's"));
        EXPECT_THAT(expected.error().message, HasSubstr("the rate is none of the model's"));
      }
    }
  }
}

TEST_F(ControlTest, BranchesGiveWhatTheReferenceGives) {
  ExpectRight("def @main(%x: Tensor[(3), float32], %c: bool) { if (%c) { nn.relu(%x) } else { %x } }");
  ExpectRight(R"(def @main(%x: Tensor[(3), float32], %c: bool, %d: bool) {
    %0 = exp(%x);
    %1 = if (%c) { (nn.relu(%0), %x) } else { if (%d) { (%0, %0) } else { (negative(%x), %x) } };
    (add(%1.0, %0), %1.1, %x, %0)
  })");
}

TEST_F(ControlTest, LoopsGiveWhatTheReferenceGives) { ExpectRight(kLoop); }

TEST_F(ControlTest, RecursionThatIsNoLoopGivesWhatTheReferenceGives) {
  ExpectRight(R"(
    def @main(%x: Tensor[(2), float32]) { add(@sum(6, %x), @sum(3, exp(%x))) }
    def @sum(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (less(%n, 1)) { %x } else { add(@sum(subtract(%n, 1), %x), @sum(subtract(%n, 2), tanh(%x))) }
    })");
}

TEST_F(ControlTest, TuplesAndConstantsArePassedOn) {
  ExpectRight(R"(
    def @main(%t: (Tensor[(2), float32], (Tensor[(2), float32], bool))) {
      %0 = if (%t.1.1) { (exp(%t.0), (%t.0, %t.1.0), 7) } else { (%t.1.0, (tanh(%t.0), %t.0), 8) };
      (concatenate((%0.0, %0.1.1, %t.0), axis=0), %0.1, %0.2)
    })");
}

TEST_F(ControlTest, RandomProgramsGiveWhatTheReferenceGives) {
  size_t with_control_flow = 0;
  for (uint32_t seed = 0; seed < Rounds(300) && !HasFailure(); ++seed) {
    const std::string text = RandomControl(seed).Make();
    if (IsStraightLine(Parse(text))) continue;
    ++with_control_flow;
    ExpectRight(text);
  }
  EXPECT_GT(with_control_flow, Rounds(150));
}

TEST_F(ControlTest, ALongLoopRunsInTheMemoryOfAShortOne) {
  const auto bytes_of = [&](const std::string& count) {
    std::string text = kLoop;
    text.replace(text.find("50"), 2, count);
    LoweredModel model = Lowered(text);
    const std::vector<Tensor> inputs = RandomInputs(model.executable, 1);
    EXPECT_TRUE(model.executable.Run(inputs));
    return model.executable.held_bytes();
  };
  EXPECT_EQ(bytes_of(std::to_string(Rounds(100000))), bytes_of("10"));
}

TEST_F(ControlTest, EndlessRecursionIsAnError) {
  LoweredModel model = Lowered(R"(
    def @main(%x: Tensor[(2), float32]) { @again(%x) }
    def @again(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(@again(%x)) })");
  const Result<std::vector<Tensor>> outputs = model.executable.Run(RandomInputs(model.executable, 1));
  ASSERT_FALSE(outputs);
  EXPECT_THAT(outputs.error().message, HasSubstr("function 'again' is called 1000000 levels deep"));
  EXPECT_FALSE(model.executable.Run(RandomInputs(model.executable, 1))) << "an error leaves nothing behind";
}

TEST_F(ControlTest, EntersSeveralTimesWithoutHarm) {
  LoweredModel model = Lowered(kLoop);
  const std::vector<Tensor> inputs = RandomInputs(model.executable, 1);
  const std::vector<Tensor> first = model.executable.Run(inputs).value();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(BitwiseEqual(model.executable.Run(inputs).value()[0], first[0]));
}

TEST_F(ControlTest, ProfilesTheKernelsOfItsBlocks) {
  LoweredModel model = Lowered(kLoop);
  model.executable.SetProfiling(true);
  ASSERT_TRUE(model.executable.Run(RandomInputs(model.executable, 1)));
  uint64_t tanh_calls = 0;
  for (const StepProfile& step : model.executable.profile()) {
    if (step.record.operators == std::vector<std::string>{"tanh"}) tanh_calls += step.calls;
  }
  EXPECT_EQ(tanh_calls, 50U);
}

TEST_F(ControlTest, RefusesComputingOutsideOfBlocks) {
  const Result<LoweredModel> model =
      LowerControl(Parse("def @main(%x: Tensor[(3), float32], %c: bool) { if (%c) { nn.relu(%x) } else { %x } }"), options_);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("@main: "));
}

}  // namespace
}  // namespace collage
