#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "collage/onnx/graph.h"
#include "collage/onnx/graph_message.h"
#include "collage/onnx/remainder.h"
#include "collage/support/file.h"
#include "tests/c/saved_programs.h"

namespace collage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ProgramTest : public SavedPrograms {};

TEST_F(ProgramTest, SaysWhatItTakesAndGives) {
  Save(kTwoOutputs);
  const OwnedProgram program = Load();
  EXPECT_EQ(collage_abi_version(), COLLAGE_ABI_VERSION);
  ASSERT_EQ(collage_program_input_count(program.get()), 2u);
  ASSERT_EQ(collage_program_output_count(program.get()), 2u);
  const collage_tensor_info input = collage_program_input(program.get(), 0, 1);
  EXPECT_STREQ(input.name, "y");
  EXPECT_STREQ(input.type, "float32");
  EXPECT_EQ(Shape(input.shape, input.shape + input.rank), (Shape{3, 5}));
  EXPECT_EQ(input.bytes, 60u);
  EXPECT_STREQ(collage_program_output(program.get(), 0, 0).name, "output0");
  EXPECT_EQ(collage_program_output(program.get(), 0, 2).name, nullptr);
  EXPECT_STREQ(collage_program_report(program.get()), R"({"note": 1})");
  EXPECT_EQ(collage_program_threads(program.get()), 2);
  EXPECT_EQ(collage_program_threads(Load(R"({"threads": 1})").get()), 1);
}

TEST_F(ProgramTest, RunsAsTheExecutorDoesFromAFileAndFromMemory) {
  for (const char* backend : {"reference", "native"}) {
    SCOPED_TRACE(backend);
    Save(kTwoOutputs, backend);
    std::string bytes = *ReadFile(path_);
    collage_program* from_memory = nullptr;
    ASSERT_EQ(Said(collage_program_load_memory(bytes.data(), bytes.size(), nullptr, &from_memory)), "");
    bytes.assign(bytes.size(), 'x');  // they were copied
    const OwnedProgram memory(from_memory);
    const OwnedProgram file = Load();
    const OwnedProgram again = Load(R"({"compile_again": true})");
    for (const OwnedProgram* program : {&memory, &file, &again}) {
      const OwnedSession session = Open(*program);
      for (uint64_t seed = 0; seed < 3; ++seed) ExpectRight(session, seed);
    }
  }
}

TEST_F(ProgramTest, StringsAreNumbersOfTexts) {
  Save("def @main(%x: Tensor[(2), string], %y: Tensor[(2), string]) { strings.concat(%x, %y) }");
  const OwnedProgram program = Load();
  EXPECT_STREQ(collage_program_input(program.get(), 0, 0).type, "string");
  EXPECT_EQ(collage_program_input(program.get(), 0, 0).bytes, 16u);
  const auto number = [](std::string_view text) {
    uint64_t of_text = 0;
    EXPECT_EQ(Said(collage_string_number(text.data(), text.size(), &of_text)), "");
    return of_text;
  };
  const std::vector<uint64_t> x = {number("a"), number(std::string_view("\0", 1))};
  const std::vector<uint64_t> y = {number("b"), number("")};
  std::vector<uint64_t> z(2);
  EXPECT_EQ(y[1], 0u);
  const OwnedSession session = Open(program);
  const collage_input inputs[] = {{x.data(), 16}, {y.data(), 16}};
  const collage_output output{z.data(), 16};
  ASSERT_EQ(Said(collage_session_run(session.get(), inputs, 2, &output, 1)), "");
  size_t bytes = 0;
  EXPECT_STREQ(collage_string_text(z[0], &bytes), "ab");
  EXPECT_EQ(bytes, 2u);
  const char* zero = collage_string_text(z[1], &bytes);
  EXPECT_EQ(std::string(zero, bytes), std::string("\0", 1));
  EXPECT_STREQ(collage_string_text(~uint64_t{0}, nullptr), "") << "no text has this number";
  EXPECT_EQ(Said(collage_string_number("a", 1, nullptr)), "1: collage_string_number: text and number must not be null");
}

TEST_F(ProgramTest, ControlFlowIsLoadedAndRunThroughTheSameInterface) {
  Save(R"(#[version = "0.0.5"]
    def @main(%n: int32, %x: Tensor[(2), float32]) { @power(%n, %x) }
    def @power(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (less(%n, 1)) { %x } else { @power(subtract(%n, 1), tanh(%x)) }
    })");
  const OwnedProgram program = Load();
  const OwnedSession first = Open(program);
  const OwnedSession second = Open(program);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    ExpectRight(first, seed);
    ExpectRight(second, seed);
  }
}

