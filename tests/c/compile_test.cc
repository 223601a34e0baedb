#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "collage/onnx/graph_message.h"
#include "collage/onnx/writer.h"
#include "tests/c/saved_programs.h"
#include "tests/lower/random_partitioned_module.h"

namespace collage {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CompileTest : public SavedPrograms {
 protected:
  /// Two convolutions and what lies between, as an ONNX file.
  void WriteModel() {
    const TensorType type{{1, 16, 24, 24}, DType::kFloat32};
    const Expr x = MakeVar("x", type);
    Expr body = x;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      Tensor weight(TensorType{{16, 16, 3, 3}, DType::kFloat32});
      FillRandom(weight, seed);
      body = CallOf("nn.conv2d", {body, MakeConstant(weight)},
                    {{"padding", std::vector<int64_t>{1, 1, 1, 1}}, {"channels", 16}, {"kernel_size", std::vector<int64_t>{3, 3}}});
      body = CallOf("nn.relu", {body});
    }
    const Result<std::string> bytes = WriteOnnx(*(*MakeFunction({x}, body))->As<Function>());
    ASSERT_TRUE(bytes) << bytes.error().message;
    std::ofstream(model_ = folder_ / "model.onnx", std::ios::binary) << *bytes;
  }
  [[nodiscard]] std::string Options(const std::string& more = "") const {
    return R"({"threads": 2, "budget": 4, "cache": ")" + (folder_ / "prices").string() + "\"" + more + "}";
  }
  std::string Compile(const std::string& options, collage_progress progress = nullptr, void* user = nullptr) {
    return Said(collage_compile(model_.c_str(), path_.c_str(), options.c_str(), progress, user));
  }

  std::filesystem::path model_ = "/no/such.onnx";
};

TEST_F(CompileTest, WrongOptionsAreErrorsOfTheCaller) {
  EXPECT_THAT(Compile("[]"), AllOf(StartsWith("1: "), HasSubstr("expected a JSON object")));
  EXPECT_EQ(Compile(R"({"budget": "long"})"), R"(1: option 'budget' is "long", expected a number of seconds above zero)");
  EXPECT_EQ(Compile(R"({"shapes": {"x": [1, -1]}})"), "1: option 'shapes' of 'x' is [1,-1], expected whole numbers, none below zero");
  EXPECT_EQ(Compile(R"({"pin": "a=b"})"), R"(1: option 'pin' is "a=b", expected a list of strings)");
  EXPECT_THAT(Compile(R"({"processors": ["cpu:1"]})"),
              "1: option 'processors' is wrong: cpu:1: expected a CPU and its processors, such as cpu:1=2-3");
  EXPECT_EQ(Compile(R"({"choose_devices": 1})"), "1: option 'choose_devices' is 1, expected true or false");
  EXPECT_THAT(Compile(R"({"precision": "fp8"})"), StartsWith("1: option 'precision' is 'fp8', expected bf16"));
  EXPECT_THAT(Compile(R"({"thread": 2})"), StartsWith("1: unknown option 'thread'; there are 'budget', 'cache', "));
  EXPECT_THAT(Said(collage_compile(nullptr, nullptr, nullptr, nullptr, nullptr)), StartsWith("1: collage_compile"));
}

TEST_F(CompileTest, ACpuBesideTheHostIsStatedAndStatedAnewWhereItIsLoaded) {
  const Processors usable = UsableProcessors();
  if (usable.size() < 2) GTEST_SKIP() << "one processor";
  WriteModel();
  const std::string last = std::to_string(usable.back());
  ASSERT_EQ(Compile(Options(R"(, "targets": ["cpu"], "processors": ["cpu:1=)" + last + R"("], "pin": ["nn.relu=cpu:1"])")), "");
  EXPECT_THAT(ReadProgramInfo(path_).value().plan, Contains(Field(&KernelRecord::device, "cpu:1 -processors=" + last)));
  const OwnedProgram as_compiled = Load();
  const OwnedProgram moved = Load((R"({"processors": ["cpu:1=)" + std::to_string(usable.front()) + "\"]}").c_str());
  EXPECT_EQ(collage_program_threads(moved.get()), std::min(2, static_cast<int>(usable.size()) - 1));
  Tensor x(TensorType{{1, 16, 24, 24}});
  FillRandom(x, 3);
  std::vector<std::vector<Tensor>> results;
  for (const OwnedProgram* program : {&as_compiled, &moved}) {
    results.push_back({Tensor(x.type())});
    ASSERT_EQ(Said(Run(Open(*program), {x}, results.back())), "");
  }
  EXPECT_TRUE(BitwiseEqual(results[0][0], results[1][0]));
  collage_program* program = nullptr;
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), R"({"processors": ["cpu:2=0"]})", &program)),
              AllOf(StartsWith("2: "), HasSubstr("has no kernels on cpu:2, for which processors are stated")));
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), R"({"processors": ["cpu:1=1023"]})", &program)),
              AllOf(StartsWith("2: "), HasSubstr("cpu:1: processor 1023 is not there")));
}

