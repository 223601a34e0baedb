// Native kernels that call a library, from the candidates to the saved program.

#include "collage/candidate/library_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "collage/backend/registry.h"
#include "collage/driver/candidates.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/lower/save.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Device kDevice{DeviceKind::kCpu, 0, 2};

/// Rows of 16 numbers to normalised rows of 256: of 2048 rows the product gives 2 MiB.
Expr Layer(int64_t rows) {
  const std::string text = "fn (%x: Tensor[(" + std::to_string(rows) +
                           ", 16), float32]) { %0 = nn.dense(%x, meta[relay.Constant][0] /*Tensor[(256, 16), float32]*/); "
                           "%1 = nn.bias_add(%0, meta[relay.Constant][1] /*Tensor[(256), float32]*/, axis=-1); "
                           "nn.layer_norm(%1, meta[relay.Constant][2] /*Tensor[(256), float32]*/, meta[relay.Constant][3] "
                           "/*Tensor[(256), float32]*/) }";
  ParseOptions options;
  options.missing_constant = RandomConstants(3);
  return ParseExpr(text, Operators(), options).value().expr;
}

class LibraryCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* backend : {"dnnl", "native"}) {
      if (const auto found = FindBackend(backend, kDevice); !found) GTEST_SKIP() << found.error().message;
    }
  }

  /// The candidates that call a library.
  static Result<std::vector<CandidatePartition>> Calling(const DataflowGraph& graph, const std::vector<std::string>& names,
                                                         const UserConstraints& said = {}) {
    const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets(names, kDevice));
    std::vector<std::string> backends;
    for (const PlacementTarget& target : targets) backends.emplace_back(target.backend->Name());
    Placement placement;
    placement.graph = std::make_shared<const DataflowGraph>(graph);
    placement.targets = targets;
    placement.devices = {kDevice};
    placement.constraints = std::make_shared<const Constraints>(COLLAGE_TRY(Constraints::Resolve(*placement.graph, backends, said)));
    const FoundCandidates found = COLLAGE_TRY(FindCandidates(placement));
    std::vector<CandidatePartition> calling;
    for (const PricedCandidate& one : found.candidates) {
      if (!LibraryParts(one.candidate).empty()) calling.push_back(one.candidate);
    }
    return calling;
  }
};

TEST_F(LibraryCallsTest, OneCandidateWhereSomethingThatNativeGeneratesFollows) {
  const DataflowGraph graph(Layer(2048));
  const auto calling = Calling(graph, {}).value();
  ASSERT_THAT(calling, SizeIs(1));
  EXPECT_EQ(calling[0].spec->name, "native");
  EXPECT_EQ(calling[0].sub_graph.operator_count(), 3u);
  const std::vector<LibraryPart> parts = LibraryParts(calling[0]);
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].library, "dnnl");
  EXPECT_EQ(parts[0].inside.Count(), 2u) << "the bias is the library's too";
}

TEST_F(LibraryCallsTest, NoneForResultsThatStayInTheCache) {
  const DataflowGraph graph(Layer(64));
  EXPECT_THAT(Calling(graph, {}).value(), IsEmpty());
}

TEST_F(LibraryCallsTest, TargetsSayWhichLibraries) {
  const DataflowGraph graph(Layer(2048));
  EXPECT_THAT(Calling(graph, {"cpu"}).value(), IsEmpty());
  EXPECT_THAT(Calling(graph, {"cpu", "cpu -compiler=dnnl"}).value(), SizeIs(1));
  EXPECT_THAT(Calling(graph, {"cpu -libs=dnnl"}).value(), SizeIs(1));
  EXPECT_THAT(Calling(graph, {"cpu -libs=none", "cpu -compiler=dnnl"}).value(), IsEmpty());
  EXPECT_EQ(Calling(graph, {"cpu -libs=nobody"}).error().message, "target 'cpu -libs=nobody': there is no library 'nobody'");
  EXPECT_EQ(Calling(graph, {"cpu -libs=reference"}).error().message,
            "target 'cpu -libs=reference': native kernels cannot call library 'reference'");
}

TEST_F(LibraryCallsTest, ForbiddingALibraryForbidsItsCalls) {
  const DataflowGraph graph(Layer(2048));
  const auto forbidden = [&](const std::string& what) { return Calling(graph, {}, {.forbid = {what}}).value(); };
  EXPECT_THAT(forbidden("dnnl"), IsEmpty());
  EXPECT_THAT(forbidden("dnnl:nn.dense"), IsEmpty());
  EXPECT_THAT(forbidden("native:nn.layer_norm"), IsEmpty());
  EXPECT_THAT(forbidden("dnnl:nn.layer_norm"), SizeIs(1));
}

TEST_F(LibraryCallsTest, APinSaysWhoComputes) {
  const DataflowGraph graph(Layer(2048));
  EXPECT_THAT(Calling(graph, {}, {.pin = {"nn.dense=native"}}).value(), IsEmpty());
  EXPECT_THAT(Calling(graph, {}, {.pin = {"nn.dense=dnnl"}}).value(), IsEmpty());
  EXPECT_THAT(Calling(graph, {}, {.pin = {"nn.layer_norm=native"}}).value(), SizeIs(1));
}

TEST_F(LibraryCallsTest, FromTextToASavedProgram) {
  const Expr function = Layer(2048);
  const DataflowGraph graph(function);
  const Cover cover = {{Calling(graph, {}).value().at(0), {}}};
  const IRModule partitioned = ApplyCover(IRModule::FromMain(function), graph, cover).value();
  const PrintedText printed = PrintModule(partitioned);
  EXPECT_THAT(printed.text, HasSubstr("Composite=\"dnnl.dense_bias\""));
  ParseOptions parse;
  parse.constants = printed.constants;
  const IRModule again = ParseModule(printed.text, Operators(), parse).value().module;
  EXPECT_EQ(Print(again), printed.text);

  LowerOptions options;
  options.device = kDevice;
  options.find_backend = FindBackend;
  Result<LoweredModel> model = Lower(again, options);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_THAT(model->executable.calls(), SizeIs(1));
  EXPECT_THAT(model->executable.calls()[0].record.variant, HasSubstr("panels"));
  Tensor input(TensorType{{2048, 16}});
  FillRandom(input, 5);
  const Tensor expected = InterpretFunction(function, {input}).value().at(0);
  EXPECT_LT(RelativeDifference(model->executable.Run({{input}}).value().at(0), expected), 1e-4);

  std::string folder = (std::filesystem::temp_directory_path() / "library_calls_test.XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(folder) / "model.collage";
  ASSERT_TRUE(SaveProgram(*model, "{}", path));
  Result<LoweredModel> loaded = LoadProgram(path, kDevice);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_LT(RelativeDifference(loaded->executable.Run({{input}}).value().at(0), expected), 1e-4);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace collage
