#include <cmath>
#include <limits>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The element of a tensor of `shape` that is repeated to place `o` of a larger one.
Index Source(const Index& o, const Shape& shape) {
  Index source(o.end() - static_cast<std::ptrdiff_t>(shape.size()), o.end());
  for (size_t d = 0; d < shape.size(); ++d) source[d] = shape[d] == 1 ? 0 : source[d];
  return source;
}

TEST(BroadcastTest, InfersShapes) {
  EXPECT_EQ(Infer("add", {T({2, 1, 4}), T({3, 1})}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("multiply", {T({}, DType::kInt16), T({3}, DType::kInt16)}), "Tensor[(3,), int16]");
  EXPECT_EQ(Infer("add", {T({0, 3}), T({1, 3})}), "Tensor[(0, 3), float32]");
  EXPECT_EQ(Infer("equal", {T({2}, DType::kBool), T({2}, DType::kBool)}), "Tensor[(2,), bool]");
  EXPECT_EQ(Infer("less", {T({2}), T({1})}), "Tensor[(2,), bool]");
  EXPECT_EQ(Infer("logical_and", {T({2}, DType::kBool), T({}, DType::kBool)}), "Tensor[(2,), bool]");
  EXPECT_EQ(Infer("nn.bias_add", {T({2, 3, 4}), T({3})}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.bias_add", {T({2, 3, 4}), T({4})}, {{"axis", -1}}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.prelu", {T({2, 3, 4}), T({3})}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("where", {T({3, 1}, DType::kBool), T({4}), T({2, 1, 1})}), "Tensor[(2, 3, 4), float32]");
  EXPECT_EQ(Infer("broadcast_to", {T({3, 1})}, {{"shape", Ints{2, 3, 4}}}), "Tensor[(2, 3, 4), float32]");
}

TEST(BroadcastTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("add", {T({2, 3}), T({2})}), HasSubstr("shapes (2, 3) and (2,) do not broadcast"));
  EXPECT_THAT(Infer("add", {T({2}), T({2}, DType::kFloat64)}), HasSubstr("rhs has dtype float64, expected float32 as lhs has"));
  EXPECT_THAT(Infer("add", {T({2}, DType::kBool), T({2}, DType::kBool)}), HasSubstr("lhs has dtype bool"));
  EXPECT_THAT(Infer("less", {T({2}, DType::kBool), T({2}, DType::kBool)}), HasSubstr("lhs has dtype bool"));
  EXPECT_EQ(Infer("equal", {T({2}, DType::kFloat16), T({2}, DType::kFloat16)}), "Tensor[(2,), bool]");
  EXPECT_THAT(Infer("bitwise_and", {T({2}), T({2})}), HasSubstr("lhs has dtype float32, expected an integer type"));
  EXPECT_THAT(Infer("logical_or", {T({2}), T({2})}), HasSubstr("lhs has dtype float32, expected bool"));
  EXPECT_THAT(Infer("nn.bias_add", {T({2, 3}), T({2})}), HasSubstr("bias has shape (2,), expected (3,)"));
  EXPECT_THAT(Infer("nn.bias_add", {T({2, 3}), T({3})}, {{"axis", 2}}), HasSubstr("attribute 'axis' is 2"));
  EXPECT_THAT(Infer("nn.bias_add", {T({2, 3}), T({3}, DType::kInt32)}), HasSubstr("bias has dtype int32"));
  EXPECT_THAT(Infer("nn.bias_add", {T({2, 3}, DType::kBool), T({3}, DType::kBool)}), HasSubstr("data has dtype bool"));
  EXPECT_THAT(Infer("nn.prelu", {T({2, 3}), T({1, 3})}), HasSubstr("alpha has shape (1, 3), expected (3,)"));
  EXPECT_THAT(Infer("nn.prelu", {T({2, 3}, DType::kInt32), T({3}, DType::kInt32)}), HasSubstr("data has dtype int32"));
  EXPECT_THAT(Infer("where", {T({2}), T({2}), T({2})}), HasSubstr("condition has dtype float32, expected bool"));
  EXPECT_THAT(Infer("where", {T({2}, DType::kBool), T({2}), T({2}, DType::kInt8)}), HasSubstr("y has dtype int8, expected float32"));
  EXPECT_THAT(Infer("where", {T({3}, DType::kBool), T({2}), T({2})}), HasSubstr("do not broadcast"));
  EXPECT_THAT(Infer("broadcast_to", {T({3})}, {{"shape", Ints{3, 2}}}), HasSubstr("do not broadcast"));
  EXPECT_THAT(Infer("broadcast_to", {T({3})}, {{"shape", Ints{1}}}), HasSubstr("expected a shape that data of shape (3,) broadcasts to"));
  EXPECT_THAT(Infer("broadcast_to", {T({1})}, {{"shape", Ints{-2}}}), HasSubstr("expected extents of at least 0"));
  EXPECT_THAT(Infer("broadcast_to", {T({1})}, {{"shape", Ints{1 << 30, 1 << 30}}}), HasSubstr("expected at most 2^40 elements"));
}

using Formula = double (*)(double, double);

const std::vector<std::pair<const char*, Formula>> kArithmetic = {
    {"add", [](double a, double b) { return a + b; }},
    {"subtract", [](double a, double b) { return a - b; }},
    {"multiply", [](double a, double b) { return a * b; }},
    {"divide", [](double a, double b) { return a / b; }},
    {"maximum", [](double a, double b) { return std::max(a, b); }},
    {"minimum", [](double a, double b) { return std::min(a, b); }},
    {"power", [](double a, double b) { return std::exp(b * std::log(a)); }},
    {"floor_mod", [](double a, double b) { return a - b * std::floor(a / b); }},
};

const std::vector<std::pair<const char*, Formula>> kComparisons = {
    {"equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"not_equal", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
    {"greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"greater_equal", [](double a, double b) { return a < b ? 0.0 : 1.0; }},
    {"less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"less_equal", [](double a, double b) { return a > b ? 0.0 : 1.0; }},
};

const std::vector<std::pair<Shape, Shape>> kShapes = {
    {{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {4}}, {{2, 3, 4}, {3, 1}},    {{}, {3, 2}},     {{2, 1, 4}, {3, 1}},
    {{1}, {1, 1}},          {{}, {}},         {{3, 1, 2}, {1, 5, 1}}, {{2, 0}, {2, 1}}, {{2, 3, 1, 1}, {4, 5}}};

TEST(BroadcastTest, RepeatsBothOperandsAsNumPy) {
  for (const auto& [left, right] : kShapes) {
    Tensor a(T(left));
    Tensor b(T(right));
    FillRandom(a, 1, 0.5, 2.0);
    FillRandom(b, 2, 0.5, 2.0);
    Shape shape(std::max(left.size(), right.size()), 1);
    for (const Shape& operand : {left, right}) {
      for (size_t d = 0; d < operand.size(); ++d) {
        int64_t& extent = shape[shape.size() - operand.size() + d];
        if (operand[d] != 1) extent = operand[d];
      }
    }
    const Reader x(a);
    const Reader y(b);
    for (const auto& [name, formula] : kArithmetic) {
      ExpectTensor(Apply(name, {a, b}), T(shape),
                   [&, f = formula](const Index& o) { return f(x(Source(o, a.shape())), y(Source(o, b.shape()))); });
    }
  }
}

TEST(BroadcastTest, ComparisonsGiveBool) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kInt64, DType::kUInt16}) {
    const Tensor a = Random(T({40}, DType::kInt32), 1);
    const Tensor x = Apply("cast", {a}, {{"dtype", std::string(Name(dtype))}});
    const Tensor y = Apply("cast", {Random(T({5, 40}, DType::kInt32), 2)}, {{"dtype", std::string(Name(dtype))}});
    for (const auto& [name, formula] : kComparisons) {
      ExpectTensor(Apply(name, {x, y}), T({5, 40}, DType::kBool),
                   [f = formula, r = Reader(x), s = Reader(y)](const Index& o) { return f(r({o[1]}), s(o)); });
    }
  }
}

TEST(BroadcastTest, LogicalOperators) {
  const Tensor a = Make<bool>({4}, DType::kBool, {false, false, true, true});
  const Tensor b = Make<bool>({4}, DType::kBool, {false, true, false, true});
  EXPECT_THAT(Apply("logical_and", {a, b}).ToInt64(), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Apply("logical_or", {a, b}).ToInt64(), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Apply("equal", {a, b}).ToInt64(), ElementsAre(1, 0, 0, 1));
}

TEST(BroadcastTest, EdgesOfIntegers) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  const Tensor a = Int64s({6}, {7, -7, 7, -7, kLow, 5});
  const Tensor b = Int64s({6}, {2, 2, -2, -2, -1, 0});
  EXPECT_THAT(Apply("divide", {a, b}).ToInt64(), ElementsAre(3, -3, -3, 3, kLow, 0));
  EXPECT_THAT(Apply("floor_mod", {a, b}).ToInt64(), ElementsAre(1, 1, -1, -1, 0, 0));
  EXPECT_THAT(Apply("subtract", {a, Int64s({}, {1})}).ToInt64()[4], std::numeric_limits<int64_t>::max());
  EXPECT_THAT(Apply("power", {Int64s({5}, {2, -3, 2, -1, 0}), Int64s({5}, {10, 3, -1, -3, 0})}).ToInt64(),
              ElementsAre(1024, -27, 0, -1, 1));
  EXPECT_THAT(Apply("multiply", {Make<uint16_t>({1}, DType::kUInt16, {65535}), Make<uint16_t>({1}, DType::kUInt16, {65535})}).ToInt64(),
              ElementsAre(1));
}

TEST(BroadcastTest, EdgesOfFloatingPoint) {
  const Tensor a = Floats({3}, {NAN, 1, -5});
  const Tensor b = Floats({3}, {1, NAN, 3});
  for (const char* op : {"maximum", "minimum"}) {
    EXPECT_TRUE(std::isnan(Apply(op, {a, b}).ToDouble()[0])) << op;
    EXPECT_TRUE(std::isnan(Apply(op, {a, b}).ToDouble()[1])) << op;
  }
  EXPECT_EQ(Apply("floor_mod", {a, b}).ToDouble()[2], 1);
  EXPECT_EQ(Apply("divide", {Floats({1}, {1}), Floats({1}, {0})}).ToDouble()[0], std::numeric_limits<double>::infinity());
}

TEST(BroadcastTest, VectorsAlongAnAxis) {
  const Tensor data = Random(T({2, 3, 4}), 1);
  const Reader x(data);
  for (const int axis : {0, 1, 2, -1, -2}) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    const Tensor vector = Random(T({data.shape()[d]}), 2);
    const Reader v(vector);
    ExpectTensor(Apply("nn.bias_add", {data, vector}, {{"axis", axis}}), data.type(), [&](const Index& o) { return x(o) + v({o[d]}); });
    ExpectTensor(Apply("nn.prelu", {data, vector}, {{"axis", axis}}), data.type(),
                 [&](const Index& o) { return x(o) < 0 ? x(o) * v({o[d]}) : x(o); });
  }
}

TEST(BroadcastTest, WhereChoosesElements) {
  const Tensor condition = Random(T({3, 1}, DType::kBool), 3);
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kInt8, DType::kBool}) {
    const Tensor x = Random(T({4}, dtype), 1);
    const Tensor y = Random(T({2, 1, 1}, dtype), 2);
    ExpectTensor(Apply("where", {condition, x, y}), T({2, 3, 4}, dtype),
                 [c = Reader(condition), a = Reader(x), b = Reader(y)](const Index& o) {
                   return c({o[1], 0}) != 0 ? a({o[2]}) : b({o[0], 0, 0});
                 });
  }
}

TEST(BroadcastTest, BroadcastToRepeats) {
  const Tensor data = Random(T({3, 1}, DType::kInt16));
  ExpectTensor(Apply("broadcast_to", {data}, {{"shape", Ints{2, 3, 4}}}), T({2, 3, 4}, DType::kInt16), [x = Reader(data)](const Index& o) {
    return x({o[1], 0});
  });
}

}  // namespace
}  // namespace collage
