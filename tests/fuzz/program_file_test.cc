// Program files that somebody has changed and made whole again: whatever is in them, loading gives a program or one line that names the
// file. Of those that load, the ones without changed machine code also run.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "collage/backend/registry.h"
#include "collage/ir/parse.h"
#include "collage/lower/save.h"
#include "collage/op/table.h"
#include "collage/runtime/container.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// A region of a library in blocked layouts, generated machine code, and operators that nobody took, with views and a constant between.
constexpr const char* kProgram =
    R"(def @main(%x: Tensor[(1, 8, 6, 6), float32]) -> (Tensor[(1, 8, 6, 6), float32], Tensor[(288), float32]) {
  %2 = fn (%a: Tensor[(1, 8, 6, 6), float32], Primitive=1, Compiler="dnnl", global_symbol="region") -> Tensor[(1, 8, 6, 6), float32] {
    %0 = fn (%b: Tensor[(1, 8, 6, 6), float32], Composite="dnnl.conv2d") -> Tensor[(1, 8, 6, 6), float32] {
      nn.conv2d(%b, meta[relay.Constant][0] /*Tensor[(8, 8, 1, 1), float32]*/) };
    %1 = fn (%c: Tensor[(1, 8, 6, 6), float32], Composite="dnnl.tanh") -> Tensor[(1, 8, 6, 6), float32] { tanh(%c) };
    %1(%0(%a)) };
  %3 = %2(%x);
  %4 = fn (%d: Tensor[(1, 8, 6, 6), float32], Primitive=1, Compiler="native", global_symbol="generated") -> Tensor[(1, 8, 6, 6), float32] {
    exp(negative(%d)) };
  %5 = %4(%3);
  %6 = add(%5, meta[relay.Constant][1] /*Tensor[(8, 1, 1), float32]*/);
  %7 = reshape(%6, newshape=[288]);
  (%5, nn.relu(%7))
})";

