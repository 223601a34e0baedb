#include <cmath>
#include <limits>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ElementwiseTest, KeepsTheType) {
  for (const char* op : {"nn.relu", "abs", "negative", "sign"}) {
    EXPECT_EQ(Infer(op, {T({2, 3}, DType::kInt8)}), "Tensor[(2, 3), int8]") << op;
    EXPECT_THAT(Infer(op, {T({2, 3}, DType::kBool)}), HasSubstr("data has dtype bool, expected a floating point or integer type")) << op;
    EXPECT_EQ(Infer(op, {T({2, 3}, DType::kBFloat16)}), "Tensor[(2, 3), bfloat16]") << op;
  }
  for (const char* op :
       {"nn.leaky_relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "erf", "sin", "cos", "ceil", "floor", "round"}) {
    EXPECT_EQ(Infer(op, {T({}, DType::kFloat64)}), "float64") << op;
    EXPECT_THAT(Infer(op, {T({2, 3}, DType::kInt32)}), HasSubstr("data has dtype int32, expected a floating point type")) << op;
    EXPECT_THAT(Infer(op, {TupleType{}}), HasSubstr("expected a tensor")) << op;
  }
  EXPECT_EQ(Infer("logical_not", {T({2}, DType::kBool)}), "Tensor[(2,), bool]");
  EXPECT_THAT(Infer("logical_not", {T({2})}), HasSubstr("data has dtype float32, expected bool"));
  EXPECT_EQ(Infer("clip", {T({2})}, {{"a_min", 0.0}, {"a_max", 6}}), "Tensor[(2,), float32]");
}

TEST(ElementwiseTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("clip", {T({2})}, {{"a_min", 0.0}}), HasSubstr("attribute 'a_max' is missing"));
  EXPECT_THAT(Infer("clip", {T({2})}, {{"a_min", 1.0}, {"a_max", 0.0}}), HasSubstr("attribute 'a_min' is 1f, expected at most 'a_max'"));
  EXPECT_THAT(Infer("nn.leaky_relu", {T({2})}, {{"alpha", "0.1"}}), HasSubstr("attribute 'alpha' is \"0.1\", expected a number"));
  EXPECT_THAT(Infer("exp", {}), HasSubstr("has 0 arguments, expected 1"));
}

TEST(ElementwiseTest, FunctionsOfFloatingPoint) {
  const std::vector<std::pair<const char*, double (*)(double)>> functions = {
      {"sigmoid", [](double x) { return std::exp(x) / (std::exp(x) + 1); }},
      {"tanh", [](double x) { return (std::exp(2 * x) - 1) / (std::exp(2 * x) + 1); }},
      {"exp", [](double x) { return std::exp2(x / std::log(2.0)); }},
      {"log", [](double x) { return std::log2(x) * std::log(2.0); }},
      {"sqrt", [](double x) { return std::pow(x, 0.5); }},
      {"rsqrt", [](double x) { return std::pow(x, -0.5); }},
      {"erf", [](double x) { return 1 - std::erfc(x); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"ceil", [](double x) { return -std::floor(-x); }},
      {"floor", [](double x) { return -std::ceil(-x); }},
  };
  for (const auto& [name, function] : functions) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      Tensor data(T({3, 5}, dtype));
      FillRandom(data, 7, 0.1, 3.0);
      ExpectTensor(
          Apply(name, {data}), data.type(), [x = Reader(data), f = function](const Index& o) { return f(x(o)); },
          dtype == DType::kFloat32 ? 1e-7 : 1e-15);
    }
  }
}

TEST(ElementwiseTest, EdgesOfFloatingPoint) {
  EXPECT_THAT(Apply("round", {Floats({6}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.4f})}).ToDouble(), ElementsAre(0, 2, 2, 0, -2, 2));
  EXPECT_THAT(Apply("sigmoid", {Floats({2}, {-1000, 1000})}).ToDouble(), ElementsAre(0, 1));
  EXPECT_THAT(Apply("nn.relu", {Floats({3}, {-1, 0, kInfinity})}).ToDouble(), ElementsAre(0, 0, kInfinity));
  EXPECT_TRUE(std::isnan(Apply("nn.relu", {Floats({1}, {NAN})}).ToDouble()[0]));
  EXPECT_THAT(Apply("sign", {Floats({3}, {-3, 0, 0.1f})}).ToDouble(), ElementsAre(-1, 0, 1));
  EXPECT_THAT(Apply("abs", {Floats({2}, {-3, 2})}).ToDouble(), ElementsAre(3, 2));
  EXPECT_THAT(Apply("negative", {Floats({2}, {-3, 2})}).ToDouble(), ElementsAre(3, -2));
}

TEST(ElementwiseTest, PiecewiseLinearFunctions) {
  EXPECT_THAT(Apply("nn.leaky_relu", {Floats({3}, {-2, 0, 3})}, {{"alpha", 0.25}}).ToDouble(), ElementsAre(-0.5, 0, 3));
  EXPECT_FLOAT_EQ(Apply("nn.leaky_relu", {Floats({1}, {-1})}).Values<float>()[0], -0.01f);
  EXPECT_THAT(Apply("clip", {Floats({4}, {-2, 0.5, 3, 7})}, {{"a_min", 0.0}, {"a_max", 6.0}}).ToDouble(), ElementsAre(0, 0.5, 3, 6));
  EXPECT_THAT(Apply("clip", {Make<uint8_t>({3}, DType::kUInt8, {0, 9, 255})}, {{"a_min", -5.0}, {"a_max", 1e9}}).ToInt64(),
              ElementsAre(0, 9, 255));
}

