// Every operator in every form that its opsets give it: small models from make_cases.py.

#include <gtest/gtest.h>

#include <algorithm>

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
    const Result<OnnxModel> again = WriteAndRead(*model, std::filesystem::path(COLLAGE_ONNX_WRITTEN) / path.filename());
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

}  // namespace
}  // namespace collage
