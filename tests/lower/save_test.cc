#include "collage/lower/save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "collage/backend/registered.h"
#include "collage/runtime/container.h"
#include "collage/support/file.h"
#include "collage/tensor/precision.h"
#include "tests/lower/interpreter_backend.h"
#include "tests/lower/random_partitioned_module.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

class SaveTest : public ::testing::Test {
 protected:
  SaveTest() {
    options_.program.fallback_backend = "library";
    backends_ = {&library_, &machine_};
    options_.find_backend = [this](const std::string& name, const Device&) -> Result<const Backend*> {
      for (const Backend* backend : backends_) {
        if (backend->Name() == name) return backend;
      }
      return Fail("unknown backend '" + name + "'");
    };
  }
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "save_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "model.collage";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// x -> tanh on `backend` -> output, saved.
  void SaveExample(const std::string& backend) {
    const TensorType type{{1, 20, 2, 2}, DType::kFloat32};
    const Expr a = MakeVar("a", type);
    const Expr x = MakeVar("x", type);
    const Expr body = WithOrigin(CallOf("tanh", {a}), Origin({OriginPart::Kind::kOnnxNode, "act_7", 0}));
    const Expr function = *MakeFunction({a}, body, {{"Primitive", 1}, {"Compiler", backend}, {"global_symbol", "p"}, {"Variant", "acdb"}});
    const Result<LoweredModel> model = Lower(IRModule::FromMain(*MakeFunction({x}, *MakeCall(function, {x}))), options_);
    ASSERT_TRUE(model) << model.error().message;
    const Status saved = SaveProgram(*model, "{\"note\": 1}", path_);
    ASSERT_TRUE(saved) << saved.error().message;
  }

  std::string LoadError() {
    const Result<LoweredModel> model = LoadProgram(path_, options_);
    return model ? "no error" : model.error().message;
  }

  /// Changes a string of the stored JSON into one of equal length and makes the file whole again.
  void Edit(const std::string& from, const std::string& to) {
    const Container container = *Container::Open(path_);
    Result<ContainerWriter> writer = ContainerWriter::Create(path_);
    ASSERT_TRUE(writer) << writer.error().message;
    for (size_t i = 0; i < container.size(); ++i) {
      std::string content(container.blob(i));
      if (const size_t at = content.find(from); i == 0 && at != std::string::npos) content.replace(at, from.size(), to);
      writer->Add(content);
    }
    ASSERT_TRUE(writer->Commit());
  }