TEST_F(ProgramTest, ASessionRunsTheProfileThatItHasSelected) {
  SaveProfiles({"#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }",
                "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(3), float32]) { nn.relu(%x) }"});
  const OwnedProgram program = Load();
  ASSERT_EQ(collage_program_profile_count(program.get()), 2u);
  EXPECT_EQ(collage_program_input(program.get(), 1, 0).bytes, 12u);
  EXPECT_EQ(collage_program_output(program.get(), 2, 0).name, nullptr);
  const OwnedSession session = Open(program);
  const std::vector<float> x = {-1, 2, 3};
  for (const size_t profile : {1, 0, 1}) {
    ASSERT_EQ(Said(collage_session_select_profile(session.get(), profile)), "");
    const size_t bytes = (2 + profile) * sizeof(float);
    std::vector<float> y(3, 7);
    const collage_input input{x.data(), bytes};
    const collage_output output{y.data(), bytes};
    ASSERT_EQ(Said(collage_session_run(session.get(), &input, 1, &output, 1)), "");
    EXPECT_EQ(y, (std::vector<float>{0, 2, profile == 1 ? 3.0f : 7.0f}));
  }
  EXPECT_THAT(Said(collage_session_select_profile(session.get(), 2)), HasSubstr("there is no profile 2; there are 2"));
}

/// hidden -> where, the places of what is not zero; hidden.
std::shared_ptr<const Remainder> PlacesBehind(const std::string& hidden) {
  using onnx_io::OnnxDimension;
  onnx_io::OnnxGraph graph;
  graph.opset = 17;
  graph.nodes.push_back({"places", "NonZero", "", 17, 0, {hidden}, {"where"}, {}});
  graph.outputs = {"where", hidden};
  graph.output_types.push_back({"where", DType::kInt64, std::vector<OnnxDimension>{{1, ""}, {std::nullopt, "n"}}});
  graph.output_types.push_back({hidden, DType::kFloat32, std::vector<OnnxDimension>{{4, ""}}});
  Result<std::string> message = onnx_io::ModelMessage(graph);
  EXPECT_TRUE(message) << message.error().message;
  Result<std::shared_ptr<const Remainder>> remainder = CreateRemainder({*message, {{hidden, std::nullopt}}, {}, "places: why"});
  EXPECT_TRUE(remainder) << remainder.error().message;
  return *remainder;
}

TEST_F(ProgramTest, OutputsWhoseExtentsDependOnDataLieInTheSession) {
  remainders_ = {PlacesBehind("hidden")};
  Save("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { nn.relu(%x) }");
  const OwnedProgram program = Load();
  EXPECT_EQ(collage_program_is_sized_by_run(program.get()), 1);
  ASSERT_EQ(collage_program_output_count(program.get()), 2u);
  const collage_tensor_info where = collage_program_output(program.get(), 0, 0);
  EXPECT_STREQ(where.name, "where");
  EXPECT_STREQ(where.type, "int64");
  EXPECT_EQ(Shape(where.shape, where.shape + where.rank), (Shape{1, COLLAGE_UNKNOWN_EXTENT}));
  EXPECT_EQ(where.bytes, 0u);
  EXPECT_EQ(collage_program_output(program.get(), 0, 1).bytes, 16u);
  EXPECT_EQ(collage_program_output(program.get(), 0, 2).name, nullptr);
  const OwnedSession session = Open(program);
  EXPECT_EQ(collage_session_result(session.get(), 0).data, nullptr);
  const std::vector<std::pair<std::vector<float>, std::vector<int64_t>>> runs = {
      {{1, -1, 0, 2}, {0, 3}}, {{-1, -1, -1, -1}, {}}, {{1, 2, 3, 4}, {0, 1, 2, 3}}};
  for (const auto& [x, places] : runs) {
    const collage_input input{x.data(), x.size() * sizeof(float)};
    ASSERT_EQ(Said(collage_session_evaluate(session.get(), &input, 1)), "");
    const collage_result found = collage_session_result(session.get(), 0);
    EXPECT_STREQ(found.info.name, "where");
    EXPECT_EQ(Shape(found.info.shape, found.info.shape + found.info.rank), (Shape{1, static_cast<int64_t>(places.size())}));
    ASSERT_EQ(found.info.bytes, places.size() * sizeof(int64_t));
    const auto* values = static_cast<const int64_t*>(found.data);
    EXPECT_EQ(std::vector<int64_t>(values, values + places.size()), places);
    const collage_result hidden = collage_session_result(session.get(), 1);
    ASSERT_EQ(hidden.info.bytes, 16u);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(static_cast<const float*>(hidden.data)[i], std::max(x[i], 0.0f));
    EXPECT_EQ(collage_session_result(session.get(), 2).data, nullptr);
  }
}

