// Whole models: the seeded ones of bench/models.py against ONNX Runtime, the shipped light ones against their shipped outputs.

#include <gtest/gtest.h>

#include "tests/onnx/expected.h"

namespace collage {
namespace {

constexpr double kTolerance = 1e-4;

const std::filesystem::path kExpectations = COLLAGE_ONNX_EXPECTATIONS;

class SeededModel : public testing::TestWithParam<std::string> {};

// The written file is checked with ONNX Runtime by check_written.py, which is much faster than a second reference run.
TEST_P(SeededModel, ComputesWhatOnnxRuntimeComputes) {
  const Result<OnnxModel> model = ReadOnnxFile(std::filesystem::path(COLLAGE_ONNX_MODELS) / (GetParam() + ".onnx"));
  ASSERT_TRUE(model) << model.error().message;
  const Result<Expectation> expectation = ReadExpectation(kExpectations / (GetParam() + ".npz"), *model);
  ASSERT_TRUE(expectation) << expectation.error().message;
  ExpectOutputs(*model, *expectation, kTolerance);
  std::filesystem::create_directories(COLLAGE_ONNX_WRITTEN_MODELS);
  const Result<OnnxModel> again = WriteAndRead(*model, std::filesystem::path(COLLAGE_ONNX_WRITTEN_MODELS) / (GetParam() + ".onnx"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(CountOperators(*again), CountOperators(*model));
}

INSTANTIATE_TEST_SUITE_P(Onnx, SeededModel,
                         testing::Values("mnist", "squeezenet", "resnet50", "vgg19", "densenet121", "inception_v1", "inception_v2",
                                         "shufflenet", "alexnet", "zfnet512", "mobilenet_v2", "dcgan", "bert_encoder"),
                         [](const auto& info) { return info.param; });

class ShippedModel : public testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, ComputesTheShippedOutput) {
  const Result<OnnxModel> model = ReadOnnxFile(std::filesystem::path(COLLAGE_ONNX_SHIPPED) / (GetParam() + ".onnx"));
  ASSERT_TRUE(model) << model.error().message;
  const Result<Expectation> expectation = ReadExpectation(kExpectations / (GetParam() + ".npz"), *model);
  ASSERT_TRUE(expectation) << expectation.error().message;
  ExpectOutputs(*model, *expectation, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Onnx, ShippedModel,
                         testing::Values("light_squeezenet", "light_shufflenet", "light_inception_v1", "light_inception_v2",
                                         "light_bvlc_alexnet", "light_densenet121", "light_resnet50", "light_zfnet512", "light_vgg19"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace collage
