// What each pass makes says where it comes from. AfterPass demands of every pass test that some origin is kept; here is which.

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "collage/ir/visit.h"
#include "collage/transform/pass.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

struct Case {
  std::string name;
  std::string body;  ///< one statement a line; the first is line 1
  std::string expected;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

/// "nn.conv2d 1 2; " for a call made of what stood in lines 1 and 2; constants that were folded from something alike.
std::string LinesOf(const IRModule& module) {
  std::string text;
  PostOrder(module.MainExpr(), [&](const Expr& expr) {
    const OpDef* op = CalledOp(expr);
    if (!op && (!expr->As<Constant>() || expr->origin().Empty())) return;
    text += op ? op->name : "constant";
    for (const OriginPart* part : expr->origin().Parts()) text += " " + part->text.substr(0, part->text.find(':'));
    text += "; ";
  });
  return text;
}

class OriginAfterPass : public testing::TestWithParam<Case> {};

TEST_P(OriginAfterPass, IsTheUnionOfWhatWasRead) {
  const Case& one = GetParam();
  for (const Pass& pass : SafeGlobalPasses()) {
    if (one.name.rfind(pass.name, 0) != 0) continue;
    const IRModule before = ParsedForPass("fn (%x: Tensor[(1, 4, 6, 6), float32]) { " + one.body + " }").module;
    EXPECT_EQ(LinesOf(AfterPass(pass.run, before, 1e-5)), one.expected);
  }
}

const std::string kConvolution = "%0 = nn.conv2d(%x, " + ConstantText(0, "(4, 4, 1, 1)") + ");\n";
const std::string kNorm = "%1 = nn.batch_norm(%0, " + ConstantText(1, "(4,)") + ", " + ConstantText(2, "(4,)") + ", " +
                          ConstantText(3, "(4,)") + ", " + ConstantText(4, "(4,)") + ");\n";

const std::vector<Case> kCases = {
    Case{"fold_constants", "%0 = add(1f, 2f);\n%1 = exp(%0);\nmultiply(%x, %1)", "constant 1 2; multiply 3; "},
    Case{"fold_constants_of_tuples",
         "%0 = add(1f, 2f);\n%1 = stack((%0, 2f), axis=0);\n%2 = split(%1, indices_or_sections=2);\nmultiply(%x, %2.1)",
         "constant 1 2 3; multiply 4; "},
    Case{"cancel_movement", "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n%1 = nn.relu(%0);\ntranspose(%1, axes=[0, 3, 1, 2])", "nn.relu 2; "},
    Case{"simplify_expressions_neutral", "%0 = add(%x, 0f);\nexp(%0)", "exp 2; "},
    Case{"simplify_expressions_power", "%0 = exp(%x);\n%1 = power(%0, 2f);\npower(%1, 0.5f)", "exp 1; multiply 2; sqrt 3; "},
    Case{"simplify_expressions_division", "%0 = exp(%x);\ndivide(%0, 8f)", "exp 1; multiply 2; "},
    Case{"simplify_expressions_views",
         "%0 = reshape(%x, newshape=[4, 36]);\n%1 = reshape(%0, newshape=[144, 1]);\nreshape(%1, newshape=[2, 72])", "reshape 1 2 3; "},
    Case{"simplify_expressions_transpose", "%0 = transpose(%x, axes=[0, 2, 3, 1]);\ntranspose(%0, axes=[0, 2, 1, 3])", "transpose 1 2; "},
    Case{"simplify_expressions_pad",
         "%0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n%1 = nn.conv2d(%0, " + ConstantText(0, "(4, 4, 3, 3)") +
             ");\n%2 = nn.relu(%1);\n%3 = nn.pad(%2, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\nnn.max_pool2d(%3, pool_size=[3, 3])",
         "nn.conv2d 1 2; nn.relu 3; nn.max_pool2d 4 5; "},
    Case{"fold_batch_norm", kConvolution + kNorm + "nn.relu(%1.0)", "nn.conv2d 1 2; nn.bias_add 2; nn.relu 3; "},
    Case{"fold_batch_norm_over_a_bias",
         kConvolution + "%2 = nn.bias_add(%0, " + ConstantText(5, "(4,)") + ");\n%3 = multiply(%2, " + ConstantText(6, "(4, 1, 1)") +
             ");\nnn.relu(%3)",
         "nn.conv2d 1 2 3; nn.bias_add 2 3; nn.relu 4; "},
    Case{"fold_batch_norm_of_a_shared_convolution", kConvolution + kNorm + "add(%0, %1.0)", "nn.conv2d 1; multiply 2; add 2; add 3; "},
    Case{"eliminate_common_subexpressions", "%0 = exp(%x);\n%1 = exp(%x);\n%2 = exp(%x);\n%3 = tanh(%0);\n%4 = tanh(%1);\n(%3, %4, %2)",
         "exp 1 2 3; tanh 4 5; "},
    Case{
        "recognise_operators",
        "%0 = mean(%x, axis=[3], keepdims=True);\n%1 = subtract(%x, %0);\n%2 = multiply(%1, %1);\n%3 = mean(%2, axis=[3], keepdims=True);\n"
        "%4 = add(%3, 0.25f);\n%5 = rsqrt(%4);\n%6 = multiply(%1, %5);\n%7 = multiply(%6, 2f);\nexp(%7)",
        "nn.layer_norm 1 2 3 4 5 6 7 8; exp 9; "},
    Case{"recognise_operators_softmax", "%0 = exp(%x);\n%1 = sum(%0, axis=[1], keepdims=True);\n%2 = divide(%0, %1);\nlog(%2)",
         "nn.log_softmax 1 2 3 4; "},
    Case{"dequantize_after_movement",
         "%0 = cast(%x, dtype=\"int8\");\n%1 = qnn.dequantize(%0, 0.5f, 3i8);\n%2 = transpose(%1, axes=[0, 2, 3, 1]);\nnn.relu(%2)",
         "cast 1; transpose 3; qnn.dequantize 2; nn.relu 4; "},
    Case{"simplify_expressions_quantisation",
         "%0 = cast(%x, dtype=\"int8\");\n%1 = qnn.dequantize(%0, 0.5f, 3i8);\n%2 = qnn.quantize(%1, 0.5f, 3i8);\nabs(%2)",
         "cast 1; abs 4; "},
    Case{"separate_dequantize",
         "%0 = cast(%x, dtype=\"int8\");\n%1 = cast(%0, dtype=\"int32\");\n%2 = abs(%1);\n%3 = negative(%1);\n(%2, %3)",
         "cast 1; cast 2; abs 3; cast 2; negative 4; "},
    Case{"eliminate_dead_code", "let %y = exp(%x);\nlet %z = tanh(%x);\nabs(%z)", "tanh 2; abs 3; "},
};

INSTANTIATE_TEST_SUITE_P(Passes, OriginAfterPass, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST(OriginsOfPasses, EveryPassHasACase) {
  for (const Pass& pass : SafeGlobalPasses()) {
    const auto is_its_own = [&](const Case& one) { return one.name.rfind(pass.name, 0) == 0; };
    EXPECT_TRUE(std::any_of(kCases.begin(), kCases.end(), is_its_own)) << pass.name;
  }
}

// Flat lists would hold 50 000 000 names.
TEST(OriginsOfPasses, LongChainsThatFoldIntoOneStaySmall) {
  constexpr size_t kSteps = 10'000;
  std::string text = "fn (%x: float32) {\n";
  for (size_t i = 0; i < kSteps; ++i)
    text += "%" + std::to_string(i) + " = add(" + (i == 0 ? "1f" : "%" + std::to_string(i - 1)) + ", 1f);\n";
  const IRModule before = ParsedForPass(text + "add(%x, %" + std::to_string(kSteps - 1) + ")\n}").module;
  const IRModule after = RunPasses(before, SafeGlobalPasses()).value();
  const Expr& folded = after.Main().body->As<Call>()->args[1];
  ASSERT_TRUE(folded->As<Constant>());
  EXPECT_EQ(folded->origin().Parts().size(), kSteps);
}

}  // namespace
}  // namespace collage
