// What the writer makes of the forms that graph compilers care about, and what it refuses.

#include "collage/onnx/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/onnx/reader.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "tests/onnx/expected.h"

namespace collage {
namespace {

Expr Op(const std::string& op, std::vector<Expr> args, Attributes attributes = {}) {
  Result<Expr> call = MakeCall(Operators().Find(op), std::move(args), std::move(attributes));
  EXPECT_TRUE(call) << call.error().message;
  return *call;
}

Expr Weight(Shape shape, uint64_t seed) {
  Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
  FillRandom(tensor, seed);
  return MakeConstant(std::move(tensor));
}

Expr Input(const std::string& name, Shape shape) { return MakeVar(name, TensorType{std::move(shape), DType::kFloat32}); }

/// Writes and reads a function, expects the same results on random inputs, and gives the bytes.
std::string ExpectRoundTrip(const Expr& function) {
  const Result<std::string> bytes = WriteOnnx(*function->As<Function>());
  EXPECT_TRUE(bytes) << bytes.error().message;
  const Result<OnnxModel> model = ReadOnnx(*bytes);
  EXPECT_TRUE(model) << model.error().message;
  std::vector<Tensor> inputs;
  for (const Expr& parameter : function->As<Function>()->parameters) {
    inputs.emplace_back(*parameter->type().AsTensor());
    FillRandom(inputs.back(), inputs.size());
  }
  const Result<std::vector<Tensor>> expected = InterpretFunction(function, inputs);
  const Result<std::vector<Tensor>> found = InterpretMain(model->module, inputs);
  EXPECT_TRUE(expected && found);
  EXPECT_EQ(found->size(), expected->size());
  for (size_t i = 0; i < expected->size(); ++i) EXPECT_LE(RelativeDifference((*found)[i], (*expected)[i]), 1e-6);
  return *bytes;
}

bool Mentions(const std::string& bytes, const std::string& op_type) { return bytes.find(op_type) != std::string::npos; }

TEST(OnnxWriter, BiasBecomesTheConvolutionsOwn) {
  const Expr x = Input("x", {1, 3, 6, 6});
  const Expr convolution = Op("nn.conv2d", {x, Weight({4, 3, 3, 3}, 1)});
  const Expr sum = Op("nn.bias_add", {convolution, Weight({4}, 2)});
  EXPECT_FALSE(Mentions(ExpectRoundTrip(*MakeFunction({x}, Op("nn.relu", {sum}))), "Add"));
}

TEST(OnnxWriter, BiasStaysApartWhereTheConvolutionIsUsedTwice) {
  const Expr x = Input("x", {1, 3, 6, 6});
  const Expr convolution = Op("nn.conv2d", {x, Weight({4, 3, 3, 3}, 1)});
  const Expr sum = Op("nn.bias_add", {convolution, Weight({4}, 2)});
  EXPECT_TRUE(Mentions(ExpectRoundTrip(*MakeFunction({x}, Op("multiply", {sum, convolution}))), "Add"));
  EXPECT_TRUE(Mentions(ExpectRoundTrip(*MakeFunction({x}, MakeTuple({sum, convolution}))), "Add"));
}

TEST(OnnxWriter, VariableBiasStaysApart) {
  const Expr x = Input("x", {1, 3, 6, 6});
  const Expr bias = Input("b", {4});
  const Expr sum = Op("nn.bias_add", {Op("nn.conv2d", {x, Weight({4, 3, 3, 3}, 1)}), bias});
  EXPECT_TRUE(Mentions(ExpectRoundTrip(*MakeFunction({x, bias}, sum)), "Add"));
}

TEST(OnnxWriter, DenseIsGemmOfMatricesAndMatMulOtherwise) {
  const Expr matrix = Input("x", {2, 5});
  const Expr sum = Op("nn.bias_add", {Op("nn.dense", {matrix, Weight({3, 5}, 1)}), Weight({3}, 2)}, {{"axis", -1}});
  const std::string gemm = ExpectRoundTrip(*MakeFunction({matrix}, sum));
  EXPECT_TRUE(Mentions(gemm, "Gemm"));
  EXPECT_FALSE(Mentions(gemm, "Add"));
  const Expr batch = Input("x", {2, 4, 5});
  EXPECT_TRUE(Mentions(ExpectRoundTrip(*MakeFunction({batch}, Op("nn.dense", {batch, Weight({3, 5}, 1)}))), "MatMul"));
}

TEST(OnnxWriter, OperatorsThatTheReaderNeverMakes) {
  const Expr x = Input("x", {2, 3, 4});
  const Expr y = Input("y", {2, 3, 4});
  ExpectRoundTrip(*MakeFunction({x, y}, Op("stack", {MakeTuple({x, y})}, {{"axis", 1}})));
  ExpectRoundTrip(*MakeFunction({x, y}, Op("nn.batch_matmul", {x, y})));
  ExpectRoundTrip(*MakeFunction({x, y}, Op("nn.matmul", {x, y}, {{"transpose_a", true}})));
  ExpectRoundTrip(*MakeFunction({x}, Op("sum", {x}, {{"axis", std::vector<int64_t>{1}}, {"exclude", true}})));
  ExpectRoundTrip(*MakeFunction({x}, Op("tile", {x}, {{"reps", std::vector<int64_t>{2, 1, 1, 2}}})));
  ExpectRoundTrip(*MakeFunction({x}, Op("rsqrt", {Op("exp", {x})})));
  ExpectRoundTrip(*MakeFunction({x}, Op("copy", {x})));
  ExpectRoundTrip(*MakeFunction({x, y}, Op("floor_mod", {x, Op("exp", {y})})));
  ExpectRoundTrip(*MakeFunction({x, y}, Op("where", {Op("not_equal", {x, y}), x, y})));
  ExpectRoundTrip(*MakeFunction({x}, Op("add", {x, Op("ones_like", {x})})));
  ExpectRoundTrip(*MakeFunction({x}, Op("nn.group_norm",
                                        {Op("reshape",
                                            {
                                                x,
                                            },
                                            {{"newshape", Shape{1, 6, 2, 2}}}),
                                         Weight({6}, 1), Weight({6}, 2)},
                                        {{"num_groups", 3}})));
}

TEST(OnnxWriter, ParametersConstantsAndRepeatedResults) {
  const Expr x = Input("x", {2, 3});
  ExpectRoundTrip(*MakeFunction({x}, x));
  ExpectRoundTrip(*MakeFunction({x}, Weight({4}, 1)));
  const Expr y = Op("nn.relu", {x});
  ExpectRoundTrip(*MakeFunction({x}, MakeTuple({y, y, x})));
}

TEST(OnnxWriter, CompositesAreInlined) {
  const Expr inner = Input("i", {2, 3});
  const Expr composite = *MakeFunction({inner}, Op("nn.relu", {Op("negative", {inner})}), {{"Composite", "test.negative_relu"}});
  const Expr x = Input("x", {2, 3});
  ExpectRoundTrip(*MakeFunction({x}, *MakeCall(composite, {Op("exp", {x})})));
}

TEST(OnnxWriter, NamesMustFit) {
  const Expr x = Input("x", {2, 3});
  const Expr function = *MakeFunction({x}, Op("nn.relu", {x}));
  const Result<std::string> few = WriteOnnx(*function->As<Function>(), {{"a", "b"}, {}});
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().message, "2 names are given for 1 inputs");
  const Result<std::string> same = WriteOnnx(*function->As<Function>(), {{"a"}, {"a"}});
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().message, "the name 'a' of an input or output is empty or not unique");
}

TEST(OnnxWriter, EachOperatorOfTheTableHasAForm) {
  // Strings have none at all: two of their operators are younger than the opset that is written.
  EXPECT_THAT(OperatorsWithoutOnnxForm(), testing::UnorderedElementsAre("strings.concat", "strings.full_match", "strings.change_case"));
}

}  // namespace
}  // namespace collage
