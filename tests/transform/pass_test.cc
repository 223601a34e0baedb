#include "collage/transform/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/programs.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Passes, EachDoesWhatItsRecordShows) {
  const auto function = [](const std::string& body) {
    return "fn (%x: Tensor[(1, 4, 6, 6), float32], %W: Tensor[(3, 4, 1, 1), float32]) { " + body + " }";
  };
  for (const Pass& pass : SafeGlobalPasses()) {
    SCOPED_TRACE(pass.name);
    if (pass.name == "fold_batch_norm") continue;  // its constants have names, for readers
    const IRModule before = ParsedForPass(function(pass.before)).module;
    const IRModule after = AfterPass(pass.run, before, 1e-6);
    EXPECT_NE(Print(before), Print(after));
    EXPECT_EQ(Print(after), Print(ParsedForPass(function(pass.after)).module));
  }
}

TEST(Passes, RunInOrderAndTellWhatTheyDid) {
  const IRModule before = ParsedForPass(kMnist).module;
  std::vector<std::string> names;
  PassOptions options;
  options.disabled = {"eliminate_dead_code"};
  options.on_pass = [&](const Pass& pass, const IRModule&, double) { names.push_back(pass.name); };
  const IRModule after = AfterPass([&](const IRModule& module) { return RunPasses(module, SafeGlobalPasses(), options); }, before, 1e-6);
  EXPECT_THAT(names, ElementsAre("fold_constants", "dequantize_after_movement", "cancel_movement", "simplify_expressions",
                                 "fold_batch_norm", "eliminate_common_subexpressions", "recognise_operators", "separate_dequantize"));
  EXPECT_THAT(Print(after), HasSubstr("%0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5), float32]*/, padding=[2, 2, 2, 2], "
                                      "channels=8, kernel_size=[5, 5]);\n"));
}

TEST(Passes, UnknownNamesAreErrors) {
  const Result<IRModule> result = RunPasses(ParsedForPass(kMnist).module, SafeGlobalPasses(), {{"fold_konstants"}, {}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "there is no pass 'fold_konstants' to switch off");
}

TEST(Passes, AreVerifiedAfterwards) {
  const auto drop_main = [](const IRModule&) -> Result<IRModule> { return IRModule(); };
  const Result<IRModule> result = RunPasses(ParsedForPass(kMnist).module, {{"drop_main", drop_main, "", ""}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "after pass drop_main: the module has no function @main");
}

TEST(Passes, TakeHundredThousandOperators) {
  std::string text = "fn (%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n";
  std::string lets = text;
  std::string last = "%x";
  std::string last_let = "%x";
  for (size_t i = 0; i < 100'000; ++i) {
    text += "%" + std::to_string(i) + " = add(" + last + ", " + (i % 2 ? "1f" : "%x") + ");\n";
    last = "%" + std::to_string(i);
  }
  for (size_t i = 0; i < 20'000; ++i) {
    lets += "let %y" + std::to_string(i) + " = add(" + last_let + ", " + (i % 2 ? "1f" : "%x") + ");\n";
    last_let = "%y" + std::to_string(i);
  }
  for (const std::string& program : {text + last + "}", lets + last_let + "}"}) {
    const Result<IRModule> result = RunPasses(ParsedForPass(program).module, SafeGlobalPasses());
    EXPECT_TRUE(result.has_value()) << result.error().message;
  }
}

}  // namespace
}  // namespace collage
