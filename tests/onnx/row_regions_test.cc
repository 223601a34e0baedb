#include "collage/onnx/row_regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <sstream>

#include "collage/onnx/graph_message.h"
#include "collage/onnx/remainder.h"
#include "collage/op/interpreter.h"

namespace collage::onnx_io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kWidth = 32;  // of rows in these graphs: a product of so many is work enough
const std::vector<int64_t> kRowCounts = {4, 2};

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

/// A remainder in lines such as "y = MatMul x w", "_" being an input that is not there. It has the weights "w", a matrix, "v", a vector of
/// its width, and some integers by their value, "-1" or "2,3".
class Graph {
 public:
  Graph() {
    graph_.opset = 17;
    Add("w", Random({kWidth, kWidth}, 1));
    Add("v", Random({kWidth}, 2));
  }
  Graph& Input(const std::string& name, TensorType type) {
    inputs_.emplace(name, type);
    return *this;
  }
  Graph& Node(const std::string& line, std::map<std::string, OnnxAttribute> attributes = {}) {
    const std::vector<std::string> words = Words(line);
    OnnxNode node;
    size_t at = 0;
    for (; words[at] != "="; ++at) node.outputs.push_back(words[at]);
    node.op_type = words[at + 1];
    for (at += 2; at < words.size(); ++at) {
      node.inputs.push_back(words[at] == "_" ? "" : words[at]);
      if (words[at].find_first_not_of("-0123456789,") == std::string::npos) AddIntegers(words[at]);
    }
    node.opset = graph_.opset;
    node.attributes = std::move(attributes);
    graph_.nodes.push_back(std::move(node));
    return *this;
  }
  Graph& Outputs(const std::string& names) {
    graph_.outputs = Words(names);
    for (const std::string& name : graph_.outputs) graph_.output_types.push_back({name, DType::kFloat32, std::nullopt});
    return *this;
  }

  [[nodiscard]] RowRegions Find() const { return FindRowRegions(graph_, inputs_, kRowCounts); }

  /// "in -> nodes -> out" of each region; inputs that are the same for all rows are in parentheses.
  [[nodiscard]] std::vector<std::string> Regions() const {
    const RowRegions found = Find();
    std::vector<std::string> lines;
    for (const Remainder::Region& region : found.regions) {
      std::string line;
      for (size_t i = 0; i < region.inputs.size(); ++i)
        line += (region.has_rows[i] ? region.inputs[i] : "(" + region.inputs[i] + ")") + " ";
      line += "->";
      for (size_t node = region.begin; node < region.end; ++node) line += " " + found.graph.nodes[node].op_type;
      line += " ->";
      for (const std::string& name : region.outputs) line += " " + name;
      lines.push_back(line);
    }
    return lines;
  }

  /// As it came, or with the nodes of regions one after another, and these.
  [[nodiscard]] std::shared_ptr<const Remainder> Make(const RowRegions* found) const {
    OnnxGraph graph = found != nullptr ? found->graph : graph_;
    graph.initializers.clear();
    Result<std::string> message = ModelMessage(graph);
    EXPECT_TRUE(message);
    Remainder::Parts parts{*message, {}, graph_.initializers, "why", found != nullptr ? found->regions : std::vector<Remainder::Region>()};
    for (const auto& [name, type] : inputs_) parts.inputs.push_back({name, std::nullopt});
    Result<std::shared_ptr<const Remainder>> remainder = CreateRemainder(std::move(parts));
    EXPECT_TRUE(remainder) << remainder.error().message;
    return *remainder;
  }

  static Tensor Random(Shape shape, uint64_t seed) {
    Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
    FillRandom(tensor, seed);
    return tensor;
  }

 private:
  void Add(const std::string& name, Tensor value) { graph_.initializers.emplace_back(name, std::move(value)); }
  void AddIntegers(const std::string& text) {
    for (const auto& [name, value] : graph_.initializers) {
      if (name == text) return;
    }
    std::string words = text;
    std::replace(words.begin(), words.end(), ',', ' ');
    std::vector<int64_t> values;
    for (const std::string& word : Words(words)) values.push_back(std::stoll(word));
    const auto count = static_cast<int64_t>(values.size());
    Add(text, Tensor::FromVector<int64_t>({{count}, DType::kInt64}, values));
  }

  OnnxGraph graph_;
  std::map<std::string, TensorType> inputs_;
};

