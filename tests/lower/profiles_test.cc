#include "collage/lower/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "collage/ir/parse.h"
#include "collage/lower/control.h"
#include "collage/lower/save.h"
#include "collage/op/interpreter.h"
#include "collage/support/file.h"
#include "collage/transform/outline_blocks.h"
#include "tests/lower/interpreter_backend.h"
#include "tests/lower/random_partitioned_module.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFlat = R"(
  def @main(%x: Tensor[(N, 40), float32]) {
    nn.relu(nn.matmul(%x, meta[relay.Constant][0] /* Tensor[(40, 300), float32] */))
  })";
constexpr const char* kLoop = R"(
  def @main(%x: Tensor[(N, 40), float32]) {
    @loop(0, %x, nn.matmul(%x, meta[relay.Constant][0] /* Tensor[(40, 300), float32] */)).2
  }
  def @loop(%i: int32, %x: Tensor[(N, 40), float32], %y: Tensor[(N, 300), float32])
      -> (int32, Tensor[(N, 40), float32], Tensor[(N, 300), float32]) {
    if (less(%i, 3)) { @loop(add(%i, 1), %x, tanh(%y)) } else { (%i, %x, %y) }
  })";

/// Models with "N" for an extent, compiled for several.
class ProfilesTest : public ::testing::Test {
 protected:
  ProfilesTest() {
    options_.device.threads = 2;
    options_.program.fallback_backend = "library";
    options_.find_backend = [this](const std::string&, const Device&) -> Result<const Backend*> { return &library_; };
    weight_ = Tensor({{40, 300}, DType::kFloat32});
    FillRandom(weight_, 7);
  }
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "profiles_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Each profile reads the model by itself, so it has tensors of its own.
  [[nodiscard]] IRModule ModuleOf(std::string text, int64_t extent) const {
    for (size_t at = text.find("(N,"); at != std::string::npos; at = text.find("(N,")) text.replace(at + 1, 1, std::to_string(extent));
    ParseOptions options;
    options.constants = {Tensor::FromVector(weight_.type(), std::vector<float>(weight_.Data<float>(), weight_.Data<float>() + 12000))};
    Result<ParsedModule> parsed = ParseModule(text, Operators(), options);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed->module;
  }

  [[nodiscard]] LoweredModel Lowered(const std::string& text, int64_t extent) const {
    const IRModule module = ModuleOf(text, extent);
    LowerOptions options = options_;
    options.program.input_names = {"x"};
    options.program.output_names = {"y"};
    Result<LoweredModel> model = IsStraightLine(module) ? Lower(module, options) : LowerControl(OutlineBlocks(module).value(), options);
    EXPECT_TRUE(model) << model.error().message;
    return std::move(*model);
  }

  [[nodiscard]] LoweredModel Joined(const std::vector<std::pair<std::string, int64_t>>& models) const {
    std::vector<LoweredModel> profiles;
    for (const auto& [text, extent] : models) profiles.push_back(Lowered(text, extent));
    Result<LoweredModel> joined = JoinProfiles(std::move(profiles));
    EXPECT_TRUE(joined) << joined.error().message;
    return std::move(*joined);
  }

  static Tensor Input(int64_t extent) {
    Tensor input({{extent, 40}, DType::kFloat32});
    FillRandom(input, static_cast<uint64_t>(extent));
    return input;
  }

  void ExpectRight(Executable& executable, const std::string& text, int64_t extent) const {
    const std::vector<Tensor> inputs{Input(extent)};
    const std::vector<Tensor> expected = InterpretMain(ModuleOf(text, extent), inputs).value();
    for (int turn = 0; turn < 2; ++turn) {
      const Result<std::vector<Tensor>> outputs = executable.Run(inputs);
      ASSERT_TRUE(outputs) << outputs.error().message;
      EXPECT_TRUE(BitwiseEqual((*outputs)[0], expected[0])) << "extent " << extent;
    }
  }