TEST_F(CompileTest, WhatIsWrongWithTheModelIsSaid) {
  EXPECT_THAT(Compile(Options()), AllOf(StartsWith("4: /no/such.onnx"), HasSubstr("No such file")));
  WriteModel();
  EXPECT_THAT(Compile(Options(R"(, "targets": ["gpu"])")), AllOf(StartsWith("4: "), HasSubstr("gpu")));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

struct Heard {
  std::vector<std::string> stages;
  std::thread::id thread;
  int wish = COLLAGE_GO_ON;
  static int Hear(void* user, const char* stage, uint64_t, uint64_t, const char*) {
    auto& heard = *static_cast<Heard*>(user);
    heard.stages.emplace_back(stage);
    heard.thread = std::this_thread::get_id();
    return heard.stages.size() > 3 ? heard.wish : COLLAGE_GO_ON;
  }
};

TEST_F(CompileTest, CompilesInAProcessOfItsOwnAndThreadsRunTheResult) {
  WriteModel();
  Heard heard;
  ASSERT_EQ(Compile(Options(), Heard::Hear, &heard), "");
  EXPECT_GT(heard.stages.size(), 3u);
  EXPECT_EQ(heard.thread, std::this_thread::get_id());
  const OwnedProgram program = Load();
  EXPECT_THAT(collage_program_report(program.get()), HasSubstr("plan"));
  Result<LoweredModel> model = LoadProgram(path_, Device{DeviceKind::kCpu, 0, 2});
  ASSERT_TRUE(model) << model.error().message;
  executable_ = std::make_unique<Executable>(std::move(model->executable));
  const std::vector<Tensor> inputs = Inputs(1);
  const std::vector<Tensor> expected = *executable_->Run(inputs);
  std::vector<std::string> problems(4);
  std::vector<std::thread> threads;
  for (std::string& problem : problems) {
    threads.emplace_back([&] {
      const OwnedSession session = Open(program);
      std::vector<Tensor> outputs = Outputs();
      for (int run = 0; run < 20; ++run) {
        problem += Said(Run(session, inputs, outputs));
        if (!BitwiseEqual(outputs[0], expected[0])) problem += "differs; ";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST_F(CompileTest, AStopByTheCallbackSavesTheBestPlanSoFar) {
  WriteModel();
  Heard heard;
  heard.wish = COLLAGE_FINISH;
  // Without the stop it would take as long as this test may.
  std::string options = Options(R"(, "eager": true, "tune": 1700)");
  options.replace(options.find("\"budget\": 4"), 11, "\"budget\": 1700");
  ASSERT_EQ(Compile(options, Heard::Hear, &heard), "");
  const OwnedProgram program = Load();
  Result<LoweredModel> model = LoadProgram(path_, Device{DeviceKind::kCpu, 0, 2});
  ASSERT_TRUE(model) << model.error().message;
  executable_ = std::make_unique<Executable>(std::move(model->executable));
  ExpectRight(Open(program), 1);
}

TEST_F(CompileTest, AStopAtOnceSavesNothing) {
  WriteModel();
  Heard heard;
  heard.wish = COLLAGE_GIVE_UP;
  EXPECT_EQ(Compile(Options(), Heard::Hear, &heard), "5: stopped by the caller; nothing was saved");
  EXPECT_EQ(heard.stages.size(), 4u);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

/// A product of rows, as many as a run has.
class OnDemandTest : public CompileTest {
 protected:
  void SetUp() override {
    CompileTest::SetUp();
    WriteRows(model_ = folder_ / "rows.onnx", 1);
    ASSERT_EQ(Compile(Options(R"(, "shapes": {"p0": [2, 8]})")), "");
  }

  /// p0 [rows, 8] -> r0, the product with a matrix.
  static onnx_io::OnnxGraph Rows(uint64_t seed) {
    std::vector<float> weights;
    for (uint64_t i = 0; i < 64; ++i) weights.push_back(static_cast<float>((i * 7 + seed) % 5));
    const std::vector<onnx_io::OnnxDimension> rows = {{std::nullopt, "rows"}, {8, ""}};
    onnx_io::OnnxGraph graph;
    graph.opset = 13;
    graph.nodes.push_back({"product", "MatMul", "", 13, 0, {"p0", "w"}, {"r0"}, {}});
    graph.initializers.emplace_back("w", Tensor::FromVector<float>({{8, 8}, DType::kFloat32}, weights));
    graph.inputs.push_back({"p0", DType::kFloat32, rows});
    graph.outputs = {"r0"};
    graph.output_types.push_back({"r0", DType::kFloat32, rows});
    return graph;
  }
  static void Write(const std::filesystem::path& path, const onnx_io::OnnxGraph& graph) {
    const Result<std::string> bytes = onnx_io::ModelMessage(graph);
    ASSERT_TRUE(bytes) << bytes.error().message;
    std::ofstream(path, std::ios::binary) << *bytes;
  }
  static void WriteRows(const std::filesystem::path& path, uint64_t seed) { Write(path, Rows(seed)); }

  [[nodiscard]] std::string OnDemand(int rows, const std::string& model) const {
    return R"({"shapes": {"p0": [)" + std::to_string(rows) + R"(, 8]}, "compile_on_demand": ")" + model +
           R"(", "compile": {"budget": 4, "targets": ["cpu -compiler=reference"], "cache": ")" + (folder_ / "prices").string() + "\"}}";
  }
  std::string LoadFor(const std::string& options, OwnedProgram& program, size_t& profile) {
    collage_program* loaded = nullptr;
    std::string said = Said(collage_program_load_or_compile(path_.c_str(), options.c_str(), nullptr, nullptr, &loaded, &profile));
    program.reset(loaded);
    return said;
  }
  [[nodiscard]] std::vector<std::filesystem::path> Kept() const {
    std::vector<std::filesystem::path> files;
    const std::filesystem::path folder = path_.string() + ".profiles";
    if (!std::filesystem::exists(folder)) return files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".collage") files.push_back(entry.path());
    }
    return files;
  }
  /// Rows of ones give the sums of the weights' columns, whatever their number.
  static void ExpectSums(const OwnedProgram& program, size_t profile, int64_t rows) {
    const OwnedSession session = Open(program);
    ASSERT_EQ(Said(collage_session_select_profile(session.get(), profile)), "");
    const Tensor ones = Tensor::FromVector<float>({{rows, 8}, DType::kFloat32}, std::vector<float>(static_cast<size_t>(rows) * 8, 1));
    std::vector<Tensor> sums = {Tensor(ones.type())};
    ASSERT_EQ(Said(Run(session, {ones}, sums)), "");
    for (int64_t at = 0; at < rows * 8; ++at) {
      float expected = 0;
      for (int64_t i = at % 8; i < 64; i += 8) expected += static_cast<float>((i * 7 + 1) % 5);
      EXPECT_EQ(sums[0].Data<float>()[at], expected) << at;
    }
  }
};

TEST_F(OnDemandTest, CompilesAShapeOnceAndKeepsIt) {
  OwnedProgram program;
  size_t profile = 9;
  ASSERT_EQ(LoadFor(OnDemand(2, model_), program, profile), "");
  ExpectSums(program, profile, 2);
  EXPECT_TRUE(Kept().empty()) << "the file has that profile";
  ASSERT_EQ(LoadFor(OnDemand(5, model_), program, profile), "");
  ExpectSums(program, profile, 5);
  ASSERT_EQ(Kept().size(), 1u);
  const auto written = std::filesystem::last_write_time(Kept()[0]);
  ASSERT_EQ(LoadFor(OnDemand(5, model_), program, profile), "");
  ExpectSums(program, profile, 5);
  EXPECT_EQ(std::filesystem::last_write_time(Kept()[0]), written) << "it was compiled again";
}

TEST_F(OnDemandTest, WhatIsWrongIsSaidAndNothingIsKept) {
  OwnedProgram program;
  size_t profile = 9;
  EXPECT_EQ(LoadFor(R"({"shapes": {"p0": [5, 8]}})", program, profile),
            "1: " + path_.string() +
                R"( has no profile of {"p0":[5,8]}; it has {"p0":[2,8]}. With the option 'compile_on_demand' one is compiled)");
  EXPECT_EQ(LoadFor(R"({"shapes": {"x": [5, 8]}})", program, profile), "1: option 'shapes' names 'x', which is no input; there are 'p0'");
  EXPECT_THAT(LoadFor(R"({"shapes": {"p0": [-1]}})", program, profile), StartsWith(R"(1: option 'shapes' is {"p0":[-1]}, expected)"));
  EXPECT_THAT(LoadFor(R"({"compile": {"budget": 4}})", program, profile), StartsWith("1: option 'compile' is given without"));
  EXPECT_THAT(LoadFor(R"({"thread": 4})", program, profile), StartsWith("1: unknown option 'thread'"));
  const std::filesystem::path other = folder_ / "other.onnx";
  WriteRows(other, 2);
  EXPECT_EQ(LoadFor(OnDemand(5, other), program, profile),
            "4: " + other.string() + ": is not the model that " + path_.string() + " was compiled from");
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(profile, 0u);
  EXPECT_TRUE(Kept().empty());
  collage_program* loaded = nullptr;
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), OnDemand(5, model_).c_str(), &loaded)),
              AllOf(StartsWith("1: option 'compile"), HasSubstr("in libcollage")));
}

/// The same, and behind it the places of what is not zero, whose number depends on data: the model is cut in front of them.
class OnDemandBehindACutTest : public OnDemandTest {
 protected:
  void SetUp() override {
    CompileTest::SetUp();
    onnx_io::OnnxGraph graph = Rows(1);
    graph.nodes.push_back({"places", "NonZero", "", 13, 0, {"r0"}, {"where"}, {}});
    graph.outputs.emplace_back("where");
    graph.output_types.push_back({"where", DType::kInt64, std::vector<onnx_io::OnnxDimension>{{2, ""}, {std::nullopt, "n"}}});
    Write(model_ = folder_ / "places.onnx", graph);
    ASSERT_EQ(Compile(Options(R"(, "shapes": {"p0": [2, 8]})")), "");
  }

  /// Rows of zeros, but for one of ones: no column of the matrix has a sum of zero, so that row's places are found, and no others.
  static void ExpectPlaces(const OwnedProgram& program, size_t profile, int64_t rows, int64_t row) {
    EXPECT_EQ(collage_program_is_sized_by_run(program.get()), 1);
    const collage_tensor_info where = collage_program_output(program.get(), profile, 1);
    EXPECT_EQ(Shape(where.shape, where.shape + where.rank), (Shape{2, COLLAGE_UNKNOWN_EXTENT}));
    const OwnedSession session = Open(program);
    ASSERT_EQ(Said(collage_session_select_profile(session.get(), profile)), "");
    std::vector<float> x(static_cast<size_t>(rows) * 8, 0);
    std::fill_n(x.begin() + row * 8, 8, 1.0F);
    const collage_input input{x.data(), x.size() * sizeof(float)};
    ASSERT_EQ(Said(collage_session_evaluate(session.get(), &input, 1)), "");
    const collage_result product = collage_session_result(session.get(), 0);
    EXPECT_EQ(Shape(product.info.shape, product.info.shape + product.info.rank), (Shape{rows, 8}));
    const collage_result found = collage_session_result(session.get(), 1);
    ASSERT_EQ(Shape(found.info.shape, found.info.shape + found.info.rank), (Shape{2, 8}));
    const auto* places = static_cast<const int64_t*>(found.data);
    std::vector<int64_t> expected(8, row);
    for (int64_t column = 0; column < 8; ++column) expected.push_back(column);
    EXPECT_EQ(std::vector<int64_t>(places, places + 16), expected);
  }
};

TEST_F(OnDemandBehindACutTest, CompilesAShapeOnceAndKeepsWhatLiesBehindTheCut) {
  OwnedProgram program;
  size_t profile = 9;
  ASSERT_EQ(LoadFor(OnDemand(2, model_), program, profile), "");
  ExpectPlaces(program, profile, 2, 1);
  EXPECT_TRUE(Kept().empty()) << "the file has that profile";
  ASSERT_EQ(LoadFor(OnDemand(5, model_), program, profile), "");
  ExpectPlaces(program, profile, 5, 3);
  ASSERT_EQ(Kept().size(), 1u);
  const auto written = std::filesystem::last_write_time(Kept()[0]);
  ASSERT_EQ(LoadFor(OnDemand(5, model_), program, profile), "");
  ExpectPlaces(program, profile, 5, 4);
  EXPECT_EQ(std::filesystem::last_write_time(Kept()[0]), written) << "it was compiled again";
}

}  // namespace
}  // namespace collage
