#include "collage/onnx/packed_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

namespace collage::onnx_io {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

Tensor Floats(Shape shape) {
  Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
  std::iota(tensor.MutableData<float>(), tensor.MutableData<float>() + tensor.ElementCount(), 1.0F);
  return tensor;
}

/// Of 8 bits and less, one element a byte: 0, 1, 2, ...
Tensor Integers(Shape shape, DType dtype) {
  Tensor tensor(TensorType{std::move(shape), dtype});
  for (int64_t i = 0; i < tensor.ElementCount(); ++i) tensor.MutableBytes()[i] = static_cast<std::byte>(i % (1 << BitWidth(dtype)));
  return tensor;
}

/// A graph in lines such as "y = MatMul a w", which gives "y"; "_" is an input that is not there.
class Graph {
 public:
  Graph& Constant(const std::string& name, Tensor value) {
    graph_.initializers.emplace_back(name, std::move(value));
    return *this;
  }
  Graph& Node(const std::string& line, std::map<std::string, OnnxAttribute> attributes = {}) {
    const std::vector<std::string> words = Words(line);
    OnnxNode node{"", words[2], "", 21, graph_.nodes.size(), {}, {words[0]}, std::move(attributes)};
    for (size_t i = 3; i < words.size(); ++i) node.inputs.push_back(words[i] == "_" ? "" : words[i]);
    graph_.nodes.push_back(std::move(node));
    return *this;
  }
  /// Packs the products; answers the lines, with integer attributes.
  std::vector<std::string> Pack() {
    graph_.outputs = {"y"};
    graph_ = WithPackedProducts(std::move(graph_));
    std::vector<std::string> lines;
    for (const OnnxNode& node : graph_.nodes) {
      lines.push_back(node.outputs[0] + " = " + node.op_type);
      for (const std::string& input : node.inputs) lines.back() += " " + (input.empty() ? "_" : input);
      for (const auto& [name, value] : node.attributes) {
        if (const auto* number = std::get_if<int64_t>(&value)) lines.back() += " " + name + "=" + std::to_string(*number);
      }
    }
    return lines;
  }
  [[nodiscard]] std::vector<std::string> Constants() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : graph_.initializers) names.push_back(name + " " + ToString(tensor.type()));
    return names;
  }
  [[nodiscard]] std::vector<double> ValuesOf(const std::string& wanted) const {
    for (const auto& [name, tensor] : graph_.initializers) {
      if (name == wanted) return tensor.ToDouble();
    }
    return {};
  }

 private:
  OnnxGraph graph_{.opset = 21};
};

const std::map<std::string, OnnxAttribute> kAlongRows = {{"axis", int64_t{0}}, {"block_size", int64_t{2}}};
const std::map<std::string, OnnxAttribute> kAlongColumns = {{"axis", int64_t{-1}}, {"block_size", int64_t{2}}};