TEST_F(ProgramTest, EachProfileHasWhatLiesBehindIt) {
  remainders_ = {PlacesBehind("hidden"), PlacesBehind("other")};
  SaveProfiles({"#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { nn.relu(%x) }",
                "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { negative(%x) }"});
  const OwnedProgram program = Load();
  EXPECT_EQ(collage_program_is_sized_by_run(program.get()), 1);
  EXPECT_STREQ(collage_program_output(program.get(), 0, 1).name, "hidden");
  EXPECT_STREQ(collage_program_output(program.get(), 1, 1).name, "other");
  const OwnedSession session = Open(program);
  const std::vector<float> x = {-1, 0, 3, 4};
  for (const size_t profile : {1, 0, 1}) {
    ASSERT_EQ(Said(collage_session_select_profile(session.get(), profile)), "");
    const collage_input input{x.data(), (profile == 0 ? 4 : 2) * sizeof(float)};
    ASSERT_EQ(Said(collage_session_evaluate(session.get(), &input, 1)), "");
    const collage_result where = collage_session_result(session.get(), 0);
    const auto* places = static_cast<const int64_t*>(where.data);
    EXPECT_EQ(std::vector<int64_t>(places, places + where.info.bytes / sizeof(int64_t)),
              (profile == 0 ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{0}));
    EXPECT_STREQ(collage_session_result(session.get(), 1).info.name, profile == 0 ? "hidden" : "other");
  }
}

TEST_F(ProgramTest, RemaindersOfOtherProfilesThanThereAreAreRefused) {
  remainders_ = {PlacesBehind("hidden"), PlacesBehind("hidden")};
  Save("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { nn.relu(%x) }");
  collage_program* program = nullptr;
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), nullptr, &program)), HasSubstr("it has remainders of 2 profiles, and 1 profiles"));
}

TEST_F(ProgramTest, BuffersForOutputsOfUnknownExtentsAreRefused) {
  remainders_ = {PlacesBehind("hidden")};
  Save("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { nn.relu(%x) }");
  const OwnedProgram program = Load();
  const OwnedSession session = Open(program);
  const std::vector<float> x(4, 1);
  std::vector<float> y(8);
  const collage_input input{x.data(), 16};
  const collage_output outputs[2] = {{y.data(), 16}, {y.data() + 4, 16}};
  EXPECT_THAT(Said(collage_session_run(session.get(), &input, 1, outputs, 2)), HasSubstr("use collage_session_evaluate"));
  EXPECT_THAT(Said(collage_session_evaluate(session.get(), &input, 2)), HasSubstr("2 inputs were given, expected 1"));
  EXPECT_THAT(Said(collage_session_evaluate(nullptr, &input, 1)), HasSubstr("must not be null"));
}

TEST_F(ProgramTest, AnyProgramMayBeEvaluatedIntoItsSession) {
  Save(kTwoOutputs);
  const OwnedProgram program = Load();
  EXPECT_EQ(collage_program_is_sized_by_run(program.get()), 0);
  const OwnedSession session = Open(program);
  const std::vector<Tensor> inputs = Inputs(1);
  const std::vector<collage_input> in = In(inputs);
  ASSERT_EQ(Said(collage_session_evaluate(session.get(), in.data(), in.size())), "");
  const Result<std::vector<Tensor>> expected = executable_->Run(inputs);
  for (size_t i = 0; i < expected->size(); ++i) {
    const collage_result found = collage_session_result(session.get(), i);
    ASSERT_EQ(found.info.bytes, (*expected)[i].ByteCount());
    EXPECT_EQ(std::memcmp(found.data, (*expected)[i].Bytes(), found.info.bytes), 0);
  }
}

TEST_F(ProgramTest, AHeadThatDoesNotFitItsRemainderIsRefused) {
  remainders_ = {PlacesBehind("hidden")};
  Save(kTwoOutputs);  // gives two values where one is taken
  collage_program* program = nullptr;
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), nullptr, &program)),
              HasSubstr("its head gives other values than its remainder takes"));
}

TEST_F(ProgramTest, ARegionOfRowsWithoutItsProgramIsRefused) {
  Remainder::Parts parts = PlacesBehind("hidden")->parts();
  parts.regions.push_back({0, 1, {"hidden"}, {true}, {"where"}, {{4, 7, 1.0}}});
  const Result<std::shared_ptr<const Remainder>> remainder = CreateRemainder(std::move(parts));
  ASSERT_TRUE(remainder) << remainder.error().message;
  remainders_ = {*remainder};
  Save("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { nn.relu(%x) }");
  collage_program* program = nullptr;
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), nullptr, &program)), HasSubstr("a program of rows is in a block that is not there"));
}