TEST(ElementwiseTest, IntegersWrapAround) {
  const Tensor data = Make<int8_t>({3}, DType::kInt8, {-128, -1, 5});
  EXPECT_THAT(Apply("abs", {data}).ToInt64(), ElementsAre(-128, 1, 5));
  EXPECT_THAT(Apply("negative", {data}).ToInt64(), ElementsAre(-128, 1, -5));
  EXPECT_THAT(Apply("sign", {data}).ToInt64(), ElementsAre(-1, -1, 1));
  EXPECT_THAT(Apply("nn.relu", {data}).ToInt64(), ElementsAre(0, 0, 5));
  EXPECT_THAT(Apply("negative", {Make<uint32_t>({1}, DType::kUInt32, {1})}).ToInt64(), ElementsAre(4294967295));
}

TEST(ElementwiseTest, LogicalNot) {
  const Tensor data = Tensor::Scalar(true, DType::kBool);
  EXPECT_THAT(Apply("logical_not", {data}).ToInt64(), ElementsAre(0));
}

TEST(CastTest, InfersTheType) {
  EXPECT_EQ(Infer("cast", {T({2})}, {{"dtype", "bool"}}), "Tensor[(2,), bool]");
  EXPECT_EQ(Infer("cast", {T({2}, DType::kFloat16)}, {{"dtype", "bfloat16"}}), "Tensor[(2,), bfloat16]");
  EXPECT_THAT(Infer("cast", {T({2})}), HasSubstr("attribute 'dtype' is missing"));
  EXPECT_THAT(Infer("cast", {T({2})}, {{"dtype", "float"}}), HasSubstr("attribute 'dtype' is \"float\", expected the name of a dtype"));
}

TEST(CastTest, ConvertsBetweenNumbers) {
  const Tensor data = Floats({7}, {-1.9f, 1.9f, 0, 300, -kInfinity, kInfinity, NAN});
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "int8"}}).ToInt64(), ElementsAre(-1, 1, 0, 127, -128, 127, 0));
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "uint8"}}).ToInt64(), ElementsAre(0, 1, 0, 255, 0, 255, 0));
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "bool"}}).ToInt64(), ElementsAre(1, 1, 0, 1, 1, 1, 1));
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "int64"}}).ToInt64()[5], std::numeric_limits<int64_t>::max());
  EXPECT_THAT(Apply("cast", {Int64s({2}, {258, -1})}, {{"dtype", "uint8"}}).ToInt64(), ElementsAre(2, 255));
  EXPECT_THAT(Apply("cast", {Int64s({2}, {3, -1})}, {{"dtype", "float64"}}).ToDouble(), ElementsAre(3, -1));
}

// ToDouble of tensor/ is the independent reading of the 16-bit formats.
TEST(CastTest, RoundsToSixteenBitFormats) {
  const Tensor data = Floats({8}, {1, -2.5f, 65504, 65520, 1e-7f, 6e-8f, 2049, 2051});
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "float16"}}).ToDouble(),
              ElementsAre(1, -2.5, 65504, kInfinity, std::ldexp(2, -24), std::ldexp(1, -24), 2048, 2052));
  EXPECT_THAT(Apply("cast", {Floats({4}, {1, 257, 259, kInfinity})}, {{"dtype", "bfloat16"}}).ToDouble(),
              ElementsAre(1, 256, 260, kInfinity));
  const Tensor half = Apply("cast", {Floats({2}, {0.5, NAN})}, {{"dtype", "float16"}});
  const std::vector<double> back = Apply("cast", {half}, {{"dtype", "float32"}}).ToDouble();
  EXPECT_EQ(back[0], 0.5);
  EXPECT_TRUE(std::isnan(back[1]));
}

TEST(CastTest, RoundsToFormatsOfLessBits) {
  const Tensor data = Floats({4}, {0.3f, -20, 1000, 17});
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "float8_e4m3fn"}}).ToDouble(), ElementsAre(0.3125, -20, 448, 16));
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "float8_e5m2"}, {"saturate", false}}).ToDouble(), ElementsAre(0.3125, -20, 1024, 16));
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "int4"}}).ToInt64(), ElementsAre(0, -4, -8, 1));
  EXPECT_THAT(Apply("cast", {data}, {{"dtype", "uint2"}}).ToInt64(), ElementsAre(0, 0, 0, 1));
  const Tensor powers = Apply("cast", {Floats({2}, {5, 3})}, {{"dtype", "float8_e8m0fnu"}, {"round_mode", "down"}});
  EXPECT_THAT(powers.ToDouble(), ElementsAre(4, 2));
  EXPECT_THAT(Apply("cast", {Apply("cast", {data}, {{"dtype", "int4"}})}, {{"dtype", "float32"}}).ToDouble(), ElementsAre(0, -4, -8, 1));
  EXPECT_THAT(Infer("cast", {T({1})}, {{"dtype", "float32"}, {"round_mode", "odd"}}), HasSubstr("attribute 'round_mode' is \"odd\""));
}

TEST(CastTest, EveryFloat16SurvivesARoundTrip) {
  Tensor all(T({65536}, DType::kFloat16));
  for (int i = 0; i < 65536; ++i) all.MutableData<uint16_t>()[i] = static_cast<uint16_t>(i);
  const Tensor wide = Apply("cast", {all}, {{"dtype", "float32"}});
  const Tensor back = Apply("cast", {wide}, {{"dtype", "float16"}});
  for (int i = 0; i < 65536; ++i) {
    if (std::isnan(wide.Data<float>()[i])) continue;
    ASSERT_EQ(back.Data<uint16_t>()[i], i);
  }
}

}  // namespace
}  // namespace collage
