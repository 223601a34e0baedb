#include <cmath>

#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

/// Data as a model keeps it: any bytes, one scale, and a zero point that signed ones may do without.
struct Data {
  DType dtype = DType::kUInt8;
  int64_t zero_point = 0;
};

Expr Bytes(B& b, const Shape& shape, DType dtype) {
  return dtype == DType::kInt8 ? b.Input(shape, -128, 128, dtype) : b.Input(shape, 0, 256, dtype);
}

Expr Dequantised(const Expr& bytes, double scale, int64_t zero_point) {
  const DType dtype = bytes->type().AsTensor()->dtype;
  return B::Call("qnn.dequantize", {bytes, B::Scalar(scale), B::Scalar(static_cast<double>(zero_point), dtype)});
}

Expr Quantised(const Expr& numbers, double scale, const Data& as) {
  return B::Call("qnn.quantize", {numbers, B::Scalar(scale), B::Scalar(static_cast<double>(as.zero_point), as.dtype)});
}

/// Multiples of one step a channel, the first dimension.
Expr Weights(B& b, const Shape& shape) {
  const Expr whole = b.Constant(shape, -127, 128, DType::kFloat32);
  const float* numbers = whole->As<Constant>()->value.Data<float>();
  Tensor weights(TensorType{shape, DType::kFloat32});
  const int64_t inner = weights.ElementCount() / shape[0];
  for (int64_t i = 0; i < weights.ElementCount(); ++i) {
    const float step = 0.002F + 0.0007F * static_cast<float>(i / inner % 5);
    weights.MutableData<float>()[i] = std::floor(numbers[i]) * step;
  }
  return MakeConstant(weights);
}

constexpr double kDataScale = 0.02;

double ResultScale(int64_t terms) { return 0.01 * std::sqrt(static_cast<double>(terms)); }

struct Convolution {
  const char* name;
  Shape data;
  Shape weights;
  Attributes attributes;
};

void AddConvolutions(std::vector<ProgramCase>& cases) {
  const Attributes same{{"padding", Ints{1, 1, 1, 1}}};
  const Attributes grouped{{"padding", Ints{1, 0, 2, 1}}, {"groups", 4}};
  const Attributes depthwise{{"padding", Ints{1, 1, 1, 1}}, {"groups", 16}, {"strides", Ints{2, 2}}};
  const std::vector<Convolution> convolutions = {
      {"3x3", {1, 16, 9, 9}, {32, 16, 3, 3}, same},
      {"1x1", {2, 32, 6, 5}, {16, 32, 1, 1}, {}},
      {"first", {1, 3, 14, 14}, {8, 3, 3, 3}, {{"strides", Ints{2, 2}}, {"padding", Ints{0, 1, 2, 1}}}},
      {"odd", {1, 5, 7, 6}, {7, 5, 3, 2}, same},
      {"grouped", {1, 16, 8, 8}, {8, 4, 3, 3}, grouped},
      {"depthwise", {1, 16, 8, 8}, {16, 1, 3, 3}, depthwise}};
  for (const Convolution& c : convolutions) {
    for (const Data& data : {Data{DType::kUInt8, 0}, Data{DType::kUInt8, 119}, Data{DType::kInt8, 0}, Data{DType::kInt8, -7}}) {
      const int64_t terms = ElementCount(c.weights) / c.weights[0];
      const auto add = [&](const std::string& tail, const std::function<Expr(B&, const Expr&)>& extend) {
        const std::string name = std::string("int8_conv_") + c.name + (data.dtype == DType::kInt8 ? "_s8_" : "_u8_") +
                                 std::to_string(std::abs(data.zero_point)) + tail;
        cases.push_back({name, [=] {
                           B b;
                           const Expr numbers = Dequantised(Bytes(b, c.data, data.dtype), kDataScale, data.zero_point);
                           return b.Finish(extend(b, B::Call("nn.conv2d", {numbers, Weights(b, c.weights)}, c.attributes)));
                         }});
      };
      add("_bias_relu", [=](B& b, const Expr& x) { return Quantised(B::Relu(b.Bias(x)), ResultScale(terms), {DType::kUInt8, 3}); });
      if (c.name != std::string("3x3")) continue;
      add("", [=](B&, const Expr& x) { return Quantised(x, ResultScale(terms), data); });
      add("_float", [=](B& b, const Expr& x) { return b.Bias(x); });
    }
  }
}

