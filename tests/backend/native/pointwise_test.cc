#include <gtest/gtest.h>

#include <random>

#include "collage/backend/registry.h"
#include "collage/tensor/agreement.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)

TEST(NativePointwise, EveryUnaryOperator) {
  for (const char* op : {"abs", "negative", "exp", "erf", "sin", "cos", "ceil", "floor", "round", "sign", "tanh", "sigmoid", "nn.relu",
                         "copy", "nn.leaky_relu", "zeros_like", "ones_like"}) {
    SCOPED_TRACE(op);
    const Expr x = Parameter("x", {3, 5, 7});
    Attributes attributes;
    if (std::string(op) == "nn.leaky_relu") attributes.Set("alpha", 0.2);
    ExpectMatchesReference({x}, CallNamed(op, {x}, attributes), {.low = -6, .high = 6});
  }
  for (const char* op : {"log", "sqrt", "rsqrt"}) {
    SCOPED_TRACE(op);
    const Expr x = Parameter("x", {2, 33});
    ExpectMatchesReference({x}, CallNamed(op, {x}), {.low = 0.01, .high = 5});
  }
}

TEST(NativePointwise, TanhAndErfAreAccurateNearZero) {
  for (const char* op : {"tanh", "erf"}) {
    for (double range : {1e-5, 1e-2, 0.35, 20.0}) {
      const Expr x = Parameter("x", {1000});
      ExpectMatchesReference({x}, CallNamed(op, {x}), {.tolerance = 2e-6, .low = -range, .high = range});
    }
  }
}

TEST(NativePointwise, EveryBinaryOperatorBroadcasts) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3, 4}, {2, 3, 4}}, {{2, 5, 3, 7}, {5, 1, 1}}, {{17}, {1}},
                                                       {{4, 1, 6}, {3, 1}},    {{2, 16, 33}, {33}},       {{}, {3, 3}}};
  for (const char* op : {"add", "subtract", "multiply", "divide", "maximum", "minimum"}) {
    for (const auto& [left, right] : shapes) {
      SCOPED_TRACE(std::string(op) + ToString(left) + ToString(right));
      const Expr a = Parameter("a", left);
      const Expr b = Parameter("b", right);
      ExpectMatchesReference({a, b}, CallNamed(op, {a, b}), {.low = 0.5, .high = 3});
    }
  }
}

// By a rounded quotient it would be NaN for an infinite divisor, and anything for a quotient beyond 2^24.
TEST(NativePointwise, RemaindersOfFloatsAreDeclined) {
  const BackendRules rules = FindBackend("native", {}).value()->Rules();
  const auto takes = [&](DType dtype) {
    return rules.supports(CallNamed("floor_mod", {Parameter("a", {3}, dtype), Parameter("b", {3}, dtype)})).accepted;
  };
  EXPECT_FALSE(takes(DType::kFloat32));
  EXPECT_TRUE(takes(DType::kInt64));
}

