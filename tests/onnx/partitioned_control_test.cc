// Functions over blocks written as If, Loop and functions of a model, read again by the reader of any model.

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <set>

#include "collage/onnx/graph.h"
#include "tests/onnx/partitioned_models.h"

namespace collage {
namespace {

using onnx_io::OnnxGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Step = PartitionedModel::Step;

const TensorType kFlag{{}, DType::kBool};
const TensorType kCount{{}, DType::kInt64};
const TensorType kRow{{4}, DType::kFloat32};

/// A block of one partition, added to `model`.
size_t AddBlock(const std::string& text, PartitionedModel& model) {
  PartitionedBlock block;
  PartitionedBlock::Call call{"part", Parse(text), {}, {}, {}};
  const auto add = [&](const Type& type, std::vector<size_t>& ends, std::vector<size_t>& values) {
    for (const TensorType& tensor : FlattenTensors(type)) {
      ends.push_back(block.values.size());
      values.push_back(block.values.size());
      block.values.push_back({tensor});
    }
  };
  const auto* function = call.function->As<Function>();
  for (const Expr& parameter : function->parameters) add(parameter->type(), block.inputs, call.inputs);
  add(function->result_type, block.outputs, call.outputs);
  block.calls.push_back(std::move(call));
  model.blocks.push_back(std::move(block));
  return model.blocks.size() - 1;
}

Step Compute(size_t block, std::vector<size_t> inputs, std::vector<size_t> outputs) {
  return {Step::Kind::kBlock, block, std::move(inputs), std::move(outputs)};
}

Step CallOf(size_t function, std::vector<size_t> inputs, std::vector<size_t> outputs) {
  return {Step::Kind::kCall, function, std::move(inputs), std::move(outputs)};
}

Step Branch(size_t condition, size_t function, std::vector<size_t> inputs, size_t otherwise, std::vector<size_t> otherwise_inputs,
            std::vector<size_t> outputs) {
  return {Step::Kind::kBranch, function, std::move(inputs), std::move(outputs), condition, otherwise, std::move(otherwise_inputs)};
}

const std::string kRelu = "fn (%x: Tensor[(4), float32]) { nn.relu(%x) }";
const std::string kTanh = "fn (%x: Tensor[(4), float32]) { tanh(%x) }";

/// if (%flag) { nn.relu(%x) } else { %x }
PartitionedModel Chosen() {
  PartitionedModel model;
  const size_t relu = AddBlock(kRelu, model);
  model.functions = {{"main", {kFlag, kRow, kRow}, 2, {}, {Branch(0, 1, {1}, 2, {1}, {2})}, {2}},
                     {"then", {kRow, kRow}, 1, {}, {Compute(relu, {0}, {1})}, {1}},
                     {"else", {kRow}, 1, {}, {}, {0}}};
  model.input_names = {"flag", "x"};
  model.output_names = {"y"};
  return model;
}

/// As the reader makes loops: %x is added to %w as long as its sum is less than 10. With `until` the condition says when to end.
PartitionedModel Natural(bool until) {
  PartitionedModel model;
  const std::string compare = until ? "greater_equal" : "less";
  const size_t add = AddBlock(
      "fn (%x: Tensor[(4), float32], %w: Tensor[(4), float32]) { %0 = add(%x, %w); %1 = sum(%0); (" + compare + "(%1, 10f), %0) }", model);
  const size_t again = 2;
  const size_t end = 3;
  const Step branch = until ? Branch(0, end, {1, 0}, again, {1, 2}, {3, 4}) : Branch(0, again, {1, 2}, end, {1, 0}, {3, 4});
  model.functions = {
      {"main", {kFlag, kRow, kRow, kRow, kFlag}, 3, {}, {CallOf(1, {0, 1, 2}, {3, 4})}, {3, 4}},
      {"loop", {kFlag, kRow, kRow, kRow, kFlag}, 3, {}, {branch}, {3, 4}},
      {"again", {kRow, kRow, kFlag, kRow, kRow, kFlag}, 2, {}, {Compute(add, {0, 1}, {2, 3}), CallOf(1, {2, 3, 1}, {4, 5})}, {4, 5}},
      {"end", {kRow, kFlag}, 2, {}, {}, {0, 1}}};
  model.input_names = {"flag", "x", "w"};
  model.output_names = {"y", "last_flag"};
  return model;
}

/// def @f(%n, %x) { if (%n > 0) { if (sum(%x) > 5) { tanh(%x) } else { @f(%n - 1, %x + %x) } } else { nn.relu(%x) } }
PartitionedModel General() {
  PartitionedModel model;
  const size_t is_left = AddBlock("fn (%n: int64) { greater(%n, 0i64) }", model);
  const size_t is_large = AddBlock("fn (%x: Tensor[(4), float32]) { %0 = sum(%x); greater(%0, 5f) }", model);
  const size_t next = AddBlock("fn (%n: int64, %x: Tensor[(4), float32]) { (subtract(%n, 1i64), add(%x, %x)) }", model);
  const size_t tanh = AddBlock(kTanh, model);
  const size_t relu = AddBlock(kRelu, model);
  model.functions = {{"main", {kCount, kRow, kRow}, 2, {}, {CallOf(1, {0, 1}, {2})}, {2}},
                     {"f", {kCount, kRow, kFlag, kRow}, 2, {}, {Compute(is_left, {0}, {2}), Branch(2, 2, {0, 1}, 3, {1}, {3})}, {3}},
                     {"left", {kCount, kRow, kFlag, kRow}, 2, {}, {Compute(is_large, {1}, {2}), Branch(2, 4, {1}, 5, {0, 1}, {3})}, {3}},
                     {"done", {kRow, kRow}, 1, {}, {Compute(relu, {0}, {1})}, {1}},
                     {"large", {kRow, kRow}, 1, {}, {Compute(tanh, {0}, {1})}, {1}},
                     {"again", {kCount, kRow, kCount, kRow, kRow}, 2, {}, {Compute(next, {0, 1}, {2, 3}), CallOf(1, {2, 3}, {4})}, {4}}};
  model.input_names = {"n", "x"};
  model.output_names = {"y"};
  return model;
}

/// def @even(%n, %x) { if (%n == 0) { %x } else { @odd(%n - 1, nn.relu(%x)) } }, and @odd likewise with tanh; main calls both.
PartitionedModel ByTurns() {
  PartitionedModel model;
  const size_t is_zero = AddBlock("fn (%n: int64) { equal(%n, 0i64) }", model);
  const size_t less = AddBlock("fn (%n: int64) { subtract(%n, 1i64) }", model);
  const size_t of_even = AddBlock(kTanh, model);
  const size_t of_odd = AddBlock("fn (%x: Tensor[(4), float32]) { add(%x, 1f) }", model);
  const auto add = [&](const std::string& name, size_t own, size_t other, size_t block) {
    model.functions.push_back(
        {name, {kCount, kRow, kFlag, kRow}, 2, {}, {Compute(is_zero, {0}, {2}), Branch(2, 5, {1}, own + 1, {0, 1}, {3})}, {3}});
    model.functions.push_back({name + "_else",
                               {kCount, kRow, kCount, kRow, kRow},
                               2,
                               {},
                               {Compute(less, {0}, {2}), Compute(block, {1}, {3}), CallOf(other, {2, 3}, {4})},
                               {4}});
  };
  model.functions.push_back({"main", {kCount, kRow, kRow, kRow}, 2, {}, {CallOf(1, {0, 1}, {2}), CallOf(3, {0, 1}, {3})}, {2, 3}});
  add("even", 1, 3, of_even);
  add("odd", 3, 1, of_odd);
  model.functions.push_back({"end", {kRow}, 1, {}, {}, {0}});
  model.input_names = {"n", "x"};
  model.output_names = {"y", "z"};
  return model;
}

Tensor Row(float a, float b, float c, float d) { return Tensor::FromVector(kRow, std::vector<float>{a, b, c, d}); }
Tensor Flag(bool value) { return Tensor::Scalar(value, DType::kBool); }
Tensor Count(int64_t value) { return Tensor::Scalar(value, DType::kInt64); }

std::vector<float> Floats(const Tensor& tensor) { return {tensor.Data<float>(), tensor.Data<float>() + tensor.ElementCount()}; }

OnnxGraph Written(const PartitionedModel& model) {
  const Result<PartitionedForm> form = WritePartitioned(model);
  EXPECT_TRUE(form) << form.error().message;
  return onnx_io::ParseOnnxGraph(onnx_io::TensorBytes{form->bytes}, {}).value();
}

std::vector<const onnx_io::OnnxNode*> NodesOf(const OnnxGraph& graph, const std::string& op_type) {
  std::vector<const onnx_io::OnnxNode*> nodes;
  for (const onnx_io::OnnxNode& node : graph.nodes) {
    if (node.op_type == op_type) nodes.push_back(&node);
    for (const auto& [name, value] : node.attributes) {
      if (const auto* body = std::get_if<std::shared_ptr<const OnnxGraph>>(&value)) {
        for (const onnx_io::OnnxNode* inner : NodesOf(**body, op_type)) nodes.push_back(inner);
      }
    }
  }
  return nodes;
}

/// Names that graphs give, each where it is given.
void ExpectNoneTwice(const OnnxGraph& graph, std::set<std::string>& seen) {
  const auto see = [&](const std::string& name) { EXPECT_TRUE(seen.insert(name).second) << name; };
  for (const onnx_io::OnnxInput& input : graph.inputs) see(input.name);
  for (const onnx_io::OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) see(output);
    for (const auto& [name, value] : node.attributes) {
      if (const auto* body = std::get_if<std::shared_ptr<const OnnxGraph>>(&value)) ExpectNoneTwice(**body, seen);
    }
  }
}

TEST(PartitionedControl, ABranchIsAnIf) {
  const Tensor x = Row(-1, 0, 1, 2);
  EXPECT_THAT(Floats(RunWritten(Chosen(), {Flag(true), x})[0]), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(Floats(RunWritten(Chosen(), {Flag(false), x})[0]), ElementsAre(-1, 0, 1, 2));
  const OnnxGraph graph = Written(Chosen());
  ASSERT_THAT(graph.nodes, SizeIs(1));
  EXPECT_EQ(graph.nodes[0].op_type, "If");
  EXPECT_THAT(graph.nodes[0].outputs, ElementsAre("y"));
}

TEST(PartitionedControl, WhatTheReaderMakesOfALoopIsThatLoopAgain) {
  for (const bool until : {false, true}) {
    const PartitionedModel model = Natural(until);
    const std::vector<Tensor> ran = RunWritten(model, {Flag(!until), Row(0, 0, 0, 0), Row(1, 0, 2, 0)});
    EXPECT_THAT(Floats(ran[0]), ElementsAre(4, 0, 8, 0));
    EXPECT_EQ(*ran[1].Data<bool>(), until);
    const std::vector<Tensor> not_ran = RunWritten(model, {Flag(until), Row(1, 2, 3, 4), Row(1, 0, 2, 0)});
    EXPECT_THAT(Floats(not_ran[0]), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(*not_ran[1].Data<bool>(), until);
    // Its condition and one state; what is only passed on is read from outside.
    const OnnxGraph graph = Written(model);
    const std::vector<const onnx_io::OnnxNode*> loops = NodesOf(graph, "Loop");
    ASSERT_THAT(loops, SizeIs(1));
    EXPECT_THAT(loops[0]->inputs, SizeIs(3));
    EXPECT_EQ(loops[0]->inputs[0], "");
    EXPECT_EQ(loops[0]->inputs[2], "x");
    EXPECT_THAT(loops[0]->outputs, ElementsAre("y"));
    EXPECT_THAT(NodesOf(graph, "If"), SizeIs(0));
  }
}

TEST(PartitionedControl, TailCallsBehindConditionsThatAreComputedAreALoop) {
  const PartitionedModel model = General();
  EXPECT_THAT(Floats(RunWritten(model, {Count(0), Row(-1, 0, 1, 2)})[0]), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(Floats(RunWritten(model, {Count(1), Row(-1, 0, 1, 2)})[0]), ElementsAre(0, 0, 2, 4));
  EXPECT_THAT(Floats(RunWritten(model, {Count(9), Row(-1, 0, 1, 2)})[0]),
              ElementsAre(std::tanh(-4.0F), 0, std::tanh(4.0F), std::tanh(8.0F)));
  const OnnxGraph graph = Written(model);
  EXPECT_THAT(NodesOf(graph, "Loop"), SizeIs(1));
  EXPECT_THAT(NodesOf(graph, "If"), SizeIs(2));
}

TEST(PartitionedControl, FunctionsThatCallEachOtherAtTheirEndsAreALoop) {
  const std::vector<Tensor> two = RunWritten(ByTurns(), {Count(2), Row(0, 0, 0, 0)});
  EXPECT_FLOAT_EQ(Floats(two[0])[0], 1);                // tanh, then + 1
  EXPECT_FLOAT_EQ(Floats(two[1])[0], std::tanh(1.0F));  // + 1, then tanh
  const std::vector<Tensor> three = RunWritten(ByTurns(), {Count(3), Row(0, 0, 0, 0)});
  EXPECT_FLOAT_EQ(Floats(three[0])[0], std::tanh(1.0F));
  EXPECT_FLOAT_EQ(Floats(three[1])[0], std::tanh(1.0F) + 1);
}

TEST(PartitionedControl, NoNameIsGivenTwice) {
  for (const PartitionedModel& model : {Chosen(), Natural(false), Natural(true), General(), ByTurns()}) {
    std::set<std::string> seen;
    ExpectNoneTwice(Written(model), seen);
  }
}

TEST(PartitionedControl, ARecursionThatGoesOnComputingIsAnErrorThatNamesIt) {
  PartitionedModel model = General();
  // @f(..) is followed by nn.relu.
  model.functions[5].types.push_back(kRow);
  model.functions[5].steps.push_back(Compute(4, {4}, {5}));
  model.functions[5].results = {5};
  EXPECT_EQ(
      ErrorOf(model),
      "@f is called by @again, which goes on computing then; a recursion has an ONNX form only where the call is the last thing that a "
      "function does");
}

/// Functions that each do something with `inner`; the last of them does it with the input.
PartitionedModel Nested(size_t count, const std::function<PartitionedModel::Function(size_t inner)>& outer) {
  PartitionedModel model;
  const size_t relu = AddBlock("fn (%x: Tensor[(4), float32]) { add(%x, 1f) }", model);
  for (size_t i = 0; i < count; ++i) model.functions.push_back(outer(i + 1));
  model.functions.push_back({"last", {kRow, kRow}, 1, {}, {Compute(relu, {0}, {1})}, {1}});
  model.input_names = {"x"};
  model.output_names = {"y"};
  return model;
}

TEST(PartitionedControl, AFileDoesNotGrowWithThePathsThroughAProgram) {
  const auto twice = [](size_t inner) {
    return PartitionedModel::Function{"twice", {kRow, kRow, kRow}, 1, {}, {CallOf(inner, {0}, {1}), CallOf(inner, {1}, {2})}, {2}};
  };
  EXPECT_THAT(Floats(RunWritten(Nested(4, twice), {Row(0, 1, 2, 3)})[0]), ElementsAre(16, 17, 18, 19));
  const Result<PartitionedForm> form = WritePartitioned(Nested(60, twice));
  ASSERT_TRUE(form) << form.error().message;
  EXPECT_EQ(form->partitions, 1U);
  EXPECT_EQ(form->functions, 61U);
  EXPECT_LT(form->bytes.size(), 30000U);
}

TEST(PartitionedControl, CallsMayBeDeep) {
  const auto once = [](size_t inner) {
    return PartitionedModel::Function{"once", {kRow, kRow, kRow}, 1, {}, {CallOf(inner, {0}, {1}), Compute(0, {1}, {2})}, {2}};
  };
  EXPECT_THAT(Floats(RunWritten(Nested(10000, once), {Row(0, 1, 2, 3)})[0]), ElementsAre(10001, 10002, 10003, 10004));
}

TEST(PartitionedControl, BranchesMayBeDeep) {
  // Each a branch of the one before; parsers of messages take about 30 graphs in graphs.
  PartitionedModel model;
  const size_t add = AddBlock("fn (%x: Tensor[(4), float32]) { add(%x, 1f) }", model);
  const size_t is_large = AddBlock("fn (%x: Tensor[(4), float32]) { %0 = sum(%x); greater(%0, 100f) }", model);
  constexpr size_t kDepth = 100;
  for (size_t i = 0; i < kDepth; ++i) {
    model.functions.push_back({"f",
                               {kRow, kRow, kFlag, kRow},
                               1,
                               {},
                               {Compute(add, {0}, {1}), Compute(is_large, {1}, {2}), Branch(2, kDepth, {1}, i + 1, {1}, {3})},
                               {3}});
  }
  model.functions.push_back({"end", {kRow}, 1, {}, {}, {0}});
  model.input_names = {"x"};
  model.output_names = {"y"};
  EXPECT_THAT(Floats(RunWritten(model, {Row(0, 0, 0, 0)})[0]), ElementsAre(26, 26, 26, 26));
  EXPECT_THAT(Floats(RunWritten(model, {Row(-99, 0, 0, 0)})[0]), ElementsAre(-49, 50, 50, 50));
}

}  // namespace
}  // namespace collage
