// Plans written as models with functions, read again by the reader of any model.

#include "collage/onnx/partitioned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/onnx/graph.h"
#include "tests/onnx/partitioned_models.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

const TensorType kImage{{1, 4, 6, 6}, DType::kFloat32};

/// A convolution with a bias and relu; clipping makes it differ.
Expr Convolution(uint64_t seed, const std::string& last = "nn.relu(%1)") {
  return Parse(R"(fn (%x: Tensor[(1, 4, 6, 6), float32], Primitive=1) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0] /* Tensor[(4, 4, 3, 3), float32] */, padding=[1, 1, 1, 1]);
  %1 = nn.bias_add(%0, meta[relay.Constant][1] /* Tensor[(4), float32] */);
  )" + last + "\n}",
               {Random({4, 4, 3, 3}, seed), Random({4}, seed + 1)});
}

/// image -> convolutions, one after another -> result.
PartitionedModel Chain(const std::vector<Expr>& functions) {
  PartitionedBlock block{{{kImage, std::nullopt, std::nullopt}}, {}, {0}, {}};
  for (const Expr& function : functions) {
    const size_t last = block.values.size() - 1;
    block.values.push_back({kImage, std::nullopt, std::nullopt});
    block.calls.push_back({"part", function, {last}, {last + 1}, {{"collage.backend", "dnnl"}}});
  }
  block.outputs = {block.values.size() - 1};
  return Flat(std::move(block), {"image"}, {"result"});
}

TEST(Partitioned, EachPartitionIsACallAndTheResultsAreThoseOfTheFunctions) {
  const std::vector<Expr> functions = {Convolution(1), Convolution(3, "clip(%1, a_min=0, a_max=0.5)")};
  const Tensor image = Random({1, 4, 6, 6}, 9);
  const Tensor between = InterpretFunction(functions[0], {image}).value()[0];
  const Tensor expected = InterpretFunction(functions[1], {between}).value()[0];
  EXPECT_LE(RelativeDifference(RunWritten(Chain(functions), {image})[0], expected), 1e-6);
  const PartitionedForm form = WritePartitioned(Chain(functions)).value();
  EXPECT_EQ(form.functions, 2U);
  EXPECT_THAT(form.bytes,
              testing::AllOf(HasSubstr("conv2d_bias_add_relu"), HasSubstr("conv2d_bias_add_clip"), HasSubstr("collage.backend")));
}

TEST(Partitioned, NodesMayStandInPlaceOfCalls) {
  const std::vector<Expr> functions = {Convolution(1), Convolution(3, "clip(%1, a_min=0, a_max=0.5)"), Convolution(5)};
  PartitionedModel model = Chain(functions);
  const Tensor image = Random({1, 4, 6, 6}, 9);
  const std::vector<Tensor> expected = RunWritten(model, {image});
  model.nodes = PartitionedModel::Nodes::kInPlace;
  EXPECT_EQ(RelativeDifference(RunWritten(model, {image})[0], expected[0]), 0);
  const PartitionedForm form = WritePartitioned(model).value();
  EXPECT_EQ(form.functions, 0U);
  EXPECT_EQ(form.partitions, 3U);
  EXPECT_THAT(form.bytes, testing::AllOf(HasSubstr("collage.backend"), testing::Not(HasSubstr("conv2d_bias_add"))));
}

TEST(Partitioned, AllFunctionsAreOfTheOperatorSetThatOneNeeds) {
  const Expr blocks = Parse(
      "fn (%x: Tensor[(1, 4, 6, 6), float32], Primitive=1) {\n"
      "  %0 = reshape(%x, newshape=[1, 16, 9]);\n"
      "  nn.col2im(%0, output_size=[6, 6], kernel_size=[2, 2], strides=[2, 2])\n}");
  const Tensor image = Random({1, 4, 6, 6}, 9);
  const Tensor between = InterpretFunction(Convolution(1), {image}).value()[0];
  const Tensor expected = InterpretFunction(blocks, {between}).value()[0];
  const PartitionedModel model = Chain({Convolution(1), blocks});
  EXPECT_LE(RelativeDifference(RunWritten(model, {image})[0], expected), 1e-6);
  EXPECT_EQ(onnx_io::ParseOnnxGraph(onnx_io::TensorBytes{WritePartitioned(model)->bytes}, {})->opset, 18);
}

TEST(Partitioned, PartitionsThatDifferInWeightsOnlyShareAFunctionAndEqualWeightsAreStoredOnce) {
  const Expr first = Convolution(1);
  const PartitionedForm two = WritePartitioned(Chain({first, Convolution(5)})).value();
  EXPECT_EQ(two.functions, 1U);
  const PartitionedForm same = WritePartitioned(Chain({first, first})).value();
  EXPECT_EQ(same.functions, 1U);
  EXPECT_LT(same.bytes.size() + Random({4, 4, 3, 3}, 1).ByteCount(), two.bytes.size());
}