/// Rows of "x" whose sum is positive, as "r".
Graph Found() {
  Graph graph;
  graph.Input("x", {{10, kWidth}, DType::kFloat32})
      .Node("sums = ReduceSum x 1", {{"keepdims", int64_t{0}}})
      .Node("zero = Sub sums sums")
      .Node("is = Greater sums zero")
      .Node("r = Compress x is", {{"axis", int64_t{0}}});
  return graph;
}

TEST(RowRegionsTest, ProductsOverRows) {
  Graph graph = Found();
  graph.Node("a = MatMul r w").Node("b = Add a v").Node("c = Relu b").Node("d = MatMul c w").Node("e = Softmax d").Outputs("e");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul Add Relu MatMul Softmax -> e"));
  const RowRegions found = graph.Find();
  ASSERT_EQ(found.functions.size(), 1);
  ASSERT_EQ(found.functions[0].functions.size(), 2);
  EXPECT_EQ(ToString(found.functions[0].functions[0].second->As<Function>()->result_type), "Tensor[(4, 32), float32]");
  EXPECT_GE(found.functions[0].work, 2 * 2 * kWidth * kWidth);
}

TEST(RowRegionsTest, WhatIsLittleWorkStays) {
  Graph graph = Found();
  graph.Node("a = Add r v").Node("b = Relu a").Outputs("b");
  EXPECT_THAT(graph.Regions(), IsEmpty());
}

TEST(RowRegionsTest, WhatSeesAllRowsEndsARegion) {
  Graph graph = Found();
  graph.Node("a = MatMul r w").Node("b = Softmax a", {{"axis", int64_t{0}}}).Node("c = MatMul b w").Outputs("c");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul -> a", "b -> MatMul -> c"));
}

TEST(RowRegionsTest, NoPathLeavesARegionAndEntersItAgain) {
  Graph graph = Found();
  graph.Node("a = MatMul r w").Node("b = Softmax a", {{"axis", int64_t{0}}}).Node("c = Add a b").Node("d = MatMul c w").Outputs("d");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul -> a", "a b -> Add MatMul -> d"));
}

TEST(RowRegionsTest, ArithmeticOfExtentsIsInside) {
  Graph graph = Found();
  graph.Node("a = MatMul r w")
      .Node("shape = Shape a")
      .Node("rows = Gather shape 0")
      .Node("target = Concat rows 8,4", {{"axis", int64_t{0}}})
      .Node("b = Reshape a target")
      .Node("c = ReduceMax b", {{"axes", std::vector<int64_t>{2}}})
      .Outputs("c");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul Shape Gather Concat Reshape ReduceMax -> c"));
}

TEST(RowRegionsTest, ArithmeticThatOthersReadIsOutsideToo) {
  Graph graph = Found();
  graph.Node("a = MatMul r w")
      .Node("shape = Shape a")
      .Node("b = Reshape a shape")
      .Node("c = Cast shape", {{"to", int64_t{1}}})
      .Outputs("b c");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul Shape Reshape -> a b"));
}

TEST(RowRegionsTest, ANumberOfRowsIsNoOperand) {
  Graph graph = Found();
  graph.Node("a = MatMul r w")
      .Node("shape = Shape a")
      .Node("rows = Gather shape 0")
      .Node("count = Cast rows", {{"to", int64_t{1}}})
      .Node("b = Div a count")
      .Outputs("b");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul -> a"));
}

TEST(RowRegionsTest, WhatIsTheSameForAllRowsIsRead) {
  Graph graph = Found();
  graph.Input("y", {{kWidth, kWidth}, DType::kFloat32}).Node("a = MatMul r y").Outputs("a");
  EXPECT_THAT(graph.Regions(), ElementsAre("r (y) -> MatMul -> a"));
}

TEST(RowRegionsTest, PlacesOfRowsAreInputs) {
  Graph graph = Found();
  // 0, 1, 2, ... for as many rows as there are: known where the number is, and other for each block.
  graph.Node("shape = Shape r")
      .Node("rows = Gather shape 0")
      .Node("ones = Expand 1 rows")
      .Node("places = CumSum ones 0")
      .Node("column = Unsqueeze places 1")
      .Node("number = Cast column", {{"to", int64_t{1}}})
      .Node("a = MatMul r w")
      .Node("b = Add a number")
      .Outputs("b");
  EXPECT_THAT(graph.Regions(), ElementsAre("r places -> Unsqueeze Cast MatMul Add -> b"));
}

