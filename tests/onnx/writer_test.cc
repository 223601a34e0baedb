// What the writer makes of the forms that graph compilers care about, and what it refuses.

#include "collage/onnx/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/onnx/graph.h"
#include "collage/onnx/reader.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "collage/tensor/strings.h"
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

TEST(OnnxWriter, WeightsOfFewBitsAreOfMicrosoftsDomain) {
  const auto bytes = [](Shape shape, uint8_t value) {
    Tensor tensor(TensorType{std::move(shape), DType::kUInt8});
    std::fill_n(tensor.MutableData<uint8_t>(), tensor.ElementCount(), value);
    return MakeConstant(std::move(tensor));
  };
  const Expr x = Input("x", {2, 40});
  const Attributes attributes{{"bits", 4}, {"block_size", 16}};
  for (const uint8_t zero : {0x88, 0x37}) {
    const Expr product = Op("nn.matmul_nbits", {x, bytes({5, 3, 8}, 0x4C), Weight({5, 3}, 2), bytes({5, 2}, zero)}, attributes);
    const std::string written = ExpectRoundTrip(*MakeFunction({x}, Op("nn.relu", {product})));
    EXPECT_TRUE(Mentions(written, "com.microsoft"));
    // What is the default is not said.
    EXPECT_EQ(Mentions(written, std::string(10, static_cast<char>(zero))), zero != 0x88);
  }
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

TEST(OnnxWriter, TheOperatorSetIsTheOldestThatHasAllOperators) {
  const Expr x = Input("x", {2, 6, 4});
  const Expr line = Op("nn.col2im", {x}, {{"output_size", 9}, {"kernel_size", 3}, {"strides", 2}, {"padding", std::vector<int64_t>{1, 0}}});
  const Expr function = *MakeFunction({x}, Op("max", {line}, {{"axis", 1}}));
  EXPECT_EQ(WrittenOpset(function), 18);
  EXPECT_EQ(WrittenOpset(x), kWrittenOpset);
  const std::string bytes = ExpectRoundTrip(function);
  EXPECT_EQ(onnx_io::ParseOnnxGraph(onnx_io::TensorBytes{bytes}, {})->opset, 18) << "ONNX Runtime refuses Col2Im in an older one";
}

Expr Integers(Shape shape, DType dtype, int64_t first) {
  Tensor tensor(TensorType{std::move(shape), dtype});
  for (int64_t i = 0; i < tensor.ElementCount(); ++i)
    VisitElementType(
        dtype, [&](auto element) { tensor.MutableData<decltype(element)>()[i] = static_cast<decltype(element)>(first + i * 37 % 100); });
  return MakeConstant(std::move(tensor));
}

/// Writes all that ONNX can say, reads it again, expects equal results, and gives the bytes.
std::string ExpectCompleteRoundTrip(const Expr& function, const std::vector<Tensor>& inputs) {
  const Result<std::string> bytes = WriteOnnx(*function->As<Function>(), {.is_complete = true});
  EXPECT_TRUE(bytes) << bytes.error().message;
  const Result<OnnxModel> model = ReadOnnx(*bytes);
  EXPECT_TRUE(model) << model.error().message;
  EXPECT_TRUE(BitwiseEqual(InterpretMain(model->module, inputs).value()[0], InterpretFunction(function, inputs).value()[0]));
  return *bytes;
}

TEST(OnnxWriter, AConvolutionOfIntegersIsOneOfBytesWhereTheyAreKnownToBe) {
  const Attributes window{{"strides", std::vector<int64_t>{2, 1}},
                          {"padding", std::vector<int64_t>{1, 0, 2, 1}},
                          {"dilation", std::vector<int64_t>{1, 2}},
                          {"groups", 2}};
  const Expr weight = Integers({4, 3, 3, 2}, DType::kInt32, -50);
  const auto centred = [](const Expr& bytes, int64_t zero) {
    return Op("subtract", {Op("cast", {bytes}, {{"dtype", "int32"}}), MakeConstant(Tensor::Scalar(zero, DType::kInt32))});
  };
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    const TensorType type{{2, 6, 7, 6}, dtype};
    const Expr x = MakeVar("x", type);
    Tensor input(type);
    FillRandom(input, 1);
    input.MutableBytes()[5] = std::byte{0x81};
    const Expr known = *MakeFunction({x}, Op("nn.conv2d", {centred(x, 3), weight}, window));
    const std::string bytes = ExpectCompleteRoundTrip(known, {input});
    EXPECT_TRUE(Mentions(bytes, "ConvInteger"));
    EXPECT_FALSE(Mentions(bytes, "Sub")) << "the zero point is the operator's";
  }
  const TensorType wide{{2, 6, 7, 6}, DType::kInt32};
  const Expr x = MakeVar("x", wide);
  const Expr unknown = *MakeFunction({x}, Op("nn.conv2d", {x, weight}, window));
  const Tensor input = Integers(wide.shape, DType::kInt32, 100000)->As<Constant>()->value;
  EXPECT_FALSE(Mentions(ExpectCompleteRoundTrip(unknown, {input}), "ConvInteger"));
  EXPECT_FALSE(WriteOnnx(*unknown->As<Function>())) << "graph compilers are not given it";
  const Expr two = MakeVar("w", TensorType{weight->As<Constant>()->value.type()});
  const Expr computed = *MakeFunction({x, two}, Op("nn.conv2d", {x, two}, window));
  ExpectCompleteRoundTrip(computed, {input, weight->As<Constant>()->value});
}

