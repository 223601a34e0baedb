#include "collage/lower/row_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/lower/lower.h"
#include "collage/lower/profiles.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "tests/lower/interpreter_backend.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RunsOfRowsTest, TakesAsManyBlocksAsCostLeast) {
  using Programs = std::vector<Remainder::RowProgram>;
  const Programs programs{{32, 0, 100}, {4, 1, 20}};
  EXPECT_THAT(RunsOf(programs, 0), ElementsAre(0, 0));
  EXPECT_THAT(RunsOf(programs, 1), ElementsAre(0, 1));
  EXPECT_THAT(RunsOf(programs, 16), ElementsAre(0, 4));
  EXPECT_THAT(RunsOf(programs, 24), ElementsAre(1, 0));  // six of four would take 120
  EXPECT_THAT(RunsOf(programs, 32), ElementsAre(1, 0));
  EXPECT_THAT(RunsOf(programs, 69), ElementsAre(2, 2));
  // Where many at a time are no faster.
  EXPECT_THAT(RunsOf(Programs{{32, 0, 100}, {4, 1, 10}}, 64), ElementsAre(0, 16));
  EXPECT_THAT(RunsOf(Programs{{8, 0, 1}}, 17), ElementsAre(3));
}

/// A program with regions' programs for 8 and for 2 rows, and what they compute.
class RowBlocksTest : public ::testing::Test {
 protected:
  static constexpr const char* kText = R"(fn (%y: Tensor[(3), float32], %x: Tensor[(N, 3), float32]) {
    %0 = add(%x, %y);
    (tanh(%0), sum(%0, axis=[1]))
  })";

  static Expr Parse(std::string text, int64_t rows) {
    for (size_t at = text.find("(N,"); at != std::string::npos; at = text.find("(N,")) text.replace(at + 1, 1, std::to_string(rows));
    Result<ParsedExpr> parsed = ParseExpr(text, Operators(), {});
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed->expr;
  }
  LoweredModel LowerOne(const Expr& function) {
    LowerOptions options;
    options.device.threads = 1;
    options.program.fallback_backend = "library";
    options.find_backend = [this](const std::string&, const Device&) -> Result<const Backend*> { return &library_; };
    Result<LoweredModel> lowered = Lower(IRModule::FromMain(function), options);
    EXPECT_TRUE(lowered) << lowered.error().message;
    return std::move(*lowered);
  }
  LoweredModel Make() {
    std::vector<LoweredModel> blocks;
    blocks.push_back(LowerOne(Parse(kText, 8)));
    blocks.push_back(LowerOne(Parse(kText, 2)));
    Result<LoweredModel> model = AddBlocks(LowerOne(Parse("fn (%x: Tensor[(N, 3), float32]) { tanh(%x) }", 5)), std::move(blocks));
    EXPECT_TRUE(model) << model.error().message;
    return std::move(*model);
  }
  static Remainder::Region Region() { return {0, 1, {"y", "x"}, {false, true}, {"a", "b"}, {{8, 1, 3}, {2, 2, 1}}}; }
  static Tensor Random(Shape shape, uint64_t seed) {
    Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
    FillRandom(tensor, seed);
    return tensor;
  }

  InterpreterBackend library_{"library", false};
};

TEST_F(RowBlocksTest, AnyNumberOfRowsIsAsAllAtOnce) {
  LoweredModel model = Make();
  const Tensor y = Random({3}, 1);
  for (const int64_t rows : {0, 1, 2, 3, 7, 8, 9, 17}) {
    SCOPED_TRACE(rows);
    const Tensor x = Random({rows, 3}, 2);
    const auto found = RunRows(model.executable, Region(), std::vector{y, x});
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(*found);
    ASSERT_EQ((**found)[0].shape(), (Shape{rows, 3}));
    ASSERT_EQ((**found)[1].shape(), (Shape{rows}));
    if (rows == 0) continue;
    const Result<std::vector<Tensor>> expected = InterpretFunction(Parse(kText, rows), {y, x});
    ASSERT_TRUE(expected);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(BitwiseEqual((**found)[i], (*expected)[i])) << i;
  }
}

TEST_F(RowBlocksTest, OtherTypesAreLeftToTheNodes) {
  LoweredModel model = Make();
  const auto runs = [&](const Tensor& y, const Tensor& x) {
    const auto found = RunRows(model.executable, Region(), std::vector{y, x});
    EXPECT_TRUE(found);
    return found && found->has_value();
  };
  EXPECT_TRUE(runs(Random({3}, 1), Random({5, 3}, 2)));
  EXPECT_FALSE(runs(Random({1}, 1), Random({5, 3}, 2)));
  EXPECT_FALSE(runs(Random({3}, 1), Random({5, 4}, 2)));
  EXPECT_FALSE(runs(Random({3}, 1), Random({5, 3, 1}, 2)));
  EXPECT_FALSE(runs(Random({3}, 1), Tensor(TensorType{{5, 3}, DType::kFloat64})));
}

TEST_F(RowBlocksTest, ProgramsThatDoNotFitAreErrors) {
  LoweredModel model = Make();
  const auto said = [&](const Remainder::Region& region) {
    const auto found = RunRows(model.executable, region, std::vector{Random({3}, 1), Random({5, 3}, 2)});
    return found ? std::string() : found.error().message;
  };
  Remainder::Region region = Region();
  region.programs[0].block = 7;
  EXPECT_EQ(said(region), "a program of rows is not there");
  region = Region();
  region.programs[0].rows = 4;
  EXPECT_THAT(said(region), HasSubstr("a program of 4 rows does not fit"));
  region = Region();
  region.outputs.pop_back();
  EXPECT_THAT(said(region), HasSubstr("a program of 8 rows does not fit"));
}

TEST_F(RowBlocksTest, TheHeadRunsAsEver) {
  LoweredModel model = Make();
  const Tensor x = Random({5, 3}, 4);
  const Result<std::vector<Tensor>> outputs = model.executable.Run(std::vector{x});
  ASSERT_TRUE(outputs) << outputs.error().message;
  const Result<std::vector<Tensor>> expected = InterpretFunction(Parse("fn (%x: Tensor[(N, 3), float32]) { tanh(%x) }", 5), {x});
  EXPECT_TRUE(BitwiseEqual((*outputs)[0], (*expected)[0]));
}

}  // namespace
}  // namespace collage