TEST_F(ProgramTest, ThreadsWithSessionsOfTheirOwnGiveTheSameBits) {
  for (const char* backend : {"reference", "native"}) {
    SCOPED_TRACE(backend);
    Save(kTwoOutputs, backend);
    const OwnedProgram program = Load();
    constexpr size_t kThreads = 8;
    constexpr uint64_t kRuns = 20;
    std::vector<std::vector<Tensor>> inputs;
    std::vector<std::vector<Tensor>> expected;
    for (uint64_t run = 0; run < kRuns; ++run) {
      inputs.push_back(Inputs(run));
      expected.push_back(*executable_->Run(inputs.back()));
    }
    std::vector<std::string> problems(kThreads);
    std::vector<std::thread> threads;
    for (std::string& problem : problems) {
      threads.emplace_back([&] {
        const OwnedSession session = Open(program);
        for (uint64_t run = 0; run < kRuns; ++run) {
          std::vector<Tensor> outputs = Outputs();
          problem += Said(Run(session, inputs[run], outputs));
          for (size_t i = 0; i < outputs.size(); ++i) {
            if (!BitwiseEqual(outputs[i], expected[run][i])) problem += "run " + std::to_string(run) + " differs; ";
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  }
}

TEST_F(ProgramTest, FilesThatAreNoneAreErrorsThatSaySo) {
  Save(kTwoOutputs);
  const std::string whole = *ReadFile(path_);
  const auto said = [&](const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    collage_program* program = reinterpret_cast<collage_program*>(this);
    const std::string file = Said(collage_program_load(path_.c_str(), nullptr, &program));
    EXPECT_EQ(program, nullptr);
    const std::string memory = Said(collage_program_load_memory(content.data(), content.size(), nullptr, &program));
    EXPECT_THAT(memory, StartsWith("2: the program in memory: "));
    EXPECT_EQ(memory.substr(memory.find(": is")), file.substr(file.find(": is")));
    return file;
  };
  std::string damaged = whole;
  damaged[whole.size() / 2] ^= 1;
  EXPECT_THAT(said(""), AllOf(StartsWith("2: " + path_.string()), HasSubstr("is empty")));
  EXPECT_THAT(said("something else"), HasSubstr("is not a compiled model"));
  EXPECT_THAT(said(whole.substr(0, whole.size() - 100)), HasSubstr("is truncated"));
  EXPECT_THAT(said(damaged), HasSubstr("is damaged"));
  collage_program* program = nullptr;
  EXPECT_THAT(Said(collage_program_load("/no/such.collage", nullptr, &program)),
              AllOf(StartsWith("2: /no/such.collage"), HasSubstr("No such file")));
}

TEST_F(ProgramTest, WrongOptionsAndNullsAreErrorsOfTheCaller) {
  Save(kTwoOutputs);
  collage_program* program = nullptr;
  const auto said = [&](const char* options) { return Said(collage_program_load(path_.c_str(), options, &program)); };
  EXPECT_THAT(said("{"), AllOf(StartsWith("1: "), HasSubstr("expected a JSON object")));
  EXPECT_EQ(said(R"({"threads": 0})"), "1: option 'threads' is 0, expected a whole number from 1 to 1024");
  EXPECT_EQ(said(R"({"thread": 1})"), "1: unknown option 'thread'; there are 'threads', 'compile_again', 'plugins' and 'processors'");
  EXPECT_EQ(said(R"({"processors": "cpu:1=1"})"), R"(1: option 'processors' is "cpu:1=1", expected a list such as ["cpu:1=2-3"])");
  EXPECT_EQ(said(R"({"processors": ["cpu:1"]})"), "1: option 'processors': cpu:1: expected a CPU and its processors, such as cpu:1=2-3");
  EXPECT_THAT(said(R"({"processors": ["cpu:1=0"]})"), AllOf(StartsWith("2: "), HasSubstr("has no kernels on cpu:1")));
  EXPECT_EQ(said(R"({"plugins": "x.so"})"), R"(1: option 'plugins' is "x.so", expected a list of files)");
  EXPECT_THAT(said(R"({"plugins": ["/nowhere/x.so"]})"), HasSubstr("/nowhere/x.so: cannot open shared object file"));
  EXPECT_EQ(said(R"({"compile_again": 1})"), "1: option 'compile_again' is 1, expected true or false");
  EXPECT_THAT(Said(collage_program_load(nullptr, nullptr, &program)), HasSubstr("must not be null"));
  EXPECT_THAT(Said(collage_program_load(path_.c_str(), nullptr, nullptr)), HasSubstr("must not be null"));
  EXPECT_THAT(Said(collage_session_create(nullptr, nullptr)), HasSubstr("must not be null"));
  EXPECT_THAT(Said(collage_session_run(nullptr, nullptr, 0, nullptr, 0)), HasSubstr("must not be null"));
  collage_program_free(nullptr);
  collage_session_free(nullptr);
  EXPECT_STREQ(collage_error_message(nullptr), "");
}

TEST_F(ProgramTest, WrongBuffersAreErrorsThatNameThem) {
  Save(kTwoOutputs);
  const OwnedProgram program = Load();
  const OwnedSession session = Open(program);
  const std::vector<Tensor> inputs = Inputs(1);
  std::vector<Tensor> outputs = Outputs();
  const auto said = [&](const std::vector<collage_input>& in, const std::vector<collage_output>& out) {
    return Said(collage_session_run(session.get(), in.data(), in.size(), out.data(), out.size()));
  };
  std::vector<collage_input> in = In(inputs);
  std::vector<collage_output> out = Out(outputs);
  EXPECT_EQ(said({in[0]}, out), "1: 1 inputs were given, expected 2");
  EXPECT_EQ(said(in, {out[0]}), "1: 1 outputs were given, expected 2");
  in[1].bytes = 56;
  EXPECT_EQ(said(in, out), "1: input 'y' has 56 bytes, expected 60 for Tensor[(3, 5), float32]");
  in[1] = {nullptr, 60};
  EXPECT_EQ(said(in, out), "1: input 'y' is null, expected 60 for Tensor[(3, 5), float32]");
  in = In(inputs);
  out[0] = {nullptr, 60};
  EXPECT_EQ(said(in, out), "1: output 'output0' is null, expected 60 for Tensor[(3, 5), float32]");
  out[0] = out[1];
  EXPECT_THAT(said(in, out), HasSubstr("'output1' shares memory"));
  ExpectRight(session, 2);
}

TEST_F(ProgramTest, BuffersAtAnyAddressWillDo) {
  Save(kTwoOutputs, "native");
  const OwnedProgram program = Load();
  const OwnedSession session = Open(program);
  const std::vector<Tensor> inputs = Inputs(1);
  const std::vector<Tensor> expected = *executable_->Run(inputs);
  std::vector<std::byte> memory(512);
  for (const size_t offset : {0u, 1u, 4u, 63u}) {
    std::byte* at = memory.data() + offset;
    std::vector<collage_input> in;
    for (size_t i = 0; i < 2; ++i, at += 64) in.push_back({std::memcpy(at, inputs[i].Bytes(), 60), 60});
    const std::vector<collage_output> out = {{at, 60}, {at + 64, 60}};
    ASSERT_EQ(Said(collage_session_run(session.get(), in.data(), 2, out.data(), 2)), "");
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(std::memcmp(out[i].data, expected[i].Bytes(), 60), 0);
  }
}

TEST_F(ProgramTest, TensorsWithoutElementsNeedNoMemory) {
  Save(R"(#[version = "0.0.5"]
    def @main(%x: Tensor[(0, 4), float32]) { tanh(%x) })");
  const OwnedProgram program = Load();
  const OwnedSession session = Open(program);
  const collage_input in{nullptr, 0};
  const collage_output out{nullptr, 0};
  EXPECT_EQ(Said(collage_session_run(session.get(), &in, 1, &out, 1)), "");
}

TEST_F(ProgramTest, AProfileCountsTheRunsOfOneSession) {
  Save(kTwoOutputs);
  const OwnedProgram program = Load();
  OwnedSession session = Open(program);
  ASSERT_EQ(collage_session_step_count(session.get()), 3u);
  collage_session_set_profiling(session.get(), 1);
  for (uint64_t seed = 0; seed < 4; ++seed) ExpectRight(session, seed);
  const collage_step step = collage_session_step(session.get(), 0);
  EXPECT_STREQ(step.kind, "kernel");
  EXPECT_STREQ(step.backend, "reference");
  EXPECT_EQ(step.calls, 4u);
  EXPECT_GT(step.microseconds, 0);
  EXPECT_EQ(collage_session_step(session.get(), 3).kind, nullptr);
  // The next one takes over what it held, but not what it measured.
  session.reset();
  const OwnedSession next = Open(program);
  ExpectRight(next, 1);
  EXPECT_EQ(collage_session_step(next.get(), 0).calls, 0u);
}

}  // namespace
}  // namespace collage
