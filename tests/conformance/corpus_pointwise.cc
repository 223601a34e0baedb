#include <limits>

#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

/// Unary operators over the values on which each is defined.
void AddUnary(std::vector<ProgramCase>& cases) {
  struct Unary {
    const char* op;
    double low;
    double high;
    Attributes attributes;
  };
  const std::vector<Unary> operators = {
      {"nn.relu", -2, 2, {}},
      {"nn.leaky_relu", -2, 2, {{"alpha", 0.2}}},
      {"sigmoid", -6, 6, {}},
      {"tanh", -4, 4, {}},
      {"exp", -4, 4, {}},
      {"log", 0.1, 8, {}},
      {"sqrt", 0, 8, {}},
      {"rsqrt", 0.1, 8, {}},
      {"erf", -3, 3, {}},
      {"abs", -2, 2, {}},
      {"negative", -2, 2, {}},
      {"ceil", -4, 4, {}},
      {"floor", -4, 4, {}},
      {"round", -4, 4, {}},
      {"sign", -2, 2, {}},
      {"sin", -3, 3, {}},
      {"cos", -3, 3, {}},
      {"copy", -2, 2, {}},
      {"clip", -3, 3, {{"a_min", -1.0}, {"a_max", 0.5}}},
      {"zeros_like", -2, 2, {}},
      {"ones_like", -2, 2, {}},
  };
  for (const Unary& unary : operators) {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{37}}) {
      cases.push_back({std::string(unary.op) + "_rank" + std::to_string(shape.size()), [=] {
                         B b;
                         return b.Finish(B::Call(unary.op, {b.Input(shape, unary.low, unary.high)}, unary.attributes));
                       }});
    }
  }
}

/// Binary operators in the ways in which shapes meet.
void AddBinary(std::vector<ProgramCase>& cases) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3, 4, 5}, {2, 3, 4, 5}}, {{2, 3, 4, 5}, {3, 1, 1}}, {{5}, {2, 3, 5}}, {{4, 1, 5}, {1, 3, 1}}, {{2, 6}, {}}};
  for (const char* op : {"add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "floor_mod"}) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      cases.push_back({std::string(op) + "_shapes" + std::to_string(i), [=] {
                         B b;
                         const Expr left = b.Input(shapes[i].first, 0.25, 4);
                         return b.Finish(B::Call(op, {left, b.Input(shapes[i].second, 0.5, 3)}));
                       }});
    }
  }
}

