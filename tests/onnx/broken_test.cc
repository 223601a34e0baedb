// Files that are not right: one clear line, never a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collage/ir/visit.h"
#include "collage/onnx/writer.h"
#include "collage/op/interpreter.h"
#include "collage/support/file.h"
#include "tests/onnx/expected.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::filesystem::path> Files(const std::filesystem::path& folder, const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Content(const std::filesystem::path& path) {
  Result<std::string> content = ReadFile(path);
  EXPECT_TRUE(content) << content.error().message;
  return content ? *content : "";
}

TEST(BrokenOnnx, EachIsRefusedInOneLineThatSaysWhy) {
  const std::vector<std::filesystem::path> files = Files(COLLAGE_ONNX_BROKEN, ".onnx");
  ASSERT_GT(files.size(), 45U);
  for (const std::filesystem::path& path : files) {
    SCOPED_TRACE(path.stem().string());
    const Result<OnnxModel> model = ReadOnnxFile(path);
    ASSERT_FALSE(model);
    const std::string expected = Content(std::filesystem::path(path).replace_extension(".txt"));
    EXPECT_NE(model.error().message.find(expected), std::string::npos) << model.error().message;
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos) << model.error().message;
  }
}

TEST(BrokenOnnx, AbsentFileIsNamed) {
  const Result<OnnxModel> model = ReadOnnxFile("no/such/model.onnx");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("no/such/model.onnx"), std::string::npos) << model.error().message;
}

/// Reads, and writes again what could be read: neither may crash.
void Survive(std::string_view bytes) {
  const Result<OnnxModel> model = ReadOnnx(bytes);
  if (!model) {
    EXPECT_FALSE(model.error().message.empty());
    return;
  }
  const Result<std::string> written = WriteOnnx(model->module.Main(), {model->input_names, model->output_names});
  if (!written) {
    EXPECT_FALSE(written.error().message.empty());
  }
}

TEST(BrokenOnnx, TruncationIsSurvivedAtEveryByte) {
  const std::string bytes = Content(std::filesystem::path(COLLAGE_ONNX_MODELS) / "mnist.onnx");
  ASSERT_GT(bytes.size(), 1000U);
  for (size_t length = 0; length < bytes.size(); length += length < 2000 ? 1 : 97) {
    const Result<OnnxModel> model = ReadOnnx(std::string_view(bytes).substr(0, length));
    EXPECT_FALSE(model) << "the first " << length << " bytes";
  }
}

TEST(BrokenOnnx, FlippedBytesOfAModelAreSurvived) {
  const std::string original = Content(std::filesystem::path(COLLAGE_ONNX_MODELS) / "mnist.onnx");
  std::mt19937 random(20260101);
  for (size_t round = 0; round < Rounds(2000); ++round) {
    std::string bytes = original;
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips) {
      // Most bytes are weights, which may have any value: half of the flips go to where the graph lies.
      const size_t range = random() % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 2500);
      bytes[random() % range] = static_cast<char>(random());
    }
    Survive(bytes);
  }
}

TEST(BrokenOnnx, FlippedBytesOfEveryOperatorAreSurvived) {
  std::mt19937 random(7);
  for (const std::filesystem::path& path : Files(COLLAGE_ONNX_CASES, ".onnx")) {
    SCOPED_TRACE(path.stem().string());
    const std::string original = Content(path);
    for (size_t round = 0; round < Rounds(16); ++round) {
      std::string bytes = original;
      bytes[random() % bytes.size()] = static_cast<char>(random());
      if (round % 2 == 0) bytes[random() % bytes.size()] ^= static_cast<char>(1U << random() % 8);
      Survive(bytes);
    }
  }
}

const std::filesystem::path kSymbolic = std::filesystem::path(COLLAGE_ONNX_BROKEN) / "symbolic.onnx";  // x is (N, 3, ?, 8)

TEST(InputShapes, FillSymbolicExtents) {
  const Result<OnnxModel> model = ReadOnnxFile(kSymbolic, {.input_shapes = {{"x", {2, 3, 16, 8}}}});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(ToString(model->module.Main().parameters[0]->type()), "Tensor[(2, 3, 16, 8), float32]");
}