TEST(NativePointwise, ComparisonsLogicAndWhere) {
  for (const char* op : {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"}) {
    SCOPED_TRACE(op);
    const Expr a = Parameter("a", {3, 19}, DType::kInt64);
    const Expr b = Parameter("b", {19}, DType::kInt64);
    const Expr x = Parameter("x", {3, 1});
    const Expr y = Parameter("y", {19});
    const Expr compared = CallNamed(op, {a, b});
    ExpectMatchesReference({a, b}, compared);
    ExpectMatchesReference({a, b, x, y}, CallNamed("where", {CallNamed("logical_not", {compared}), x, y}));
  }
  const Expr p = Parameter("p", {4, 6}, DType::kBool);
  const Expr q = Parameter("q", {6}, DType::kBool);
  ExpectMatchesReference({p, q}, CallNamed("logical_or", {CallNamed("logical_and", {p, q}), CallNamed("logical_not", {q})}));
}

TEST(NativePointwise, NaNComparesAsTheReference) {
  for (const char* op : {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"}) {
    SCOPED_TRACE(op);
    // Of a negative number it is NaN.
    const Expr x = Parameter("x", {3, 19});
    const Expr y = Parameter("y", {19});
    const Expr root = CallNamed("sqrt", {x});
    ExpectMatchesReference({x, y}, CallNamed(op, {root, y}));
    ExpectMatchesReference({x, y}, CallNamed(op, {y, root}));
    ExpectMatchesReference({x}, CallNamed(op, {root, root}));
    ExpectMatchesReference({x, y}, CallNamed("logical_not", {CallNamed(op, {root, y})}));
  }
}

TEST(NativePointwise, IntegersDivideAndRemainAsTheReference) {
  for (const char* op : {"divide", "floor_mod", "add", "multiply", "maximum"}) {
    for (DType dtype : {DType::kInt32, DType::kInt64}) {
      SCOPED_TRACE(op);
      const Expr a = Parameter("a", {50}, dtype);
      const Expr left = CallNamed("subtract", {a, ScalarConstant(4, dtype)});
      for (double divisor : {3.0, -3.0}) ExpectMatchesReference({a}, CallNamed(op, {left, ScalarConstant(divisor, dtype)}));
    }
  }
}

TEST(NativePointwise, PowersOfConstantsAndTensors) {
  const Expr x = Parameter("x", {40});
  for (double exponent : {2.0, 3.0, 0.5, -0.5, -1.0, 1.7})
    ExpectMatchesReference({x}, CallNamed("power", {x, ScalarConstant(exponent)}), {.low = 0.1, .high = 3});
  ExpectMatchesReference({x}, CallNamed("power", {x, ScalarConstant(2)}), {.low = -3, .high = 3});
  const Expr y = Parameter("y", {40});
  ExpectMatchesReference({x, y}, CallNamed("power", {x, y}), {.low = 0.1, .high = 3});
  ExpectMatchesReference({x}, CallNamed("power", {CallNamed("floor", {x}), ScalarConstant(4)}), {.low = -3, .high = 3});
}

TEST(NativePointwise, CastsBetweenTypes) {
  for (DType from : {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kBool, DType::kUInt8, DType::kFloat64}) {
    for (DType to : {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kBool, DType::kInt8, DType::kFloat64}) {
      SCOPED_TRACE(std::string(Name(from)) + " to " + std::string(Name(to)));
      const Expr x = Parameter("x", {37}, from);
      ExpectMatchesReference({x}, CallNamed("cast", {x}, {{"dtype", std::string(Name(to))}}), {.low = -9, .high = 9});
    }
  }
}

TEST(NativePointwise, ChannelwiseOperators) {
  const Expr x = Parameter("x", {2, 6, 5, 9});
  ExpectMatchesReference({x}, CallNamed("nn.bias_add", {x, RandomConstant({6}, 1)}, {{"axis", 1}}));
  ExpectMatchesReference({x}, CallNamed("nn.bias_add", {x, RandomConstant({9}, 1)}, {{"axis", -1}}));
  ExpectMatchesReference({x}, CallNamed("nn.prelu", {x, RandomConstant({6}, 2)}, {{"axis", 1}}));
  ExpectMatchesReference({x}, CallNamed("clip", {x}, {{"a_min", -0.5}, {"a_max", 0.75}}));
  const Expr normalised = CallNamed(
      "nn.batch_norm", {x, RandomConstant({6}, 3), RandomConstant({6}, 4), RandomConstant({6}, 5), RandomConstant({6}, 6, 0.5, 2)});
  ExpectMatchesReference({x}, *MakeTupleGetItem(normalised, 0));
  ExpectMatchesReference({x}, normalised);
}

TEST(NativePointwise, LargeEnoughForThreads) {
  const Expr x = Parameter("x", {3, 64, 41, 67});
  const Expr scaled = CallNamed("multiply", {x, RandomConstant({64, 1, 1}, 1)});
  ExpectMatchesReference({x}, CallNamed("tanh", {scaled}));
  const Expr y = Parameter("y", {300001});
  ExpectMatchesReference({y}, CallNamed("sigmoid", {CallNamed("add", {y, y})}));
}

TEST(NativePointwise, SharedOperandsDoNotMultiplyTheCode) {
  const Expr x = Parameter("x", {5, 77});
  Expr value = x;
  for (int i = 0; i < 120; ++i) value = CallNamed("multiply", {CallNamed("add", {value, value}), CallNamed("sigmoid", {value})});
  ExpectMatchesReference({x}, value, {.tolerance = 1e-3, .low = -0.1, .high = 0.1});
}

TEST(NativePointwise, LongChainsOfSelections) {
  const Expr x = Parameter("x", {5, 77});
  Expr value = x;
  for (int i = 0; i < 40; ++i) {
    value = CallNamed("nn.leaky_relu", {CallNamed("subtract", {value, ScalarConstant(0.01)})}, {{"alpha", 0.9}});
    value = CallNamed("where", {CallNamed("less", {value, ScalarConstant(0.5)}), value, CallNamed("tanh", {value})});
    value = CallNamed("maximum", {value, CallNamed("clip", {value}, {{"a_min", -0.5}, {"a_max", 1.0}})});
  }
  ExpectMatchesReference({x}, value);
}

TEST(NativePointwise, RandomChains) {
  const std::vector<std::string> unary = {"nn.relu", "sigmoid", "tanh", "abs", "negative", "erf", "floor", "cos"};
  const std::vector<std::string> binary = {"add", "subtract", "multiply", "maximum", "minimum"};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
    Shape shape;
    for (size_t i = 0, rank = 1 + pick(4); i < rank; ++i) shape.push_back(std::vector<int64_t>{1, 2, 3, 7, 16, 19}[pick(6)]);
    const auto broadcastable = [&] {
      Shape part(shape.begin() + static_cast<std::ptrdiff_t>(pick(shape.size())), shape.end());
      for (int64_t& extent : part) extent = pick(3) == 0 ? 1 : extent;
      return part;
    };
    std::vector<Expr> parameters = {Parameter("x", shape)};
    std::vector<Expr> values = {parameters[0]};
    for (size_t i = 0, length = 2 + pick(7); i < length; ++i) {
      const Expr left = values[values.size() - 1 - pick(std::min<size_t>(values.size(), 2))];
      if (pick(2) == 0) {
        values.push_back(CallNamed(unary[pick(unary.size())], {left}));
        continue;
      }
      Expr right = values[pick(values.size())];
      if (pick(2) == 0) {
        right = pick(2) == 0 ? RandomConstant(broadcastable(), seed) : Parameter("p" + std::to_string(i), broadcastable());
        if (right->As<Var>()) parameters.push_back(right);
      }
      values.push_back(CallNamed(binary[pick(binary.size())], {left, right}));
    }
    ExpectMatchesReference(parameters, values.back(), {.tolerance = kTolerance});
  }
}

TEST(NativePointwise, SeveralResultsAndPassedOnParameters) {
  const Expr x = Parameter("x", {4, 21});
  const Expr y = CallNamed("exp", {x});
  const Expr z = CallNamed("add", {y, ScalarConstant(1)});
  ExpectMatchesReference({x}, MakeTuple({z, y, x, z}));
}

}  // namespace
}  // namespace collage
