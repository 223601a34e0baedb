// Every operator in every form that its opsets give it: small models from make_cases.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/onnx/writer.h"
#include "collage/op/table.h"
#include "tests/onnx/expected.h"

namespace collage {
namespace {

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(COLLAGE_ONNX_CASES)) {
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

constexpr double kTolerance = 1e-5;

TEST(OnnxOperators, ComputeWhatOnnxRuntimeComputes) {
  const std::vector<std::filesystem::path> cases = Cases();
  ASSERT_GT(cases.size(), 400U);
  for (const std::filesystem::path& path : cases) {
    SCOPED_TRACE(path.stem().string());
    const Result<OnnxModel> model = ReadOnnxFile(path);
    if (!model) {
      ADD_FAILURE() << model.error().message;
      continue;
    }
    const Result<Expectation> expectation = ReadExpectation(std::filesystem::path(path).replace_extension(".npz"), *model);
    ASSERT_TRUE(expectation) << expectation.error().message;
    ExpectOutputs(*model, *expectation, kTolerance);
  }
}

TEST(OnnxOperators, ComputeTheSameAfterWritingAndReading) {
  std::filesystem::create_directories(COLLAGE_ONNX_WRITTEN);
  for (const std::filesystem::path& path : Cases()) {
    SCOPED_TRACE(path.stem().string());
    const Result<OnnxModel> model = ReadOnnxFile(path);
    if (!model) continue;  // the test above reports it
    const std::filesystem::path written = std::filesystem::path(COLLAGE_ONNX_WRITTEN) / path.filename();
    Result<OnnxModel> again = WriteAndRead(*model, written);
    const std::string name = path.stem().string();
    if (name.starts_with("ConvInteger") ||
        name.find("QLinearConv") != std::string::npos) {  // sums of int32, which graph compilers are not given
      ASSERT_FALSE(again);
      EXPECT_THAT(again.error().message, testing::HasSubstr("of int32 has no form in opset 17"));
      again = WriteAndRead(*model, written, {.is_complete = true});
    }
    if (name.starts_with("SVMClassifier_probabilities") || name.starts_with("microsoft_DynamicQuantizeLSTM") ||
        name.starts_with("microsoft_MurmurHash3") || name.starts_with("microsoft_NGramHashMapping") ||
        name.starts_with("microsoft_LinearAttention_")) {  // no standard operators
      ASSERT_FALSE(again);
      EXPECT_THAT(again.error().message,
                  testing::AnyOf(testing::HasSubstr("has no ONNX form"), testing::HasSubstr("has no form in opset")));
      continue;
    }
    if (!again) {
      ADD_FAILURE() << again.error().message;
      continue;
    }
    EXPECT_EQ(again->input_names, model->input_names);
    EXPECT_EQ(again->output_names, model->output_names);
    const Result<Expectation> expectation = ReadExpectation(std::filesystem::path(path).replace_extension(".npz"), *again);
    ASSERT_TRUE(expectation) << expectation.error().message;
    ExpectOutputs(*again, *expectation, kTolerance);
  }
}

TEST(OnnxOperators, ShapeArithmeticVanishes) {
  const std::filesystem::path folder = COLLAGE_ONNX_CASES;
  const Result<OnnxModel> view = ReadOnnxFile(folder / "chain_view_11.onnx");
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(CountOperators(*view), 1U);
  const Result<OnnxModel> expand = ReadOnnxFile(folder / "chain_expand_13.onnx");
  ASSERT_TRUE(expand) << expand.error().message;
  EXPECT_EQ(CountOperators(*expand), 1U);
}

TEST(OnnxOperators, LongChainsAreWrittenAndRead) {
  const Expr x = MakeVar("x", TensorType{{4}, DType::kFloat32});
  Expr chain = x;
  for (int i = 0; i < 100000; ++i) chain = MakeCall(Operators().Find(i % 2 == 0 ? "nn.relu" : "negative"), {chain}).value();
  const Expr function = MakeFunction({x}, chain).value();
  const Result<std::string> bytes = WriteOnnx(*function->As<Function>());
  ASSERT_TRUE(bytes) << bytes.error().message;
  const Result<OnnxModel> model = ReadOnnx(*bytes);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->input_names, std::vector<std::string>{"p0"});
  EXPECT_EQ(model->output_names, std::vector<std::string>{"r0"});
  EXPECT_EQ(CountOperators(*model), 100000U);
}

}  // namespace
}  // namespace collage
