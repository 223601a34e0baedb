// What is read remembers the nodes of the model. Models are put together field by field (onnx.proto), because names are the point.

#include <gtest/gtest.h>

#include "collage/ir/visit.h"
#include "collage/onnx/reader.h"

namespace collage {
namespace {

/// A field of a protobuf message that holds bytes, shorter than 128.
std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
/// A field that holds an integer below 128.
std::string Field(int number, char value) { return {static_cast<char>(number << 3), value}; }

std::string Node(const std::string& op_type, const std::vector<std::string>& inputs, const std::string& output, const std::string& name) {
  std::string node;
  for (const std::string& input : inputs) node += Field(1, input);
  return Field(1, node + Field(2, output) + (name.empty() ? "" : Field(3, name)) + Field(4, op_type));
}

/// A graph from "x" to "y", both of two elements: int64 or float32.
OnnxModel ReadGraph(const std::string& nodes, bool floating) {
  const std::string shape = Field(2, Field(1, Field(1, char{2})));
  const std::string type = Field(2, Field(1, Field(1, char{static_cast<char>(floating ? 1 : 7)}) + shape));
  // Graphs are longer than 128 bytes: their length takes two.
  const std::string graph = nodes + Field(11, Field(1, "x") + type) + Field(12, Field(1, "y") + type);
  const std::string length = {static_cast<char>(graph.size() % 128 | 128), static_cast<char>(graph.size() / 128)};
  const std::string opset = Field(8, Field(2, char{17}));
  Result<OnnxModel> model = ReadOnnx(Field(1, char{8}) + opset + std::string{7 << 3 | 2} + length + graph);
  EXPECT_TRUE(model) << model.error().message;
  return model ? *std::move(model) : OnnxModel();
}

/// "nn.relu of first; " for each call, "constant of ...; " for each constant that some node made.
std::string OriginsIn(const OnnxModel& model) {
  std::string text;
  PostOrder(model.module.MainExpr(), [&](const Expr& expr) {
    const OpDef* op = CalledOp(expr);
    if (!op && (!expr->As<Constant>() || expr->origin().Empty())) return;
    text += (op ? op->name : "constant") + " of " + expr->origin().ToString() + "; ";
  });
  return text;
}

TEST(OnnxOrigin, NodesGoByTheirNamesElseByOperatorAndOutput) {
  const std::string nodes = Node("Relu", {"x"}, "a", "first") + Node("Identity", {"a"}, "b", "same") + Node("Tanh", {"b"}, "c", "") +
                            Node("Abs", {"c"}, "y", "/block.0/Abs:last=1");
  EXPECT_EQ(OriginsIn(ReadGraph(nodes, true)), "nn.relu of first; tanh of Tanh:c; abs of /block.0/Abs:last=1; ");
}

TEST(OnnxOrigin, EveryCallThatANodeBecomesIsOfThatNode) {
  const OnnxModel model = ReadGraph(
      Node("Relu", {"x"}, "a", "first") + Node("Softsign", {"a"}, "b", "soft") + Node("HardSwish", {"b"}, "y", "swish_of_the_last_block"),
      true);
  size_t calls = 0;
  std::vector<std::string> seen;
  PostOrder(model.module.MainExpr(), [&](const Expr& expr) {
    if (!CalledOp(expr)) return;
    ++calls;
    ASSERT_EQ(expr->origin().Parts().size(), 1u);
    if (seen.empty() || seen.back() != expr->origin().ToString()) seen.push_back(expr->origin().ToString());
  });
  EXPECT_GT(calls, 3u);
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "soft", "swish_of_the_last_block"}));
}

TEST(OnnxOrigin, WhatIsFoldedWhileReadingStaysWithTheConstant) {
  const std::string nodes = Node("Size", {"x"}, "s", "size_of_the_input") + Node("Neg", {"s"}, "n", "minus") +
                            Node("Identity", {"n"}, "m", "passed_on") + Node("Add", {"x", "m"}, "y", "sum");
  EXPECT_EQ(OriginsIn(ReadGraph(nodes, false)), "constant of size_of_the_input, minus; add of sum; ");
}

}  // namespace
}  // namespace collage