std::string MessageWith(const std::string& input, const Shape& shape) {
  const Result<OnnxModel> model = ReadOnnxFile(kSymbolic, {.input_shapes = {{input, shape}}});
  EXPECT_FALSE(model);
  return model ? "" : model.error().message;
}

TEST(InputShapes, MustAgreeWithTheModel) {
  EXPECT_NE(MessageWith("x", {2, 4, 16, 8}).find("which the model fixes at 3: --shape x=Nx3x?x8"), std::string::npos);
  EXPECT_NE(MessageWith("x", {2, 3, 16}).find("is given 3 extents where 4 are right"), std::string::npos);
  EXPECT_NE(MessageWith("x", {-2, 3, 16, 8}).find("negative extent"), std::string::npos);
}

TEST(InputShapes, OfUnknownInputsAreErrors) {
  const Result<OnnxModel> model = ReadOnnxFile(kSymbolic, {.input_shapes = {{"x", {2, 3, 16, 8}}, {"z", {1}}}});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("a shape is given for 'z', which is no input: the inputs are x"), std::string::npos);
}

const std::filesystem::path kOpen = std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "open.onnx";  // x (N, 2), y (N, M), z (M, N), scale

std::string TypesOfOpen(const std::map<std::string, Shape>& shapes) {
  const Result<OnnxModel> model = ReadOnnxFile(kOpen, {.input_shapes = shapes});
  if (!model) return model.error().message;
  std::string types;
  for (const Expr& parameter : model->module.Main().parameters) types += ToString(parameter->type().AsTensor()->shape) + " ";
  return types;
}

TEST(InputShapes, SymbolsHaveOneExtentInAllInputs) {
  EXPECT_EQ(TypesOfOpen({{"y", {4, 5}}}), "(4, 2) (4, 5) (5, 4) ");
  EXPECT_EQ(TypesOfOpen({{"x", {4, 2}}, {"z", {3, 4}}}), "(4, 2) (4, 3) (3, 4) ");
  EXPECT_THAT(TypesOfOpen({{"x", {4, 2}}}), HasSubstr("input 'y' has extents that the model leaves open"));
}

TEST(InputShapes, ASymbolThatIsGivenTwoExtentsIsNotCarried) {
  EXPECT_THAT(TypesOfOpen({{"x", {4, 2}}, {"y", {6, 5}}}), HasSubstr("input 'z' has extents that the model leaves open"));
}

TEST(InputShapes, AnInitializerAmongTheInputsIsOneWhereItsShapeIsGiven) {
  const Tensor x = Tensor::FromVector<float>({{1, 2}, DType::kFloat32}, {1, 2});
  const Tensor y = Tensor::FromVector<float>({{1, 1}, DType::kFloat32}, {7});
  const Tensor scale = Tensor::FromVector<float>({{1}, DType::kFloat32}, {10});
  const OnnxModel constant = ReadOnnxFile(kOpen, {.input_shapes = {{"y", {1, 1}}}}).value();
  EXPECT_THAT(constant.input_names, ElementsAre("x", "y", "z"));
  EXPECT_THAT(InterpretMain(constant.module, {x, y, y}).value()[0].ToDouble(), ElementsAre(3, 6, 7));
  EXPECT_NE(constant.original, nullptr);
  const OnnxModel given = ReadOnnxFile(kOpen, {.input_shapes = {{"y", {1, 1}}, {"scale", {1}}}}).value();
  EXPECT_THAT(given.input_names, ElementsAre("x", "y", "z", "scale"));
  EXPECT_THAT(InterpretMain(given.module, {x, y, y, scale}).value()[0].ToDouble(), ElementsAre(10, 20, 7));
  EXPECT_EQ(given.original, nullptr);
}

const std::filesystem::path kShaped = std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "shaped.onnx";  // y = reshape(x, s), z = s + s