TEST(RowRegionsTest, RegionsOfDifferentRows) {
  Graph graph = Found();
  graph.Node("places = NonZero x")
      .Node("first = Gather places 0", {{"axis", int64_t{0}}})
      .Node("at = Reshape first -1")
      .Node("s = Gather x at", {{"axis", int64_t{0}}})
      .Node("a = MatMul r w")
      .Node("b = MatMul s w")
      .Node("all = Concat a b", {{"axis", int64_t{0}}})
      .Node("c = MatMul all w")
      .Outputs("c");
  EXPECT_THAT(graph.Regions(), ElementsAre("r -> MatMul -> a", "(x) at -> Gather MatMul -> b", "all -> MatMul -> c"));
}

TEST(RowRegionsTest, RegionsThatWaitForEachOtherAreNotBoth) {
  Graph graph = Found();
  // Each reads what the other gives, in parts that do not.
  graph.Node("places = NonZero x")
      .Node("first = Gather places 0", {{"axis", int64_t{0}}})
      .Node("at = Reshape first -1")
      .Node("s = Gather x at", {{"axis", int64_t{0}}})
      .Node("a1 = MatMul r w")
      .Node("b2 = MatMul s w")
      .Node("a_sum = ReduceSum a1 0", {{"keepdims", int64_t{1}}})
      .Node("b_sum = ReduceSum b2 0", {{"keepdims", int64_t{1}}})
      .Node("b1 = Add s a_sum")
      .Node("a2 = Add r b_sum")
      .Node("a3 = MatMul a2 w")
      .Node("a4 = Add a1 a3")
      .Node("b3 = MatMul b1 w")
      .Node("b4 = Add b2 b3")
      .Outputs("a4 b4");
  const RowRegions found = graph.Find();
  EXPECT_EQ(found.regions.size(), 1);
  EXPECT_EQ(found.graph.nodes.size(), 18);
}

/// Runs functions of regions as programs would be run, each block on the interpreter.
class Blocks {
 public:
  Blocks(const RowRegions& found) : found_(found) {}

  Result<std::optional<std::vector<Tensor>>> operator()(const Remainder::Region& region, std::span<const Tensor> inputs) {
    size_t number = 0;
    while (found_.regions[number].begin != region.begin) ++number;
    const auto& [rows, function] = found_.functions[number].functions[ran_++ % kRowCounts.size()];
    int64_t all = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (region.has_rows[i]) all = inputs[i].shape()[0];
    }
    std::vector<Tensor> outputs;
    for (const TensorType& type : FlattenTensors(function->As<Function>()->result_type)) {
      TensorType whole = type;
      whole.shape[0] = all;
      outputs.emplace_back(whole);
    }
    for (int64_t first = 0; first < all; first += rows) {
      std::vector<Tensor> block;
      for (size_t i = 0; i < inputs.size(); ++i) block.push_back(region.has_rows[i] ? RowsOf(inputs[i], first, rows) : inputs[i]);
      const std::vector<Tensor> found = COLLAGE_TRY(InterpretFunction(function, block));
      for (size_t i = 0; i < outputs.size(); ++i) {
        const size_t bytes = outputs[i].ByteCount() / static_cast<size_t>(all);
        std::memcpy(outputs[i].MutableBytes() + bytes * static_cast<size_t>(first), found[i].Bytes(),
                    bytes * static_cast<size_t>(std::min(rows, all - first)));
      }
    }
    return std::optional(std::move(outputs));
  }
  [[nodiscard]] size_t ran() const { return ran_; }

 private:
  static Tensor RowsOf(const Tensor& all, int64_t first, int64_t count) {
    TensorType type = all.type();
    type.shape[0] = count;
    Tensor some(type);
    const size_t bytes = all.ByteCount() / static_cast<size_t>(all.shape()[0]);
    for (int64_t row = 0; row < count; ++row) {
      const auto from = static_cast<size_t>(std::min(first + row, all.shape()[0] - 1));
      std::memcpy(some.MutableBytes() + bytes * static_cast<size_t>(row), all.Bytes() + bytes * from, bytes);
    }
    return some;
  }

  const RowRegions& found_;
  size_t ran_ = 0;
};

