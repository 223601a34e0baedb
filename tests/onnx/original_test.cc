// The model as it came, from its file through a function and back to bytes.

#include "collage/onnx/original.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collage/ir/original_model.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/visit.h"
#include "collage/onnx/writer.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Random(Shape shape, uint64_t seed) {
  Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
  FillRandom(tensor, seed);
  return tensor;
}

class OriginalTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "original_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// What is read of a file that holds `text`, a function, as ONNX.
  OnnxModel Read(const std::string& text, const std::vector<Tensor>& constants, const WriteOptions& names = {}) {
    const Expr function = ParseExpr(text, Operators(), {.constants = constants}).value().expr;
    const std::string bytes = WriteOnnx(*function->As<Function>(), names).value();
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << bytes;
    return OnnxFile::Open(folder_ / "model.onnx")->Read({}).value();
  }

  std::filesystem::path folder_;
};

constexpr const char* kTwoOutputs =
    R"(fn (%x: Tensor[(1, 3, 6, 6), float32], %unread: Tensor[(2), float32], %y: Tensor[(1, 4, 4, 4), float32]) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(4, 3, 3, 3), float32]*/);
  %1 = add(%0, %y);
  %2 = nn.relu(%1);
  (%2, %0)
})";

TEST_F(OriginalTest, TheFormHasTheModelsOwnNamesAndComputesTheSame) {
  const OnnxModel model = Read(kTwoOutputs, {Random({4, 3, 3, 3}, 1)}, {{"image", "nobody", "shift"}, {"clipped", "plain"}});
  ASSERT_NE(model.original, nullptr);
  // As a candidate takes them: in another order, and not what nobody reads.
  const Expr function = CarryOriginal(model, {2, 0}, {1, 0}, {{"Primitive", 1}}).value();
  const OnnxForm form = OriginalForm(*function->As<Function>()).value();
  EXPECT_THAT(form.input_names, ElementsAre("shift", "image"));
  EXPECT_THAT(form.output_names, ElementsAre("plain", "clipped"));
  EXPECT_EQ(form.inputs[1], (TensorType{{1, 3, 6, 6}, DType::kFloat32}));
  EXPECT_EQ(form.outputs[0], (TensorType{{1, 4, 4, 4}, DType::kFloat32}));

  const OnnxModel again = ReadOnnx(form.bytes).value();
  EXPECT_THAT(again.input_names, ElementsAre("shift", "image"));
  const std::vector<Tensor> inputs = {Random({1, 4, 4, 4}, 2), Random({1, 3, 6, 6}, 3)};
  const auto expected = InterpretMain(model.module, {inputs[1], Random({2}, 4), inputs[0]}).value();
  const auto of_form = InterpretMain(again.module, inputs).value();
  const auto of_function = InterpretFunction(function, inputs).value();
  ASSERT_EQ(of_form.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(BitwiseEqual(of_form[i], expected[1 - i]));
    EXPECT_TRUE(BitwiseEqual(of_function[i], expected[1 - i]));
  }
}

TEST_F(OriginalTest, ItSurvivesTheTextForm) {
  const OnnxModel model = Read(kTwoOutputs, {Random({4, 3, 3, 3}, 1)});
  const Expr function = CarryOriginal(model, {0, 2}, {0, 1}, {{"Primitive", 1}}).value();
  const PrintedText printed = PrintExpr(function);
  // What nobody reads, and the weight, which the body and the model share.
  EXPECT_EQ(printed.constants.size(), 2U);
  const Expr parsed = ParseExpr(printed.text, Operators(), {.constants = printed.constants}).value().expr;
  EXPECT_TRUE(StructuralEqual(parsed, function));
  EXPECT_EQ(OriginalForm(*parsed->As<Function>())->bytes, OriginalForm(*function->As<Function>())->bytes);
}

TEST_F(OriginalTest, AHeadIsWhatGivesItsValues) {
  OnnxModel model = Read(kTwoOutputs, {Random({4, 3, 3, 3}, 1)}, {{"image", "nobody", "shift"}, {"clipped", "plain"}});
  const Result<OriginalModel> head = HeadOf(*model.original, {"plain"});
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_THAT(head->input_names, ElementsAre("image", "nobody", "shift"));
  EXPECT_EQ(head->weights.size(), 1U);
  EXPECT_THAT(head->message, testing::AllOf(HasSubstr("Conv"), testing::Not(HasSubstr("Relu"))));
  const Function main = model.module.Main();
  const Expr body = MakeFunction(main.parameters, main.body->As<Tuple>()->fields[1]).value();
  model.module = IRModule::FromMain(body);
  model.original = std::make_shared<const OriginalModel>(*head);
  const Expr function = CarryOriginal(model, {0}, {0}, {{"Primitive", 1}}).value();
  const OnnxModel again = ReadOnnx(OriginalForm(*function->As<Function>())->bytes).value();
  const Tensor image = Random({1, 3, 6, 6}, 3);
  const auto expected = InterpretMain(model.module, {image, Random({2}, 4), Random({1, 4, 4, 4}, 2)}).value();
  EXPECT_TRUE(BitwiseEqual(InterpretMain(again.module, {image}).value()[0], expected[0]));
  EXPECT_THAT(HeadOf(*model.original, {"nowhere"}).error().message, HasSubstr("no node of the model gives 'nowhere'"));
}

TEST_F(OriginalTest, WeightsCountInTheContentOfAFunctionButNotInItsPrice) {
  const auto carrier = [&](uint64_t seed) {
    return CarryOriginal(Read(kTwoOutputs, {Random({4, 3, 3, 3}, seed)}), {0, 2}, {0, 1}, {{"Primitive", 1}}).value();
  };
  EXPECT_NE(ContentHash(carrier(1)), ContentHash(carrier(2)));
  EXPECT_EQ(StructuralHash(carrier(1), ForPricing()), StructuralHash(carrier(2), ForPricing()));
}

TEST_F(OriginalTest, AFunctionWithoutAModelAndADamagedModelAreErrors) {
  const OnnxModel model = Read("fn (%x: Tensor[(4), float32]) { nn.relu(%x) }", {});
  EXPECT_EQ(CallOfOriginal(model.module.Main()), nullptr);
  EXPECT_FALSE(OriginalForm(model.module.Main()));
  const Expr carrier = CarryOriginal(model, {0}, {0}, {{"Primitive", 1}}).value();
  const auto damaged = [&](const std::string& text) {
    const Rewriter replace = [&](const Expr&, const Expr& expr) -> Result<Expr> {
      const Function* literal = expr->As<Function>();
      if (!literal || !literal->attributes.Has(kOnnxModelAttribute)) return expr;
      Attributes attributes = literal->attributes;
      attributes.Set(std::string(kOnnxModelAttribute), text);
      return MakeFunction(literal->parameters, literal->body, std::move(attributes));
    };
    return OriginalForm(*Rewrite(carrier, replace).value()->As<Function>());
  };
  EXPECT_THAT(damaged("AAAA").error().message, HasSubstr("no ONNX model"));
  EXPECT_THAT(damaged("A").error().message, HasSubstr("base64"));
}

TEST_F(OriginalTest, BytesWithoutAFileAreNotOffered) {
  const Expr function = ParseExpr("fn (%x: Tensor[(4), float32]) { nn.relu(%x) }", Operators()).value().expr;
  EXPECT_EQ(ReadOnnx(WriteOnnx(*function->As<Function>()).value())->original, nullptr);
}

}  // namespace
}  // namespace collage