  InterpreterBackend library_{"library", false};
  InterpreterBackend machine_{"machine", true};
  std::vector<const Backend*> backends_;
  LowerOptions options_;
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(SaveTest, SlicesAndJoinsAreKept) {
  const TensorType half{{1, 16, 2, 2}, DType::kFloat32};
  const Expr x = MakeVar("x", half);
  const auto in_place = [](const Expr& body, std::vector<Expr> parameters) {
    return *MakeFunction(std::move(parameters), body, {{"Primitive", 1}, {"Compiler", "in_place"}, {"Variant", "aBcd16b"}});
  };
  const Expr a = MakeVar("a", half);
  const Expr b = MakeVar("b", half);
  const Expr join = in_place(MakeCall(Operators().Find("concatenate"), {MakeTuple({a, b})}, {{"axis", 1}}).value(), {a, b});
  const Expr c = MakeVar("c", TensorType{{1, 32, 2, 2}, DType::kFloat32});
  const std::vector<int64_t> begin = {16};
  const std::vector<int64_t> end = {32};
  const std::vector<int64_t> axes = {1};
  const Expr cut =
      in_place(MakeCall(Operators().Find("strided_slice"), {c}, {{"begin", begin}, {"end", end}, {"axes", axes}}).value(), {c});
  const Expr joined = MakeCall(join, {CallOf("tanh", {x}), CallOf("exp", {x})}).value();
  const Expr body = CallOf("nn.relu", {MakeCall(cut, {joined}).value()});
  Result<LoweredModel> model = Lower(IRModule::FromMain(*MakeFunction({x}, body)), options_);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(SaveProgram(*model, "{}", path_));
  Result<LoweredModel> loaded = LoadProgram(path_, options_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Tensor input(half);
  FillRandom(input, 9);
  EXPECT_EQ(loaded->executable.profile().size(), model->executable.profile().size());
  EXPECT_TRUE(BitwiseEqual(loaded->executable.Run(std::vector<Tensor>{input}).value().front(),
                           model->executable.Run(std::vector<Tensor>{input}).value().front()));
  // What a damaged file says of them is checked.
  Edit("\"begin\":16", "\"begin\":17");
  EXPECT_THAT(LoadError(), HasSubstr("is no part of"));
}

TEST_F(SaveTest, WeightsThatAKernelMayRoundAreSavedAsIntegers) {
  Tensor weights(TensorType{{40, 1000}, DType::kFloat32});
  FillRandom(weights, 3);
  const Expr a = MakeVar("a", TensorType{{1, 1000}, DType::kFloat32});
  const Expr x = MakeVar("x", TensorType{{1, 1000}, DType::kFloat32});
  const auto save = [&](const std::string& permit) {
    const Expr function =
        *MakeFunction({a}, CallOf("nn.dense", {a, MakeConstant(weights)}),
                      {{"Primitive", 1}, {"Compiler", "library"}, {"global_symbol", "p"}, {"Variant", "plain"}, {"Precision", permit}});
    const LoweredModel model = Lower(IRModule::FromMain(*MakeFunction({x}, *MakeCall(function, {x}))), options_).value();
    EXPECT_TRUE(SaveProgram(model, "", path_));
    return std::filesystem::file_size(path_);
  };
  const auto whole = save("bf16=0.02");
  const auto rounded = save("int8-weights=0.02");
  EXPECT_GT(whole, 40 * 1000 * sizeof(float));
  EXPECT_LT(rounded, 40 * 1000 * 1.5);
  LoweredModel loaded = LoadProgram(path_, options_).value();
  Tensor input(TensorType{{1, 1000}, DType::kFloat32});
  FillRandom(input, 4);
  const std::vector<Tensor> outputs = loaded.executable.Run(std::vector{input}).value();
  const Tensor expected = Interpret(*(*MakeFunction({a}, CallOf("nn.dense", {a, MakeConstant(weights)})))->As<Function>(), {input})[0];
  const Agreement agreement = Compare(outputs[0], expected);
  EXPECT_TRUE(Passes(agreement, kToleranceOfInt8Weights));
  EXPECT_GT(agreement.difference, kTolerance) << "the weights are those that were rounded";
}

TEST_F(SaveTest, AFlatProgramSaysNothingOfControlFlow) {
  SaveExample("machine");
  const std::string json(Container::Open(path_)->blob(0));
  EXPECT_NE(json.find("\"calls\""), std::string::npos);
  EXPECT_EQ(json.find("\"control\""), std::string::npos);
  EXPECT_EQ(json.find("\"blocks\""), std::string::npos);
}

TEST_F(SaveTest, LoadedProgramsGiveEqualOutputs) {
  for (unsigned seed = 0; seed < Rounds(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Result<LoweredModel> model = Lower(RandomPartitionedModule(seed).Make(), options_);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(SaveProgram(*model, "", path_));
    Result<LoweredModel> loaded = LoadProgram(path_, options_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    std::vector<Tensor> inputs;
    for (const NamedType& input : model->executable.inputs()) FillRandom(inputs.emplace_back(input.type), seed + inputs.size());
    const Result<std::vector<Tensor>> expected = model->executable.Run(inputs);
    const Result<std::vector<Tensor>> outputs = loaded->executable.Run(inputs);
    ASSERT_TRUE(expected && outputs);
    for (size_t i = 0; i < expected->size(); ++i) EXPECT_TRUE(BitwiseEqual((*outputs)[i], (*expected)[i]));
    // What was loaded can be saved again, to the same bytes.
    const std::string first = *ReadFile(path_);
    ASSERT_TRUE(SaveProgram(*loaded, "", path_));
    EXPECT_EQ(*ReadFile(path_), first);
  }
  EXPECT_GT(machine_.loaded, 0u);
}

TEST_F(SaveTest, SaysWhatIsInside) {
  SaveExample("library");
  const Result<ProgramInfo> info = ReadProgramInfo(path_);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->profiles[0].inputs[0].name, "x");
  EXPECT_EQ(info->profiles[0].outputs[0].type, (TensorType{{1, 20, 2, 2}, DType::kFloat32}));
  EXPECT_EQ(info->fingerprint, Fingerprint(Device{}));
  EXPECT_EQ(info->device.threads, 1);
  ASSERT_EQ(info->plan.size(), 1u);
  EXPECT_EQ(info->plan[0].backend, "library");
  EXPECT_EQ(info->plan[0].variant, "acdb");
  EXPECT_EQ(info->plan[0].operators, std::vector<std::string>{"tanh"});
  EXPECT_EQ(info->plan[0].nodes, std::vector<std::string>{"act_7"});
  EXPECT_EQ(info->metadata, "{\"note\": 1}");
  EXPECT_EQ(*ReadProgramMetadata(path_), "{\"note\": 1}");
  EXPECT_EQ(*IsProgramFile(path_), true);
}

TEST_F(SaveTest, FilesOfBeforeHaveNoNodesAndLoad) {
  SaveExample("library");
  Edit("\"nodes\"", "\"nods_\"");
  const Result<LoweredModel> loaded = LoadProgram(path_, options_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->executable.calls()[0].record.nodes.empty());
}

TEST_F(SaveTest, ArtifactsAreLoadedAndFunctionsCompiled) {
  SaveExample("machine");
  EXPECT_EQ(machine_.compiled, 1u);
  EXPECT_EQ(LoadError(), "no error");
  EXPECT_EQ(machine_.compiled, 1u);
  EXPECT_EQ(machine_.loaded, 1u);
  SaveExample("library");
  EXPECT_EQ(LoadError(), "no error");
  EXPECT_EQ(library_.compiled, 2u);
  EXPECT_EQ(library_.loaded, 0u);
}

TEST_F(SaveTest, MachineCodeIsLeftAloneWhenCompiledAgain) {
  SaveExample("machine");
  const size_t compiled = machine_.compiled;
  const auto load = [&] { return LoadProgram(path_, options_, MachineCode::kCompileAgain); };
  Result<LoweredModel> again = load();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(machine_.compiled, compiled + 1);
  EXPECT_EQ(machine_.loaded, 0u);
  // Another processor, another version: there is nothing of theirs that would be run.
  const InterpreterBackend newer("machine", true, "2.0");
  backends_ = {&newer};
  Edit(Fingerprint(Device{}), "cpu-elsewhere");
  EXPECT_THAT(LoadError(), HasSubstr("is machine code for another processor"));
  EXPECT_TRUE(load());
  Edit("\"function\"", "\"fanction\"");
  EXPECT_THAT(load().error().message, HasSubstr("kernel 'p' (act_7) of backend 'machine': the file holds machine code only"));
}

TEST_F(SaveTest, SizesThatNothingHoldsAreErrors) {
  for (const auto& [from, to, says] :
       std::vector<std::array<std::string, 3>>{{"[1,20,2,2]", "[4611686018427387904,4,0,2]", "which no memory holds"},
                                               {"[1,20,2,2]", "[1,20,2,1073741824]", "expected Tensor[(1, 20, 2, 1073741824), float32]"},
                                               {"[1,20,2,2]", "[1.5,20,2,2]", "shape holds 1.5"},
                                               {"\"value\":1", "\"value\":-1", "value is -1"},
                                               {"\"threads\":1", "\"threads\":-1", "threads is -1"},
                                               {"\"kind\":0", "\"kind\":9", "device"}}) {
    SaveExample("library");
    Edit(from, to);
    EXPECT_THAT(LoadError(), HasSubstr(says)) << from << " -> " << to;
    EXPECT_THAT(LoadError(), HasSubstr(path_.string() + ": "));
  }
}

TEST_F(SaveTest, PartitionsAreReadWithoutBackendsAndComputeTheSame) {
  for (unsigned seed = 0; seed < Rounds(20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Result<LoweredModel> model = Lower(RandomPartitionedModule(seed).Make(), options_);
    ASSERT_TRUE(model && SaveProgram(*model, "", path_));
    backends_ = {};
    Result<ProfilePartitions> read = ReadPartitions(path_);
    backends_ = {&library_, &machine_};
    ASSERT_TRUE(read) << read.error().message;
    Result<LoweredModel> built = BuildExecutable(std::move(read->blocks.at(0)), options_);
    ASSERT_TRUE(built) << built.error().message;
    std::vector<Tensor> inputs;
    for (const NamedType& input : model->executable.inputs()) FillRandom(inputs.emplace_back(input.type), seed + inputs.size());
    const std::vector<Tensor> expected = model->executable.Run(inputs).value();
    const std::vector<Tensor> outputs = built->executable.Run(inputs).value();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitwiseEqual(outputs[i], expected[i]));
  }
}

TEST_F(SaveTest, PartitionsOfMachineCodeAloneAreAnErrorThatNamesTheKernel) {
  SaveExample("machine");
  Edit("\"function\"", "\"fanction\"");
  EXPECT_EQ(ReadPartitions(path_).error().message,
            path_.string() + ": kernel 'p' (act_7) of backend 'machine': the file holds its machine code only, no function");
}

TEST_F(SaveTest, AMissingBackendIsNamed) {
  SaveExample("library");
  backends_ = {&machine_};
  EXPECT_EQ(LoadError(), path_.string() + ": kernel 'p' (act_7) of backend 'library': unknown backend 'library'");
  EXPECT_TRUE(ReadProgramInfo(path_));
}

TEST_F(SaveTest, ArtifactsWithTheirSourceAreTheBackendsToJudge) {
  SaveExample("machine");
  InterpreterBackend newer("machine", true, "2.0");
  newer.artifacts_hold_source = true;
  backends_ = {&newer};
  Edit(Fingerprint(Device{}), "cpu-elsewhere");
  EXPECT_EQ(LoadError(), "no error");
  EXPECT_EQ(newer.loaded, 1u);
  // Where nothing of the file is trusted not even those are looked at.
  ASSERT_TRUE(LoadProgram(path_, options_, MachineCode::kCompileAgain));
  EXPECT_EQ(newer.loaded, 1u);
  EXPECT_EQ(newer.compiled, 1u);
}

TEST_F(SaveTest, MachineCodeOfAnotherProcessorOrVersionIsRefused) {
  SaveExample("machine");
  const InterpreterBackend newer("machine", true, "2.0");
  backends_ = {&newer};
  EXPECT_THAT(LoadError(), HasSubstr("made by version 1.0 of the backend, here is version 2.0"));
  // Where only what compiles is missing, the rest of the version still has to fit.
  struct Loading : InterpreterBackend {
    using InterpreterBackend::InterpreterBackend;
    [[nodiscard]] Presence Probe(const Device&) const override { return Presence::LoadsOnly("there is no compiler"); }
  };
  const Loading loading("machine", true);
  Edit("1.0", "1+0");  // a version as the registry makes it, with the sources at the end
  for (const auto& [sources, error] : {std::pair("0", "no error"), std::pair("7", "here is version +7")}) {
    const std::unique_ptr<Backend> registered = Registered(loading, sources);
    EXPECT_FALSE(registered->Probe(Device{}).present);
    backends_ = {registered.get()};
    EXPECT_THAT(LoadError(), HasSubstr(error));
  }
  Edit("1+0", "1.0");
  backends_ = {&machine_};
  Edit(Fingerprint(Device{}), "cpu-elsewhere");
  EXPECT_THAT(LoadError(), HasSubstr("kernel 'p' (act_7) of backend 'machine': is machine code for another processor (cpu-elsewhere"));
  backends_ = {&library_};
  SaveExample("library");
  Edit(Fingerprint(Device{}), "cpu-elsewhere");
  EXPECT_EQ(LoadError(), "no error");
}

TEST_F(SaveTest, DamagedFilesAreOneClearError) {
  SaveExample("library");
  const std::string good = *ReadFile(path_);
  const auto error_of = [&](const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return LoadError();
  };
  for (size_t size = 0; size < good.size(); size += 13) EXPECT_NE(error_of(good.substr(0, size)), "no error") << size;
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_NE(error_of(damaged), "no error") << at;
  }
  EXPECT_EQ(error_of("ONNX"), path_.string() + ": is not a compiled model (it does not begin like one)");
  EXPECT_EQ(error_of(good), "no error");
}

TEST_F(SaveTest, WholeFilesWithAWrongProgramAreErrorsToo) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"{", "["},
                                                                                 {"\"calls\"", "\"walls\""},
                                                                                 {"\"float32\"", "\"float31\""},
                                                                                 {"[1,20,2,2]", "[1,20,2,3]"},
                                                                                 {"[1,20,2,2]", "[-1,20,2,2]"},
                                                                                 {"[1,20,2,2]", "\"none\""},
                                                                                 {"\"value\":1", "\"value\":7"},
                                                                                 {"\"variant\":\"acdb\"", "\"variant\":\"abba\""},
                                                                                 {"tanh(", "tanq("},
                                                                                 {"\"outputs\":[1]", "\"outputs\":[0]"}}) {
    SaveExample("library");
    Edit(from, to);
    EXPECT_THAT(LoadError(), HasSubstr(path_.string() + ": ")) << from << " -> " << to;
  }
}

}  // namespace
}  // namespace collage
