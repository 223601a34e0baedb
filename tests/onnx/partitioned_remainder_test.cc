// Partitions with nodes of ONNX behind them: these are brought to the operator set of the functions.

#include <gmock/gmock.h>

#include <map>

#include "collage/onnx/graph.h"
#include "collage/onnx/graph_message.h"
#include "tests/onnx/partitioned_models.h"

namespace collage {
namespace {

using onnx_io::OnnxGraph;
using onnx_io::OnnxNode;
using ::testing::HasSubstr;

const TensorType kMatrix{{3, 4}, DType::kFloat32};

OnnxNode Node(const std::string& op_type, std::vector<std::string> inputs, std::vector<std::string> outputs,
              std::map<std::string, onnx_io::OnnxAttribute> attributes = {}) {
  OnnxNode node;
  node.name = "node_" + op_type;
  node.op_type = op_type;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

/// tanh, or a function that needs a younger operator set, and behind it nodes of `opset`, which make "z" of "h".
PartitionedModel WithRemainder(std::vector<OnnxNode> nodes, int64_t opset,
                               const std::string& text = "fn (%x: Tensor[(3, 4), float32]) { tanh(%x) }") {
  OnnxGraph graph;
  graph.opset = opset;
  for (OnnxNode& node : nodes) node.opset = opset;
  graph.nodes = std::move(nodes);
  graph.outputs = {"z"};
  graph.output_types = {{"z", DType::kFloat32, std::nullopt}};
  PartitionedBlock block{{{kMatrix}, {kMatrix}}, {}, {0}, {1}};
  block.calls = {{"head", Parse(text), {0}, {1}, {}}};
  PartitionedModel model = Flat(std::move(block), {"x"}, {"h"});
  model.remainder = Remainder::Parts{onnx_io::ModelMessage(graph).value(), {{"h", std::nullopt}}, {}, "", {}};
  return model;
}

int64_t WrittenOpsetOf(const PartitionedModel& model) {
  return onnx_io::ParseOnnxGraph(onnx_io::TensorBytes{WritePartitioned(model).value().bytes}, {})->opset;
}

TEST(PartitionedRemainder, ItsNodesFollowTheCalls) {
  PartitionedModel model = WithRemainder({Node("Add", {"h", "w"}, {"s"}), Node("Neg", {"s"}, {"z"})}, 17);
  model.remainder->weights = {{"w", Random({4}, 3)}};
  const Tensor x = Random({3, 4}, 4);
  const Expr expected =
      Parse("fn (%x: Tensor[(3, 4), float32], %w: Tensor[(4), float32]) { %0 = tanh(%x); %1 = add(%0, %w); negative(%1) }");
  const Tensor right = InterpretFunction(expected, {x, Random({4}, 3)}).value()[0];
  EXPECT_TRUE(BitwiseEqual(RunWritten(model, {x})[0], right));
}

TEST(PartitionedRemainder, NamesOfTheHeadAreNoneOfTheRemainder) {
  // "tensor", "constant" and the like are taken.
  PartitionedModel model =
      WithRemainder({Node("Neg", {"h"}, {"constant"}), Node("Neg", {"constant"}, {"tensor"}), Node("Exp", {"tensor"}, {"z"})}, 17,
                    "fn (%x: Tensor[(3, 4), float32]) { tanh(multiply(%x, 2f)) }");
  model.blocks[0].values.push_back({kMatrix});
  model.blocks[0].calls[0].outputs = {2};
  model.blocks[0].calls.push_back({"next", Parse("fn (%x: Tensor[(3, 4), float32]) { nn.relu(%x) }"), {2}, {1}, {}});
  const Tensor x = Random({3, 4}, 4);
  const Expr expected = Parse("fn (%x: Tensor[(3, 4), float32]) { %0 = multiply(%x, 2f); %1 = tanh(%0); %2 = nn.relu(%1); exp(%2) }");
  EXPECT_LE(RelativeDifference(RunWritten(model, {x})[0], InterpretFunction(expected, {x}).value()[0]), 1e-6);
}

TEST(PartitionedRemainder, AnOlderOneIsBroughtToTheOperatorSetOfTheFunctions) {
  const Tensor x = Random({3, 4}, 4);
  const auto expect = [&](std::vector<OnnxNode> nodes, int64_t opset, const std::string& text) {
    const PartitionedModel model = WithRemainder(std::move(nodes), opset);
    EXPECT_EQ(WrittenOpsetOf(model), 17);
    const Tensor right = InterpretFunction(Parse("fn (%x: Tensor[(3, 4), float32]) { %h = tanh(%x); " + text + " }"), {x}).value()[0];
    EXPECT_LE(RelativeDifference(RunWritten(model, {x})[0], right), 1e-6) << text;
  };
  using Ints = std::vector<int64_t>;
  expect({Node("ReduceSum", {"h"}, {"z"}, {{"axes", Ints{1}}})}, 11, "sum(%h, axis=[1], keepdims=True)");
  expect({Node("Unsqueeze", {"h"}, {"z"}, {{"axes", Ints{0}}})}, 12, "reshape(%h, newshape=[1, 3, 4])");
  expect({Node("Clip", {"h"}, {"z"}, {{"min", -0.5F}, {"max", 0.5F}})}, 10, "clip(%h, a_min=-0.5, a_max=0.5)");
  expect({Node("Slice", {"h"}, {"z"}, {{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{1}}})}, 9,
         "strided_slice(%h, begin=[1], end=[3], axes=[1])");
  expect({Node("Pad", {"h"}, {"z"}, {{"pads", Ints{0, 1, 0, 2}}, {"value", 7.0F}})}, 10, "nn.pad(%h, 7f, pad_width=[[0, 0], [1, 2]])");
  // Over all of the matrix, which the axis -1 of younger operator sets would not be.
  expect({Node("Softmax", {"h"}, {"z"}, {{"axis", int64_t{0}}})}, 11,
         "%0 = reshape(%h, newshape=[1, 12]); %1 = nn.softmax(%0, axis=1); reshape(%1, newshape=[3, 4])");
  expect({Node("Dropout", {"h"}, {"z"}, {{"ratio", 0.5F}})}, 10, "%h");
}

TEST(PartitionedRemainder, FunctionsAreOfTheOperatorSetOfAYoungerOne) {
  const Tensor x = Random({3, 4}, 4);
  const PartitionedModel model =
      WithRemainder({Node("Neg", {"h"}, {"z"})}, 20, "fn (%x: Tensor[(3, 4), float32]) { max(%x, axis=[0], keepdims=True) }");
  PartitionedModel wide = model;
  wide.blocks[0].values[1].type = wide.functions[0].types[1] = TensorType{{1, 4}, DType::kFloat32};
  EXPECT_EQ(WrittenOpsetOf(wide), 20);
  const Tensor right =
      InterpretFunction(Parse("fn (%x: Tensor[(3, 4), float32]) { negative(max(%x, axis=[0], keepdims=True)) }"), {x}).value()[0];
  EXPECT_TRUE(BitwiseEqual(RunWritten(wide, {x})[0], right));
}

TEST(PartitionedRemainder, WhatNoYoungerOperatorSetHasIsAnErrorThatNamesTheNode) {
  EXPECT_EQ(ErrorOf(WithRemainder({Node("BatchNormalization", {"h", "s", "b", "m", "v"}, {"z"}, {{"spatial", int64_t{0}}})}, 8)),
            "node 'node_BatchNormalization' (BatchNormalization, opset 8): has no form in opset 17, in which the partitions are written: "
            "attribute 'spatial' is 0");
  EXPECT_THAT(ErrorOf(WithRemainder({Node("Neg", {"h"}, {"z"})}, 6)), HasSubstr("a model of opset 7 or younger can"));
}

TEST(PartitionedRemainder, ASequenceIsMadeOfItsTensors) {
  PartitionedModel model = WithRemainder({Node("ConcatFromSequence", {"all"}, {"z"}, {{"axis", int64_t{0}}})}, 17);
  model.functions[0].results = {1, 1};
  model.output_names = {"all[0]", "all[1]"};
  model.remainder->inputs = {{"all", 2}};
  const Tensor x = Random({3, 4}, 4);
  const Expr expected = Parse("fn (%x: Tensor[(3, 4), float32]) { %h = tanh(%x); %0 = (%h, %h); concatenate(%0, axis=0) }");
  EXPECT_LE(RelativeDifference(RunWritten(model, {x})[0], InterpretFunction(expected, {x}).value()[0]), 1e-6);
  model.functions[0].results = {};
  model.remainder->inputs = {{"all", 0}};
  EXPECT_THAT(ErrorOf(model), HasSubstr("'all' is a sequence without tensors"));
}

}  // namespace
}  // namespace collage