TEST(OnnxWriter, AProductOfIntegersIsOneOfBytesWhereTheyAreKnownToBe) {
  const TensorType type{{3, 8}, DType::kUInt8};
  const Expr x = MakeVar("x", type);
  Tensor input(type);
  FillRandom(input, 1);
  const Expr wide = Op("cast", {x}, {{"dtype", "int32"}});
  for (const int64_t first : {-128, 0, 150}) {
    const Expr weight = Integers({8, 5}, DType::kInt32, first);
    EXPECT_TRUE(Mentions(ExpectCompleteRoundTrip(*MakeFunction({x}, Op("nn.matmul", {wide, weight})), {input}), "MatMulInteger"));
  }
  for (const int64_t first : {-300, 200}) {  // more than a byte
    const Expr weight = Integers({8, 5}, DType::kInt32, first);
    const std::string bytes = ExpectCompleteRoundTrip(*MakeFunction({x}, Op("nn.matmul", {wide, weight})), {input});
    EXPECT_FALSE(Mentions(bytes, "MatMulInteger"));
  }
}

TEST(OnnxWriter, StringsAreWrittenForPeople) {
  const TensorType type{{2, 2}, DType::kString};
  const Expr x = MakeVar("x", type);
  const Expr names = MakeConstant(StringTensor({2}, {"a", "z\u00fc"}));
  const Expr function = *MakeFunction({x}, Op("strings.change_case", {Op("strings.concat", {x, names})}, {{"case", "upper"}}));
  const Tensor input = StringTensor({2, 2}, {"", "b", "\u00e4", "d"});
  EXPECT_FALSE(WriteOnnx(*function->As<Function>()));
  const Result<std::string> bytes = WriteOnnx(*function->As<Function>(), {.opset = kOpsetOfStrings, .is_complete = true});
  ASSERT_TRUE(bytes) << bytes.error().message;
  const Result<OnnxModel> model = ReadOnnx(*bytes);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(StringsOf(InterpretMain(model->module, {input}).value()[0]), StringsOf(InterpretFunction(function, {input}).value()[0]));
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

// Of these two, other domains than ONNX's own have only parts of larger operators.
TEST(OnnxWriter, EachOperatorOfTheTableHasAForm) {
  EXPECT_THAT(OperatorsWithoutOnnxForm(), testing::UnorderedElementsAre("pairwise_coupling", "qnn.lstm"));
}

}  // namespace
}  // namespace collage