void AddComparisons(std::vector<ProgramCase>& cases) {
  for (const char* op : {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"}) {
    cases.push_back({std::string(op) + "_where", [=] {
                       B b;
                       const Expr x = b.Input({4, 6});
                       const Expr y = b.Input({6});
                       return b.Finish(B::Call("where", {B::Call(op, {x, y}), x, B::Multiply(y, B::Scalar(2))}));
                     }});
    cases.push_back({std::string(op) + "_result", [=] {
                       B b;
                       const Expr x = b.Input({4, 6}, 0, 4, DType::kInt64);
                       return b.Finish(B::Call(op, {x, b.Input({6}, 0, 4, DType::kInt64)}));
                     }});
  }
  for (const char* op : {"logical_and", "logical_or"}) {
    cases.push_back({op, [=] {
                       B b;
                       const Expr x = b.Input({4, 6}, 0, 1, DType::kBool);
                       return b.Finish(B::Call(op, {x, b.Input({6}, 0, 1, DType::kBool)}));
                     }});
  }
  cases.push_back({"logical_not", [] {
                     B b;
                     return b.Finish(B::Call("logical_not", {b.Input({9}, 0, 1, DType::kBool)}));
                   }});
  cases.push_back({"where_mask", [] {
                     B b;
                     const Expr mask = b.Input({1, 1, 6, 6}, 0, 1, DType::kBool);
                     return b.Finish(B::Call("where", {mask, b.Input({1, 3, 6, 6}), B::Scalar(-10000)}));
                   }});
}

/// What attention does where a row may be masked as a whole: such a row is zero.
void AddInfiniteMasks(std::vector<ProgramCase>& cases) {
  const auto infinity = [] { return B::Scalar(-std::numeric_limits<double>::infinity()); };
  cases.push_back({"infinite_mask_added", [=] {
                     B b;
                     const Expr mask = b.Input({4, 8}, 0, 1, DType::kBool);
                     const Expr added = B::Add(B::Call("where", {mask, B::Scalar(0), infinity()}), b.Input({4, 8}));
                     return b.Finish(B::Call("where", {B::Call("equal", {added, infinity()}), B::Scalar(2), added}));
                   }});
  cases.push_back({"infinite_mask_softmax", [=] {
                     B b;
                     const Expr mask = b.Input({16, 3}, 0, 1, DType::kBool);
                     const Expr scores = B::Call("where", {mask, b.Input({16, 3}), infinity()});
                     const Expr largest = B::Call("max", {scores}, {{"axis", std::vector<int64_t>{-1}}, {"keepdims", true}});
                     const Expr is_masked = B::Call("equal", {largest, infinity()});
                     return b.Finish(B::Call("where", {is_masked, B::Scalar(0), B::Call("nn.softmax", {scores}, {{"axis", -1}})}));
                   }});
}

void AddCasts(std::vector<ProgramCase>& cases) {
  const auto add = [&](const char* name, DType from, const char* to) {
    cases.push_back({name, [=] {
                       B b;
                       return b.Finish(B::Call("cast", {b.Input({3, 5}, 0, 100, from)}, {{"dtype", to}}));
                     }});
  };
  add("cast_float_to_int64", DType::kFloat32, "int64");
  add("cast_int64_to_float", DType::kInt64, "float32");
  add("cast_int32_to_float", DType::kInt32, "float32");
  add("cast_int64_to_int32", DType::kInt64, "int32");
  add("cast_bool_to_float", DType::kBool, "float32");
}

void AddChains(std::vector<ProgramCase>& cases) {
  const auto add = [&](const char* name, const Shape& shape, std::function<Expr(B&, const Expr&)> body) {
    cases.push_back({name, [=] {
                       B b;
                       const Expr x = b.Input(shape, -2, 2);
                       return b.Finish(body(b, x));
                     }});
  };
  add("gelu_decomposed", {4, 33}, [](B&, const Expr& x) { return B::Gelu(x); });
  add("gelu_tanh_decomposed", {4, 33}, [](B&, const Expr& x) {
    const Expr cubic = B::Multiply(B::Call("power", {x, B::Scalar(3)}), B::Scalar(0.044715));
    const Expr inner = B::Multiply(B::Add(x, cubic), B::Scalar(0.7978845608));
    return B::Multiply(B::Multiply(x, B::Scalar(0.5)), B::Add(B::Call("tanh", {inner}), B::Scalar(1)));
  });
  add("swish", {1, 8, 5, 5}, [](B&, const Expr& x) { return B::Multiply(x, B::Call("sigmoid", {x})); });
  add("hard_swish", {1, 8, 5, 5}, [](B&, const Expr& x) {
    const Expr gate = B::Call("clip", {B::Add(x, B::Scalar(3))}, {{"a_min", 0.0}, {"a_max", 6.0}});
    return B::Call("divide", {B::Multiply(x, gate), B::Scalar(6)});
  });
  add("exp_then_binary", {3, 7}, [](B& b, const Expr& x) {
    const Expr scaled = B::Multiply(B::Call("subtract", {B::Call("exp", {x}), B::Scalar(1)}), B::Scalar(2));
    return B::Add(b.Input({3, 7}), scaled);
  });
  add("bias_relu", {2, 8, 5, 5}, [](B& b, const Expr& x) { return B::Relu(b.Bias(x)); });
  add("bias_last_axis_tanh", {6, 9}, [](B& b, const Expr& x) { return B::Call("tanh", {b.Bias(x, -1)}); });
  add("scale_shift_relu", {2, 8, 5, 5}, [](B& b, const Expr& x) {
    return B::Relu(B::Add(B::Multiply(x, b.Constant({8, 1, 1}, 0.5, 1.5)), b.Constant({8, 1, 1}, -1, 1)));
  });
  add("add_relu", {1, 8, 6, 6}, [](B& b, const Expr& x) { return B::Relu(B::Add(x, b.Input({1, 8, 6, 6}))); });
  add("prelu", {2, 8, 3, 3}, [](B& b, const Expr& x) { return B::Call("nn.prelu", {x, b.Constant({8}, 0, 0.5)}); });
  add("long_chain", {3, 40}, [](B& b, const Expr& x) {
    Expr y = x;
    for (int i = 0; i < 12; ++i) y = B::Call("tanh", {B::Add(B::Multiply(y, b.Constant({40}, 0.8, 1.2)), B::Scalar(0.1 * i))});
    return y;
  });
  add("two_results", {4, 9}, [](B&, const Expr& x) {
    const Expr e = B::Call("exp", {x});
    return MakeTuple({e, B::Add(e, B::Scalar(1))});
  });
}

}  // namespace

std::vector<ProgramCase> PointwiseCases() {
  std::vector<ProgramCase> cases;
  AddUnary(cases);
  AddBinary(cases);
  AddComparisons(cases);
  AddInfiniteMasks(cases);
  AddCasts(cases);
  AddChains(cases);
  return cases;
}

}  // namespace collage::conformance
