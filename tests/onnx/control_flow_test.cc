// If, Loop and Scan on the reference executor: models from make_control_flow.py with what ONNX Runtime computes on them.

#include <gtest/gtest.h>

#include <algorithm>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "collage/support/file.h"
#include "tests/onnx/expected.h"

namespace collage {
namespace {

const std::filesystem::path kFolder = COLLAGE_ONNX_CONTROL_FLOW;

std::vector<std::filesystem::path> Files(const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<OnnxModel> ReadCase(const std::string& name) { return ReadOnnxFile(kFolder / (name + ".onnx")); }

TEST(OnnxControlFlow, ComputesWhatOnnxRuntimeComputes) {
  const std::vector<std::filesystem::path> cases = Files(".npz");
  ASSERT_GT(cases.size(), 40U);
  for (const std::filesystem::path& path : cases) {
    SCOPED_TRACE(path.stem().string());
    const Result<OnnxModel> model = ReadCase(path.stem().string());
    if (!model) {
      ADD_FAILURE() << model.error().message;
      continue;
    }
    const Status verified = Verify(model->module);
    EXPECT_TRUE(verified) << verified.error().message;
    const Result<Expectation> expectation = ReadExpectation(path, *model);
    ASSERT_TRUE(expectation) << expectation.error().message;
    ExpectOutputs(*model, *expectation, 1e-5);
  }
}

TEST(OnnxControlFlow, IsTheSameAfterPrintingAndParsing) {
  for (const std::filesystem::path& path : Files(".npz")) {
    SCOPED_TRACE(path.stem().string());
    const Result<OnnxModel> model = ReadCase(path.stem().string());
    if (!model) continue;  // the test above reports it
    const PrintedText printed = PrintModule(model->module);
    ParseOptions options;
    options.constants = printed.constants;
    const Result<ParsedModule> parsed = ParseModule(printed.text, Operators(), options);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(PrintModule(parsed->module).text, printed.text);
  }
}

TEST(OnnxControlFlow, RefusesWhatHasNoTypes) {
  const std::vector<std::filesystem::path> cases = Files(".error");
  ASSERT_GT(cases.size(), 10U);
  for (const std::filesystem::path& path : cases) {
    SCOPED_TRACE(path.stem().string());
    const std::string expected = ReadFile(path).value();
    const Result<OnnxModel> model = ReadCase(path.stem().string());
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().message.find(expected), std::string::npos) << model.error().message;
  }
}

// Shapes of the inputs fit one of two branches; which one a run takes, its inputs say.
TEST(OnnxControlFlow, ABranchThatDoesNotFitFailsWhereItIsTaken) {
  const Result<OnnxModel> model = ReadCase("if_one_branch_fits_16");
  ASSERT_TRUE(model) << model.error().message;
  Tensor x(TensorType{{2, 8}, DType::kFloat32});
  FillRandom(x, 1);
  EXPECT_TRUE(InterpretMain(model->module, {x, Tensor::Scalar(int64_t{16000}, DType::kInt64)}));
  const auto other = InterpretMain(model->module, {x, Tensor::Scalar(int64_t{8000}, DType::kInt64)});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("node 'rates': the run takes a branch that does not fit the program: else_branch: node 0 giving 'n' "
                                       "(MatMul, opset 16)"),
            std::string::npos)
      << other.error().message;
}

TEST(OnnxControlFlow, LoopsAreFunctionsThatCallThemselves) {
  const Result<OnnxModel> model = ReadCase("loop_state_13");
  ASSERT_TRUE(model) << model.error().message;
  const std::string text = PrintModule(model->module).text;
  EXPECT_NE(text.find("def @loop("), std::string::npos) << text;
  EXPECT_NE(text.find("if (%go_on)"), std::string::npos) << text;
}

TEST(OnnxControlFlow, ConstantConditionsAndCountersFold) {
  for (const char* name :
       {"if_constant_13", "loop_constant_trips_0_13", "loop_constant_trips_1_13", "loop_constant_counter_13", "loop_grows_13"}) {
    SCOPED_TRACE(name);
    const Result<OnnxModel> model = ReadCase(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->module.functions().size(), 1U);
    EXPECT_EQ(PrintModule(model->module).text.find("if ("), std::string::npos);
  }
}

}  // namespace
}  // namespace collage