class ProgramFile : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"dnnl", "native"}) {
      if (!FindBackend(name, device_)) GTEST_SKIP() << name << " is absent";
    }
    ParseOptions parse;
    parse.missing_constant = RandomConstants(3);
    const Result<ParsedModule> parsed = ParseModule(kProgram, Operators(), parse);
    ASSERT_TRUE(parsed) << parsed.error().message;
    LowerOptions options;
    options.device = device_;
    options.find_backend = FindBackend;
    const Result<LoweredModel> model = Lower(parsed->module, options);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(SaveProgram(*model, "{}", path_));
    const Result<Container> container = Container::Open(path_);
    for (size_t i = 0; i < container->size(); ++i) blobs_.emplace_back(container->blob(i));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void Write(const std::vector<std::string>& blobs) const {
    Result<ContainerWriter> writer = ContainerWriter::Create(path_);
    ASSERT_TRUE(writer) << writer.error().message;
    for (const std::string& blob : blobs) writer->Add(blob);
    ASSERT_TRUE(writer->Commit());
  }

  /// The program that the file holds now, or nothing after looking at the error.
  std::optional<LoweredModel> Load(MachineCode machine_code) const {
    Result<LoweredModel> model = LoadProgram(path_, device_, machine_code);
    if (model) return std::move(*model);
    const std::string& message = model.error().message;
    EXPECT_TRUE(message.starts_with(path_.string() + ": ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return std::nullopt;
  }

  static Result<std::vector<Tensor>> Run(LoweredModel& model) {
    std::vector<Tensor> inputs;
    for (const NamedType& input : model.executable.inputs()) inputs.emplace_back(input.type);
    return model.executable.Run(inputs);
  }

  const Device device_{};
  const std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("program_file_" + std::to_string(::getpid()) + ".collage");
  std::vector<std::string> blobs_;
};

/// Numbers at which sums and products overflow, and what is no number.
const std::vector<Json>& Odd() {
  static const std::vector<Json> odd = {nullptr,
                                        true,
                                        -1,
                                        0,
                                        1,
                                        2,
                                        3,
                                        7,
                                        16,
                                        4294967296,
                                        1099511627776,
                                        4611686018427387904,
                                        9223372036854775807,
                                        18446744073709551615u,
                                        -9223372036854775807,
                                        0.5,
                                        1e300,
                                        "",
                                        "x",
                                        "dnnl",
                                        "native",
                                        "reference",
                                        "plain",
                                        "float64",
                                        "merged/0",
                                        Json::array(),
                                        Json::object(),
                                        Json::array({4611686018427387904, 4, 0}),
                                        Json::array({0, 18446744073709551615u}),
                                        Json::array({1, 1073741824, 1073741824}),
                                        Json::array({1, 8, 6, 6, 1})};
  return odd;
}

std::string MutatedJson(const std::string& text, std::mt19937_64& random) {
  Json json = Json::parse(text);
  const Json flat = json.flatten();
  const Json value = json.at("values").at(0);
  for (size_t edits = 1 + (random() % 3 == 0); edits > 0; --edits) {
    Json::json_pointer at(std::next(flat.items().begin(), static_cast<std::ptrdiff_t>(random() % flat.size())).key());
    for (size_t up = random() % 4 == 0; up > 0 && !at.parent_pointer().empty(); --up) at = at.parent_pointer();
    // What an earlier edit has taken away cannot be changed again.
    if (json.contains(at)) json[at] = random() % 4 == 0 ? Json(value) : Odd()[random() % Odd().size()];
  }
  return json.dump();
}

/// Bytes, or whole 64-bit numbers, set to what sums and products overflow with.
std::string MutatedBytes(std::string bytes, std::mt19937_64& random) {
  for (size_t edits = 1 + random() % 4; edits > 0 && !bytes.empty(); --edits) {
    const size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
        break;
      case 2:
        if (at + 8 <= bytes.size()) {
          const uint64_t numbers[] = {0, 1, 1ULL << 31, 1ULL << 32, 1ULL << 62, ~0ULL, random()};
          std::memcpy(bytes.data() + at, &numbers[random() % 7], 8);
        }
        break;
      default:
        bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

TEST_F(ProgramFile, AChangedProgramIsRunOrRefused) {
  std::mt19937_64 random(1);
  size_t loaded = 0;
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<std::string> blobs = blobs_;
    blobs[0] = random() % 4 == 0 ? MutatedBytes(blobs[0], random) : MutatedJson(blobs[0], random);
    Write(blobs);
    std::optional<LoweredModel> model = Load(round % 8 > 0 ? MachineCode::kLoad : MachineCode::kCompileAgain);
    if (!model) continue;
    ++loaded;
    EXPECT_TRUE(Run(*model));
  }
  EXPECT_GT(loaded, 20U);  // or else the mutations are too coarse to get anywhere
  EXPECT_LT(loaded, 1300U);
}

TEST_F(ProgramFile, AChangedFunctionIsRunOrRefused) {
  std::mt19937_64 random(2);
  size_t loaded = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Json json = Json::parse(blobs_[0]);
    Json& call = json["calls"][random() % json["calls"].size()];
    std::string text = call.at("function").get<std::string>();
    // A digit more makes shapes and attributes large; other bytes make other operators and nests.
    for (size_t edits = 1 + random() % 2; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.insert(at, 1 + random() % 12, static_cast<char>('0' + random() % 10));
      } else {
        text[at] = "(){}[],;:=.%@ 0123456789-"[random() % 25];
      }
    }
    call["function"] = text;
    std::vector<std::string> blobs = blobs_;
    blobs[0] = json.dump();
    Write(blobs);
    std::optional<LoweredModel> model = Load(MachineCode::kCompileAgain);
    if (!model) continue;
    ++loaded;
    EXPECT_TRUE(Run(*model));
  }
  EXPECT_GT(loaded, 10U);
}

TEST_F(ProgramFile, ChangedMachineCodeIsLoadedOrRefusedAndLeftAloneWhenCompiledAgain) {
  std::optional<LoweredModel> whole = Load(MachineCode::kLoad);
  ASSERT_TRUE(whole);
  const std::vector<Tensor> expected = *Run(*whole);
  const Json json = Json::parse(blobs_[0]);
  size_t artifact = 0;
  for (const Json& call : json["calls"]) artifact = call.value("artifact", artifact);
  ASSERT_GT(artifact, 1U) << "no kernel has machine code in this file";
  std::mt19937_64 random(3);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<std::string> blobs = blobs_;
    blobs[artifact] = round == 0 ? std::string("rubbish") : MutatedBytes(blobs[artifact], random);
    Write(blobs);
    // What was loaded is not run: it is machine code that nobody wrote.
    const bool is_loaded = Load(MachineCode::kLoad).has_value();
    EXPECT_FALSE(round == 0 && is_loaded);
    if (round % 60 != 0) continue;
    std::optional<LoweredModel> compiled = Load(MachineCode::kCompileAgain);
    ASSERT_TRUE(compiled);
    const std::vector<Tensor> outputs = *Run(*compiled);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitwiseEqual(outputs[i], expected[i]));
  }
}

}  // namespace
}  // namespace collage