TEST(InputValues, AreFixedOnlyWhereAShapeDependsOnThem) {
  EXPECT_FALSE(ReadOnnxFile(kShaped));
  const Tensor x = Tensor::FromVector<float>({{2, 3}, DType::kFloat32}, {1, 2, 3, 4, 5, 6});
  const Tensor s = Tensor::FromVector<int64_t>({{2}, DType::kInt64}, {3, -1});
  const Result<OnnxModel> model = ReadOnnxFile(kShaped, {.input_values = {{"x", x}, {"s", s}}});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->input_names, std::vector<std::string>{"x"});
  EXPECT_EQ(model->fixed_inputs, std::vector<std::string>{"s"});
  const Result<std::vector<Tensor>> outputs = InterpretMain(model->module, {x});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ(ToString((*outputs)[0].type()), "Tensor[(3, 2), float32]");
  EXPECT_EQ((*outputs)[1].ToInt64(), (std::vector<int64_t>{6, -2}));
}

TEST(InputValues, MustHaveTheTypeOfTheInput) {
  const Tensor s = Tensor::FromVector<int64_t>({{1}, DType::kInt64}, {6});
  const Result<OnnxModel> model = ReadOnnxFile(kShaped, {.input_values = {{"s", s}}});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("is given the extent 1 for dimension 0, which the model fixes at 2"), std::string::npos)
      << model.error().message;
  const Tensor narrow = Tensor::FromVector<int32_t>({{2}, DType::kInt32}, {3, -1});
  const Result<OnnxModel> other = ReadOnnxFile(kShaped, {.input_values = {{"s", narrow}}});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("input 's' is given a value of type Tensor[(2,), int32] where Tensor[(2,), int64] is right"),
            std::string::npos)
      << other.error().message;
}

TEST(ExternalData, IsReadBesideTheModel) {
  const Result<OnnxModel> model = ReadOnnxFile(std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "external.onnx");
  ASSERT_TRUE(model) << model.error().message;
  const Result<Expectation> expectation = ReadExpectation(std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "external.npz", *model);
  ASSERT_TRUE(expectation) << expectation.error().message;
  ExpectOutputs(*model, *expectation, 1e-6);
  const Result<OnnxModel> without_folder = ReadOnnx(Content(std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "external.onnx"));
  ASSERT_FALSE(without_folder);
  EXPECT_NE(without_folder.error().message.find("give the model as a file"), std::string::npos) << without_folder.error().message;
}

TEST(ExternalData, MayLieBehindLinksBesideTheModel) {
  const std::filesystem::path folder = COLLAGE_ONNX_EXTERNAL;
  const Result<OnnxModel> model = ReadOnnxFile(folder / "snapshot" / "external.onnx");
  ASSERT_TRUE(model) << model.error().message;
  const Result<Expectation> expectation = ReadExpectation(folder / "external.npz", *model);
  ASSERT_TRUE(expectation) << expectation.error().message;
  ExpectOutputs(*model, *expectation, 1e-6);
}

TEST(ExternalData, WeightsAreReadWhereverTheyLie) {
  const Result<OnnxModel> model = ReadOnnxFile(std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "places.onnx");
  ASSERT_TRUE(model) << model.error().message;
  const Result<Expectation> expectation = ReadExpectation(std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "places.npz", *model);
  ASSERT_TRUE(expectation) << expectation.error().message;
  ExpectOutputs(*model, *expectation, 1e-6);
  size_t in_place = 0;
  PostOrder(model->module.MainExpr(), [&](const Expr& expr) {
    if (const Constant* constant = expr->As<Constant>()) in_place += constant->value.Writable() ? 0 : 1;
  });
  EXPECT_GE(in_place, 1U) << "what lies at an aligned place outside is not copied";
}

TEST(ExternalData, AFileThatIsReadForSeveralShapesSharesItsWeights) {
  const Result<OnnxFile> file = OnnxFile::Open(std::filesystem::path(COLLAGE_ONNX_EXTERNAL) / "external.onnx");
  ASSERT_TRUE(file) << file.error().message;
  std::vector<const std::byte*> weights;
  for (int turn = 0; turn < 2; ++turn) {
    const Result<OnnxModel> model = file->Read({});
    ASSERT_TRUE(model) << model.error().message;
    PostOrder(model->module.MainExpr(), [&](const Expr& expr) {
      if (const Constant* constant = expr->As<Constant>()) weights.push_back(constant->value.Bytes());
    });
  }
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0], weights[1]);
}

}  // namespace
}  // namespace collage