/// A random remainder over the rows that are found.
Graph RandomGraph(uint32_t seed) {
  std::mt19937 random(seed);
  Graph graph = Found();
  std::vector<std::string> values{"r"};
  const auto below = [&](size_t bound) { return random() % bound; };
  const auto any = [&] { return values[values.size() - 1 - below(std::min<size_t>(values.size(), 4))]; };
  for (size_t i = 0; i < 12; ++i) {
    const std::string name = "t" + std::to_string(i);
    const std::string x = any();
    switch (below(10)) {
      case 0:
      case 1:
        graph.Node(name + " = MatMul " + x + " w");
        break;
      case 2:
        graph.Node(name + " = Add " + x + " " + any());
        break;
      case 3:
        graph.Node(name + " = Mul " + x + " v");
        break;
      case 4:
        graph.Node(name + " = Softmax " + x, {{"axis", static_cast<int64_t>(below(2))}});
        break;
      case 5:
        graph.Node(name + "s = ReduceSum " + x + (below(2) ? " 0" : " 1")).Node(name + " = Sub " + x + " " + name + "s");
        break;
      case 6:
        graph.Node(name + "n = Shape " + any())
            .Node(name + "r = Gather " + name + "n 0")
            .Node(name + "t = Concat " + name + "r 8,4", {{"axis", int64_t{0}}})
            .Node(name + "v = Reshape " + x + " " + name + "t")
            .Node(name + "p = Transpose " + name + "v", {{"perm", std::vector<int64_t>{0, 2, 1}}})
            .Node(name + " = Reshape " + name + "p -1,32");
        break;
      case 7:
        graph.Node(name + " = CumSum " + x + (below(2) ? " 0" : " 1"));
        break;
      case 8:
        graph.Node(name + "a = Slice " + x + " 0 16 1")
            .Node(name + "b = Slice " + x + " 16 32 1")
            .Node(name + " = Concat " + name + "b " + name + "a", {{"axis", int64_t{1}}});
        break;
      default:
        graph.Node(name + " = Tanh " + x);
        break;
    }
    values.push_back(name);
  }
  graph.Outputs(values.back() + " " + values[values.size() / 2]);
  return graph;
}

TEST(RowRegionsTest, RandomGraphsGiveTheSame) {
  size_t regions = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed);
    const RowRegions found = graph.Find();
    regions += found.regions.size();
    const std::shared_ptr<const Remainder> whole = graph.Make(nullptr);
    RowRegions with_programs = found;
    for (Remainder::Region& region : with_programs.regions) region.programs = {{4, 0, 1}};
    const std::shared_ptr<const Remainder> parts = graph.Make(&with_programs);
    // Some rows, none, all.
    for (const auto& [low, high] : {std::pair(-1.0, 1.0), std::pair(-1.0, -0.5), std::pair(0.5, 1.0)}) {
      Tensor x(TensorType{{10, kWidth}, DType::kFloat32});
      FillRandom(x, seed, low, high);
      const Result<std::vector<Tensor>> expected = whole->Run(std::vector{x});
      ASSERT_TRUE(expected) << expected.error().message;
      Blocks blocks(found);
      const Result<std::vector<Tensor>> actual = parts->Run(std::vector{x}, std::ref(blocks));
      ASSERT_TRUE(actual) << actual.error().message;
      EXPECT_EQ(blocks.ran(), found.regions.size());
      const Result<std::vector<Tensor>> by_nodes = parts->Run(std::vector{x});
      ASSERT_TRUE(by_nodes) << by_nodes.error().message;
      for (size_t i = 0; i < expected->size(); ++i) {
        EXPECT_TRUE(BitwiseEqual((*actual)[i], (*expected)[i])) << i;
        EXPECT_TRUE(BitwiseEqual((*by_nodes)[i], (*expected)[i])) << i;
      }
    }
  }
  EXPECT_GT(regions, 100);
}

TEST(RowRegionsTest, RegionsOfOtherNodesAreRefused) {
  Graph graph = Found();
  graph.Node("a = MatMul r w").Outputs("a");
  RowRegions found = graph.Find();
  Remainder::Parts parts = graph.Make(&found)->parts();
  parts.regions[0].end = 100;
  EXPECT_THAT(CreateRemainder(parts).error().message, HasSubstr("a region of rows is not of its nodes"));
}

}  // namespace
}  // namespace collage::onnx_io