void AddProducts(std::vector<ProgramCase>& cases) {
  for (const Data& data : {Data{DType::kUInt8, 128}, Data{DType::kInt8, 0}}) {
    const auto add = [&](const std::string& name, const Shape& shape, const std::function<Expr(B&, const Expr&)>& make) {
      cases.push_back({"int8_" + name + (data.dtype == DType::kInt8 ? "_s8" : "_u8"), [=] {
                         B b;
                         return b.Finish(make(b, Dequantised(Bytes(b, shape, data.dtype), kDataScale, data.zero_point)));
                       }});
    };
    const auto dense = [](B& b, const Expr& x, int64_t units) { return B::Call("nn.dense", {x, Weights(b, {units, ShapeOf(x).back()})}); };
    add("dense", {4, 64}, [=](B& b, const Expr& x) { return Quantised(dense(b, x, 16), ResultScale(64), data); });
    add("dense_one_row", {1, 100}, [=](B& b, const Expr& x) { return Quantised(b.Bias(dense(b, x, 10), -1), ResultScale(100), data); });
    add("dense_rank3_gelu", {2, 5, 32},
        [=](B& b, const Expr& x) { return Quantised(B::Gelu(b.Bias(dense(b, x, 24), -1)), ResultScale(32), data); });
    add("dense_residual", {6, 32}, [=](B& b, const Expr& x) { return B::Add(b.Bias(dense(b, x, 32), -1), b.Input({6, 32})); });
    add("matmul", {3, 7, 48}, [=](B& b, const Expr& x) {
      const Expr weights = B::Call("nn.matmul", {x, Weights(b, {33, 48})}, {{"transpose_b", true}});
      return Quantised(B::Relu(weights), ResultScale(48), data);
    });
  }
}

/// As QLinearConv, ConvInteger and MatMulInteger are read: 32-bit sums of bytes less their zero points.
void AddIntegerForms(std::vector<ProgramCase>& cases) {
  const auto less = [](const Expr& bytes, int64_t zero_point) {
    const Expr wide = B::Call("cast", {bytes}, {{"dtype", "int32"}});
    return zero_point == 0 ? wide : B::Call("subtract", {wide, B::Scalar(static_cast<double>(zero_point), DType::kInt32)});
  };
  const auto whole = [](B& b, const Shape& shape) { return b.Constant(shape, -127, 128, DType::kInt32); };
  const Attributes same{{"padding", Ints{1, 1, 1, 1}}};
  for (const int64_t zero_point : {0, 131}) {
    const std::string suffix = "_" + std::to_string(zero_point);
    cases.push_back({"qlinear_conv" + suffix, [=] {
                       B b;
                       const Expr x = less(Bytes(b, {1, 12, 9, 8}, DType::kUInt8), zero_point);
                       const Expr sums = B::Call("nn.conv2d", {x, whole(b, {20, 12, 3, 3})}, same);
                       const Expr biased = B::Call("nn.bias_add", {sums, b.Constant({20}, -5000, 5000, DType::kInt32)}, {{"axis", 1}});
                       const Expr real = B::Multiply(B::Call("cast", {biased}, {{"dtype", "float32"}}), b.Constant({20, 1, 1}, 1e-4, 3e-4));
                       return b.Finish(Quantised(real, 0.5, {DType::kUInt8, 100}));
                     }});
    cases.push_back({"conv_integer" + suffix, [=] {
                       B b;
                       const Expr x = less(Bytes(b, {1, 12, 9, 8}, DType::kUInt8), zero_point);
                       return b.Finish(B::Call("nn.conv2d", {x, whole(b, {20, 12, 3, 3})}, same));
                     }});
    cases.push_back({"qlinear_matmul" + suffix, [=] {
                       B b;
                       const Expr sums = B::Call("nn.matmul", {less(Bytes(b, {5, 40}, DType::kUInt8), zero_point), whole(b, {40, 24})});
                       const Expr real = B::Multiply(B::Call("cast", {sums}, {{"dtype", "float32"}}), B::Scalar(2e-4));
                       return b.Finish(Quantised(real, 0.4, {DType::kInt8, -3}));
                     }});
    cases.push_back({"matmul_integer" + suffix, [=] {
                       B b;
                       return b.Finish(B::Call("nn.matmul", {less(Bytes(b, {5, 40}, DType::kUInt8), zero_point), whole(b, {40, 24})}));
                     }});
  }
}