  [[nodiscard]] uintmax_t FileSize(const LoweredModel& model) const {
    const std::filesystem::path path = folder_ / "size";
    EXPECT_TRUE(SaveProgram(model, "", path));
    return std::filesystem::file_size(path);
  }

  InterpreterBackend library_{"library", false};
  LowerOptions options_;
  Tensor weight_;
  std::filesystem::path folder_;
};

TEST_F(ProfilesTest, ARunTakesTheProfileOfItsInputs) {
  LoweredModel model = Joined({{kFlat, 1}, {kFlat, 5}, {kFlat, 3}});
  ASSERT_EQ(model.executable.shape_profiles().size(), 3U);
  EXPECT_EQ(ToString(model.executable.shape_profiles()[1]), "x=5x40");
  EXPECT_EQ(model.executable.shape_profiles()[1].outputs[0].type, (TensorType{{5, 300}, DType::kFloat32}));
  for (const int64_t extent : {3, 1, 5, 1}) ExpectRight(model.executable, kFlat, extent);
}

TEST_F(ProfilesTest, ProfilesWithControlFlowAndWithoutItJoin) {
  LoweredModel model = Joined({{kLoop, 2}, {kFlat, 1}, {kLoop, 4}});
  ExpectRight(model.executable, kFlat, 1);
  ExpectRight(model.executable, kLoop, 2);
  ExpectRight(model.executable, kLoop, 4);
}

TEST_F(ProfilesTest, AProgramOfSeveralProfilesTakesOneMore) {
  std::vector<LoweredModel> parts;
  parts.push_back(Joined({{kLoop, 2}, {kFlat, 1}}));
  parts.push_back(Lowered(kLoop, 6));
  Result<LoweredModel> model = JoinProfiles(std::move(parts));
  ASSERT_TRUE(model) << model.error().message;
  ExpectRight(model->executable, kLoop, 2);
  ExpectRight(model->executable, kFlat, 1);
  ExpectRight(model->executable, kLoop, 6);
}

TEST_F(ProfilesTest, AnotherShapeIsAnErrorThatListsTheProfiles) {
  LoweredModel model = Joined({{kFlat, 1}, {kLoop, 4}});
  const Result<std::vector<Tensor>> outputs = model.executable.Run(std::vector{Input(2)});
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().message, "no profile of this program takes x=2x40; it has [x=1x40], [x=4x40]");
  std::vector<Tensor> wrong{Tensor({{1, 300}, DType::kFloat32})};
  const Status status = model.executable.Run(std::vector{Input(4)}, wrong);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("output 'y' has type Tensor[(1, 300), float32], expected Tensor[(4, 300), float32]"));
  const Result<std::vector<Tensor>> integers = model.executable.Run(std::vector{Tensor({{1, 40}, DType::kInt32})});
  ASSERT_FALSE(integers);
  EXPECT_THAT(integers.error().message, HasSubstr("input 'x' has type Tensor[(1, 40), int32]"));
}