TEST(Partitioned, SlicesAndJoinsAreNodes) {
  using Moved = PartitionedBlock::Moved;
  PartitionedBlock block;
  const TensorType half{{1, 2, 6, 6}, DType::kFloat32};
  block.values = {{kImage},
                  {half, Moved{Moved::Kind::kSlice, {0}, 1, 0}},
                  {half, Moved{Moved::Kind::kSlice, {0}, 1, 2}},
                  {kImage, Moved{Moved::Kind::kConcat, {2, 1}, 1}},
                  {kImage}};
  block.calls = {{"a", Parse("fn (%x: Tensor[(1, 4, 6, 6), float32]) { nn.relu(%x) }"), {3}, {4}, {}}};
  block.inputs = {0};
  block.outputs = {4};
  PartitionedModel model = Flat(std::move(block), {"x"}, {"swapped"});
  const Expr expected = Parse(R"(fn (%x: Tensor[(1, 4, 6, 6), float32]) {
    %0 = split(%x, indices_or_sections=2, axis=1); %1 = (%0.1, %0.0); %2 = concatenate(%1, axis=1); nn.relu(%2) })");
  const Tensor x = Random(kImage.shape, 2);
  EXPECT_TRUE(BitwiseEqual(RunWritten(model, {x})[0], InterpretFunction(expected, {x}).value()[0]));
  model.blocks[0].values[3].moved->of = {3};
  EXPECT_THAT(ErrorOf(model), HasSubstr("value 3 is used before it is there"));
}

TEST(Partitioned, ViewsConstantsAndPassedThroughInputs) {
  // x -> relu -> (24, 6); an input, a constant and one value twice are outputs as well.
  PartitionedBlock block;
  block.values = {{kImage, std::nullopt, std::nullopt},
                  {kImage, std::nullopt, std::nullopt},
                  {{{24, 6}, DType::kFloat32}, PartitionedBlock::Moved{PartitionedBlock::Moved::Kind::kReshape, {1}}},
                  {{{2}, DType::kFloat32}, std::nullopt, Random({2}, 4)},
                  {{{24, 6}, DType::kFloat32}, std::nullopt, std::nullopt}};
  const Expr relu = Parse("fn (%x: Tensor[(1, 4, 6, 6), float32]) { nn.relu(%x) }");
  const Expr sum = Parse("fn (%x: Tensor[(24, 6), float32]) { add(%x, %x) }");
  block.calls = {{"a", relu, {0}, {1}, {}}, {"b", sum, {2}, {4}, {}}};
  block.inputs = {0};
  block.outputs = {4, 0, 3, 4, 2};
  const PartitionedModel model = Flat(std::move(block), {"x"}, {"sum", "copy", "known", "again", "flat"});
  const Tensor x = Random(kImage.shape, 2);
  const std::vector<Tensor> found = RunWritten(model, {x});
  ASSERT_EQ(found.size(), 5U);
  const Tensor flat = InterpretFunction(relu, {x}).value()[0].Reshaped({24, 6});
  EXPECT_TRUE(BitwiseEqual(found[0], InterpretFunction(sum, {flat}).value()[0]));
  EXPECT_TRUE(BitwiseEqual(found[1], x));
  EXPECT_TRUE(BitwiseEqual(found[2], *model.blocks[0].values[3].constant));
  EXPECT_TRUE(BitwiseEqual(found[3], found[0]));
  EXPECT_TRUE(BitwiseEqual(found[4], flat));
}

TEST(Partitioned, WhatDoesNotFitTogetherIsAnErrorThatNamesTheCall) {
  PartitionedModel model = Chain({Convolution(1), Convolution(3)});
  model.blocks[0].calls[0].inputs = {2};
  EXPECT_THAT(ErrorOf(model), HasSubstr("part: value 2 is used before it is there"));
  model.blocks[0].calls[0].inputs = {7};
  EXPECT_THAT(ErrorOf(model), HasSubstr("value 7 is not there"));
  model.blocks[0].calls[0].inputs = {0, 0};
  EXPECT_THAT(ErrorOf(model), HasSubstr("another number of inputs"));
  model.blocks[0].calls[0].inputs = {0};
  model.blocks[0].calls[1].outputs = {1};
  EXPECT_THAT(ErrorOf(model), HasSubstr("value 1 is given twice"));
  model.blocks[0].calls[1].outputs = {2};
  model.blocks[0].outputs = {3};
  EXPECT_THAT(ErrorOf(model), HasSubstr("output 0: value 3"));
  model.blocks[0].outputs = {2, 2};
  EXPECT_THAT(ErrorOf(model), HasSubstr("@main: a block has another number of inputs or outputs than its call"));
}

TEST(Partitioned, WhatHasNoOnnxFormIsAnErrorThatNamesTheCall) {
  PartitionedBlock block{{{kImage}, {{{1, 4, 6, 6}, DType::kFloat8E4M3FN}}}, {}, {0}, {1}};
  block.calls = {{"narrow", Parse(R"(fn (%x: Tensor[(1, 4, 6, 6), float32]) { cast(%x, dtype="float8_e4m3fn") })"), {0}, {1}, {}}};
  EXPECT_THAT(ErrorOf(Flat(std::move(block), {"x"}, {"result"})),
              testing::AllOf(HasSubstr("narrow: "), HasSubstr("has no form in opset 17")));
}

}  // namespace
}  // namespace collage