TEST(PackedProducts, AMatrixOfTheProductIsPackedByColumns) {
  Graph graph;
  graph.Constant("w", Integers({3, 2}, DType::kUInt4)).Constant("s", Floats({2, 2})).Constant("z", Integers({2, 2}, DType::kUInt4));
  graph.Node("m = DequantizeLinear w s z", kAlongRows).Node("y = MatMul a m");
  EXPECT_THAT(graph.Pack(), ElementsAre("y = MatMulNBits a m.weights m.scales m.zero_points K=3 N=2 bits=4 block_size=2"));
  EXPECT_THAT(graph.Constants(),
              ElementsAre("m.weights Tensor[(2, 2, 1), uint8]", "m.scales Tensor[(2, 2), float32]", "m.zero_points Tensor[(2, 1), uint8]"));
  // Columns 0, 2, 4 and 1, 3, 5; what the last block has too much is nobody's.
  EXPECT_THAT(graph.ValuesOf("m.weights"), ElementsAre(0x20, 0x04, 0x31, 0x05));
  EXPECT_THAT(graph.ValuesOf("m.scales"), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(graph.ValuesOf("m.zero_points"), ElementsAre(0x20, 0x31));
}

TEST(PackedProducts, ItsTransposeLiesAsItIs) {
  Graph graph;
  graph.Constant("w", Integers({2, 4}, DType::kUInt8)).Constant("s", Floats({2, 2})).Node("m = DequantizeLinear w s", kAlongColumns);
  graph.Node("t = Transpose m").Node("y = MatMul a t");
  EXPECT_THAT(graph.Pack(), ElementsAre("y = MatMulNBits a t.weights t.scales t.zero_points K=4 N=2 bits=8 block_size=2"));
  EXPECT_THAT(graph.ValuesOf("t.weights"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(graph.ValuesOf("t.scales"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(graph.ValuesOf("t.zero_points"), ElementsAre(0, 0, 0, 0));
}

TEST(PackedProducts, DenseLayersKeepTheirBias) {
  Graph graph;
  graph.Constant("w", Integers({2, 4}, DType::kUInt8)).Constant("s", Floats({2, 2})).Node("m = DequantizeLinear w s", kAlongColumns);
  graph.Node("y = Gemm a m bias", {{"transB", int64_t{1}}});
  EXPECT_THAT(graph.Pack(), ElementsAre("y = MatMulNBits a m.weights m.scales m.zero_points _ bias K=4 N=2 bits=8 block_size=2"));
}

TEST(PackedProducts, SignedIntegersHaveTheMiddleAdded) {
  // 0, 1, -2, -1; 0, 1; 0.
  const std::vector<std::pair<DType, double>> first_bytes = {{DType::kInt2, 0b01001110}, {DType::kInt4, 0x98}, {DType::kInt8, 0x80}};
  for (const auto& [dtype, byte] : first_bytes) {
    Graph graph;
    graph.Constant("w", Integers({1, 4}, dtype)).Constant("s", Floats({1, 1}));
    graph.Node("m = DequantizeLinear w s", {{"axis", int64_t{1}}, {"block_size", int64_t{4}}});
    graph.Node("t = Transpose m", {{"perm", std::vector<int64_t>{1, 0}}}).Node("y = MatMul a t").Pack();
    ASSERT_FALSE(graph.ValuesOf("t.weights").empty());
    EXPECT_EQ(graph.ValuesOf("t.weights")[0], byte);
    EXPECT_EQ(graph.ValuesOf("t.zero_points")[0], 1 << (BitWidth(dtype) - 1));
  }
}

TEST(PackedProducts, BlocksThatLieInADimensionOfTheirOwn) {
  Graph graph;
  graph.Constant("w", Integers({2, 2, 2}, DType::kInt4)).Constant("s", Floats({2, 2, 1}));
  Tensor shape(TensorType{{2}, DType::kInt64});
  shape.MutableData<int64_t>()[1] = -1;  // 0, -1
  graph.Constant("shape", std::move(shape)).Node("m = DequantizeLinear w s", kAlongColumns).Node("r = Reshape m shape");
  graph.Node("c = Cast r", {{"to", int64_t{1}}}).Node("t = Transpose c").Node("y = MatMul a t");
  EXPECT_THAT(graph.Pack(), ElementsAre("y = MatMulNBits a t.weights t.scales t.zero_points K=4 N=2 bits=4 block_size=2"));
}

TEST(PackedProducts, WhatOthersReadStays) {
  Graph graph;
  graph.Constant("w", Integers({4, 2}, DType::kInt4)).Constant("s", Floats({2, 2}));
  graph.Node("m = DequantizeLinear w s", kAlongRows).Node("b = MatMul a m").Node("c = MatMul b m").Node("y = Gather m c");
  EXPECT_THAT(graph.Pack(),
              ElementsAre("m = DequantizeLinear w s axis=0 block_size=2",
                          "b = MatMulNBits a m.weights m.scales m.zero_points K=4 N=2 bits=4 block_size=2",
                          "c = MatMulNBits b m.weights m.scales m.zero_points K=4 N=2 bits=4 block_size=2", "y = Gather m c"));
  EXPECT_EQ(graph.Constants().size(), 5U);
}

TEST(PackedProducts, WhatTheOperatorCannotSayStays) {
  const auto stays = [](const Tensor& weights, const Tensor& scales, const std::map<std::string, OnnxAttribute>& blocks,
                        const std::string& product, const std::map<std::string, OnnxAttribute>& attributes = {}) {
    Graph graph;
    graph.Constant("w", weights).Constant("s", scales).Node("m = DequantizeLinear w s", blocks).Node(product, attributes);
    return graph.Pack().size() == 2;
  };
  const Tensor weights = Integers({4, 4}, DType::kInt4);
  const Tensor by_rows = Floats({2, 4});
  const std::string product = "y = MatMul a m";
  EXPECT_FALSE(stays(weights, by_rows, kAlongRows, product));
  EXPECT_TRUE(stays(weights, Floats({4, 2}), kAlongColumns, product));                            // blocks along the columns
  EXPECT_TRUE(stays(weights, by_rows, kAlongRows, "y = MatMul m a"));                             // the other operand
  EXPECT_TRUE(stays(weights, by_rows, kAlongRows, "y = Gemm a m", {{"transB", int64_t{1}}}));     // as above
  EXPECT_TRUE(stays(weights, by_rows, kAlongRows, "y = Gemm a m", {{"alpha", 0.5F}}));            // scaled
  EXPECT_TRUE(stays(weights, by_rows, kAlongRows, "y = Gemm a m", {{"transA", int64_t{1}}}));     // transposed data
  EXPECT_TRUE(stays(weights, Tensor(TensorType{{2, 4}, DType::kFloat16}), kAlongRows, product));  // rounded numbers
  EXPECT_TRUE(stays(weights, Floats({3, 4}), kAlongRows, product));                               // wrong, which the reader says
  EXPECT_TRUE(stays(Integers({4, 4}, DType::kUInt16), by_rows, kAlongRows, product));             // more bits
  EXPECT_TRUE(stays(weights, Floats({4}), {{"axis", int64_t{0}}}, product));                      // no blocks
  const std::map<std::string, OnnxAttribute> threes = {{"axis", int64_t{0}}, {"block_size", int64_t{3}}};
  EXPECT_TRUE(stays(Integers({6, 4}, DType::kInt4), by_rows, threes, product));  // no whole bytes
  const std::map<std::string, OnnxAttribute> huge = {{"axis", int64_t{0}}, {"block_size", int64_t{1} << 62}};
  EXPECT_TRUE(stays(weights, Floats({1, 4}), huge, product));  // nothing but padding
}

TEST(PackedProducts, NodesInACircleAndWithoutInputsStay) {
  EXPECT_EQ(Graph().Node("m = Transpose t").Node("t = Transpose m").Node("y = MatMul a m").Pack().size(), 3U);
  EXPECT_EQ(Graph().Node("m = DequantizeLinear").Node("y = MatMul a m").Pack().size(), 2U);
  EXPECT_EQ(Graph().Node("y = MatMul").Pack().size(), 1U);
}

}  // namespace
}  // namespace collage::onnx_io