TEST_F(ProfilesTest, AFileHasAllProfilesAndTheirCommonWeightsOnce) {
  const LoweredModel model = Joined({{kFlat, 1}, {kFlat, 4}, {kLoop, 3}});
  const std::filesystem::path path = folder_ / "program";
  ASSERT_TRUE(SaveProgram(model, "", path));
  const Result<ProgramInfo> info = ReadProgramInfo(path);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(ListOf(info->profiles), "[x=1x40], [x=4x40], [x=3x40]");
  Result<LoweredModel> loaded = LoadProgram(path, options_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ExpectRight(loaded->executable, kFlat, 1);
  ExpectRight(loaded->executable, kFlat, 4);
  ExpectRight(loaded->executable, kLoop, 3);
  const std::string first = *ReadFile(path);
  ASSERT_TRUE(SaveProgram(*loaded, "", path));
  EXPECT_EQ(*ReadFile(path), first);

  const auto alone = static_cast<double>(FileSize(Lowered(kFlat, 1)));
  EXPECT_GT(alone, 48000);
  EXPECT_LT(static_cast<double>(FileSize(Joined({{kFlat, 1}, {kFlat, 4}}))), 1.05 * alone);
}

TEST_F(ProfilesTest, PartitionsAreReadOfOneProfile) {
  const std::filesystem::path path = folder_ / "program";
  ASSERT_TRUE(SaveProgram(Joined({{kFlat, 1}, {kFlat, 4}, {kLoop, 3}}), "", path));
  for (const size_t profile : {0, 1, 2}) {
    const Result<ProfilePartitions> read = ReadPartitions(path, profile);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->entry, profile);
    EXPECT_EQ(read->profile.inputs[0].name, "x");
    EXPECT_EQ(read->profile.inputs[0].type, (TensorType{{std::array{1, 4, 3}[profile], 40}, DType::kFloat32}));
    EXPECT_EQ(read->profile.outputs[0].name, "y");
    ASSERT_GT(read->blocks.size(), 3U);
    for (size_t i = 0; i < read->blocks.size(); ++i) {
      for (const PartitionCall& call : read->blocks[i].calls) EXPECT_EQ(call.function != nullptr, std::min<size_t>(i, 2) == profile);
    }
  }
}

TEST_F(ProfilesTest, PlansThatAreThereAtOnceHaveTwinsOfAKernel) {
  options_.kernels = std::make_shared<KernelCache>();
  const LoweredModel first = Lowered(kFlat, 2);
  const size_t compiled = library_.compiled;
  {
    LoweredModel second = Lowered(kFlat, 2);
    EXPECT_EQ(library_.compiled, compiled);
    EXPECT_NE(second.executable.calls()[0].kernel, first.executable.calls()[0].kernel) << "what a kernel keeps is one plan's";
    ExpectRight(second.executable, kFlat, 2);
  }
  weight_ = Tensor(weight_.type());
  const LoweredModel other = Lowered(kFlat, 2);
  EXPECT_GT(library_.compiled, compiled) << "other weights are another kernel";
}

TEST_F(ProfilesTest, WhatCompilingTakesIsKnownByBackend) {
  KernelCache cache;
  EXPECT_EQ(cache.SecondsToCompile("library"), std::nullopt) << "nothing was compiled";
  cache.compiled["fast"] = {10, 0.1};
  cache.compiled["slow"] = {1, 1};
  EXPECT_DOUBLE_EQ(cache.SecondsToCompile("fast").value(), 0.01);
  EXPECT_DOUBLE_EQ(cache.SecondsToCompile("slow").value(), 1);
  EXPECT_EQ(cache.SecondsToCompile("library"), std::nullopt) << "others tell nothing of it";

  options_.kernels = std::make_shared<KernelCache>();
  const LoweredModel first = Lowered(kFlat, 2);
  const size_t kernels = options_.kernels->compiled["library"].kernels;
  EXPECT_GT(kernels, 0U);
  EXPECT_GT(options_.kernels->compiled["library"].seconds, 0);
  const LoweredModel twin = Lowered(kFlat, 2);
  EXPECT_EQ(options_.kernels->compiled["library"].kernels, kernels);
}

TEST_F(ProfilesTest, TwoProfilesOfOneShapeAreAnError) {
  std::vector<LoweredModel> same;
  same.push_back(Lowered(kFlat, 1));
  same.push_back(Lowered(kLoop, 1));
  const Result<LoweredModel> joined = JoinProfiles(std::move(same));
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, HasSubstr("is entered with the same types as function number 0"));
}

TEST_F(ProfilesTest, OneStepProfileForEachKernelOfAllProfiles) {
  LoweredModel model = Joined({{kFlat, 1}, {kFlat, 4}});
  model.executable.SetProfiling(true);
  ASSERT_TRUE(model.executable.Run(std::vector{Input(4)}));
  uint64_t calls = 0;
  for (const StepProfile& step : model.executable.profile()) calls += step.calls;
  EXPECT_EQ(calls, model.executable.profile().size() / 2);
}

}  // namespace
}  // namespace collage