/// As attention has them: both matrices are computed. Queries by keys, whose product is scaled, and weights by values.
void AddProductsOfTwo(std::vector<ProgramCase>& cases) {
  struct Operands {
    const char* name;
    Data left;
    Data right;
  };
  const std::vector<Operands> all = {{"u8_s8", {DType::kUInt8, 0}, {DType::kInt8, 0}},
                                     {"u8_s8_zero_points", {DType::kUInt8, 131}, {DType::kInt8, -9}},
                                     {"s8_s8", {DType::kInt8, 0}, {DType::kInt8, 0}},
                                     {"s8_s8_zero_points", {DType::kInt8, 5}, {DType::kInt8, 17}},
                                     {"u8_u8", {DType::kUInt8, 0}, {DType::kUInt8, 0}},
                                     {"u8_u8_zero_points", {DType::kUInt8, 7}, {DType::kUInt8, 120}},
                                     {"u8_u8_last", {DType::kUInt8, 128}, {DType::kUInt8, 255}},
                                     {"s8_u8", {DType::kInt8, 0}, {DType::kUInt8, 128}}};
  const auto less = [](B& b, const Shape& shape, const Data& data) {
    const Expr wide = B::Call("cast", {Bytes(b, shape, data.dtype)}, {{"dtype", "int32"}});
    return data.zero_point == 0 ? wide : B::Call("subtract", {wide, B::Scalar(static_cast<double>(data.zero_point), DType::kInt32)});
  };
  for (const Operands& of : all) {
    const auto add = [&](const std::string& name, const std::function<Expr(B&)>& make) {
      cases.push_back({"int8_" + name + "_" + of.name, [=] {
                         B b;
                         return b.Finish(make(b));
                       }});
    };
    const auto numbers = [=](B& b, const Shape& shape, const Data& data) {
      return Dequantised(Bytes(b, shape, data.dtype), kDataScale, data.zero_point);
    };
    const auto scores = [=](B& b) {
      return B::Call("nn.matmul", {numbers(b, {2, 3, 17, 24}, of.left), numbers(b, {2, 3, 19, 24}, of.right)}, {{"transpose_b", true}});
    };
    add("scores", [=](B& b) { return Quantised(B::Multiply(scores(b), B::Scalar(0.204)), 0.1, {DType::kInt8, 3}); });
    add("scores_float", [=](B& b) { return B::Call("divide", {scores(b), B::Scalar(4.9)}); });
    add("values", [=](B& b) {
      const Expr product = B::Call("nn.matmul", {numbers(b, {2, 3, 17, 20}, of.left), numbers(b, {2, 3, 20, 24}, of.right)});
      return Quantised(product, ResultScale(20), {DType::kUInt8, 100});
    });
    add("matrices", [=](B& b) {
      const Expr product = B::Call("nn.matmul", {numbers(b, {5, 40}, of.left), numbers(b, {40, 24}, of.right)});
      return Quantised(product, ResultScale(40), {DType::kInt8, 0});
    });
    add("row_of_values", [=](B& b) {
      const Expr product = B::Call("nn.matmul", {numbers(b, {2, 3, 1, 20}, of.left), numbers(b, {1, 3, 20, 24}, of.right)});
      return Quantised(product, ResultScale(20), {DType::kUInt8, 100});
    });
    add("batch_matmul", [=](B& b) {
      return Quantised(B::Call("nn.batch_matmul", {numbers(b, {3, 5, 16}, of.left), numbers(b, {3, 7, 16}, of.right)}), ResultScale(16),
                       {DType::kInt8, 0});
    });
    add("matmul_integer_of_two", [=](B& b) {
      return B::Call("nn.matmul", {less(b, {4, 5, 40}, of.left), less(b, {4, 40, 24}, of.right)});
    });
    add("qlinear_matmul_of_two", [=](B& b) {
      const Expr sums = B::Call("nn.matmul", {less(b, {4, 5, 40}, of.left), less(b, {4, 40, 24}, of.right)});
      return Quantised(B::Multiply(B::Call("cast", {sums}, {{"dtype", "float32"}}), B::Scalar(2e-4)), 0.4, {DType::kInt8, -3});
    });
  }
}

/// Between products: sums of both sides of a residual connection, pools, and the ends of a model.
void AddGlue(std::vector<ProgramCase>& cases) {
  const Shape shape{1, 16, 6, 5};
  cases.push_back({"int8_residual_add", [=] {
                     B b;
                     const Expr x = Dequantised(Bytes(b, shape, DType::kUInt8), 0.02, 7);
                     const Expr y = Dequantised(Bytes(b, shape, DType::kUInt8), 0.03, 0);
                     return b.Finish(Quantised(B::Relu(B::Add(x, y)), 0.05, {DType::kUInt8, 0}));
                   }});
  cases.push_back({"int8_max_pool", [=] {
                     B b;
                     const Expr x = Dequantised(Bytes(b, shape, DType::kInt8), 0.02, 0);
                     const Expr pool = B::Call("nn.max_pool2d", {x}, {{"pool_size", Ints{2, 2}}, {"strides", Ints{2, 2}}});
                     return b.Finish(Quantised(pool, 0.02, {DType::kInt8, 0}));
                   }});
  cases.push_back({"quantize_by_channel", [=] {
                     B b;
                     const Expr zero = b.Constant({16}, -20, 20, DType::kInt8);
                     return b.Finish(B::Call("qnn.quantize", {b.Input(shape), b.Constant({16}, 0.005, 0.02), zero}, {{"axis", 1}}));
                   }});
  cases.push_back({"dequantize_by_channel", [=] {
                     B b;
                     const Expr zero = b.Constant({16}, 100, 200, DType::kUInt8);
                     const Expr bytes = Bytes(b, shape, DType::kUInt8);
                     return b.Finish(B::Call("qnn.dequantize", {bytes, b.Constant({16}, 0.005, 0.02), zero}, {{"axis", 1}}));
                   }});
}

}  // namespace

std::vector<ProgramCase> QuantisedCases() {
  std::vector<ProgramCase> cases;
  AddConvolutions(cases);
  AddProducts(cases);
  AddIntegerForms(cases);
  AddProductsOfTwo(cases);
  AddGlue(cases);
  return cases;
}

}  // namespace collage::conformance
