#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

Expr ConvRelu(B& b, const Expr& x, int64_t channels, int64_t kernel, const Attributes& attributes = {}) {
  return B::Relu(b.Bias(b.Conv2d(x, channels, kernel, attributes)));
}

Program ResidualBottleneck() {
  B b;
  const Expr x = b.Input({1, 32, 7, 7});
  const Expr inner = ConvRelu(b, ConvRelu(b, x, 8, 1), 8, 3);
  return b.Finish(B::Relu(B::Add(b.Bias(b.Conv2d(inner, 32, 1)), x)));
}

Program ResidualWithProjection() {
  B b;
  const Expr x = b.Input({1, 16, 8, 8});
  const Attributes stride2{{"strides", Ints{2, 2}}};
  const Expr inner = ConvRelu(b, ConvRelu(b, x, 8, 1), 8, 3, stride2);
  return b.Finish(B::Relu(B::Add(b.Bias(b.Conv2d(inner, 32, 1)), b.Bias(b.Conv2d(x, 32, 1, stride2)))));
}

Program InvertedResidual() {
  B b;
  const Expr x = b.Input({1, 8, 7, 7});
  const Attributes relu6{{"a_min", 0.0}, {"a_max", 6.0}};
  const Expr wide = B::Call("clip", {b.Bias(b.Conv2d(x, 48, 1))}, relu6);
  const Expr depthwise = B::Call("clip", {b.Bias(b.Conv2d(wide, 48, 3, {{"groups", 48}}))}, relu6);
  return b.Finish(B::Add(x, b.Bias(b.Conv2d(depthwise, 8, 1))));
}

Expr Depthwise(B& b, const Expr& x, int64_t kernel, int64_t stride) {
  const int64_t channels = ShapeOf(x)[1];
  return b.Bias(b.Conv2d(x, channels, kernel, {{"groups", channels}, {"strides", Ints{stride, stride}}}));
}

/// As MobileNet v3 and EfficientNet have them, of sizes that nothing divides.
Program DownsamplingInvertedResidual() {
  B b;
  const Expr x = b.Input({2, 20, 13, 11});
  const auto hard_swish = [](const Expr& y) {
    const Expr gate = B::Call("clip", {B::Add(y, B::Scalar(3))}, {{"a_min", 0.0}, {"a_max", 6.0}});
    return B::Multiply(y, B::Call("divide", {gate, B::Scalar(6)}));
  };
  const Expr wide = hard_swish(b.Bias(b.Conv2d(x, 72, 1)));
  return b.Finish(b.Bias(b.Conv2d(hard_swish(Depthwise(b, wide, 5, 2)), 33, 1)));
}

/// As MobileNet v1 has them.
Program SeparableConvolutions() {
  B b;
  const auto separable = [&](const Expr& x, int64_t channels, int64_t stride) {
    return B::Relu(b.Bias(b.Conv2d(B::Relu(Depthwise(b, x, 3, stride)), channels, 1)));
  };
  return b.Finish(separable(separable(b.Input({1, 16, 12, 12}), 32, 1), 48, 2));
}

/// The gate depends on what the depthwise convolution gives.
Program GatedInvertedResidual() {
  B b;
  const Expr x = b.Input({1, 16, 9, 9});
  const auto silu = [](const Expr& y) { return B::Multiply(y, B::Call("sigmoid", {y})); };
  const Expr inner = silu(Depthwise(b, silu(b.Bias(b.Conv2d(x, 64, 1))), 3, 1));
  const Expr squeezed = silu(b.Bias(b.Conv2d(B::Call("nn.global_avg_pool2d", {inner}), 4, 1)));
  const Expr gate = B::Call("sigmoid", {b.Bias(b.Conv2d(squeezed, 64, 1))});
  return b.Finish(B::Add(b.Bias(b.Conv2d(B::Multiply(inner, gate), 16, 1)), x));
}

Program PointwiseLayers() {
  B b;
  const Expr x = b.Input({1, 16, 10, 9});
  return b.Finish(B::Add(b.Bias(b.Conv2d(ConvRelu(b, x, 64, 1), 16, 1)), x));
}

Program Inception() {
  B b;
  const Expr x = b.Input({1, 16, 7, 7});
  const Attributes same{{"pool_size", Ints{3, 3}}, {"padding", Ints{1, 1, 1, 1}}};
  const Expr pooled = B::Call("nn.max_pool2d", {x}, same);
  const std::vector<Expr> branches = {ConvRelu(b, x, 8, 1), ConvRelu(b, ConvRelu(b, x, 8, 1), 16, 3),
                                      ConvRelu(b, ConvRelu(b, x, 4, 1), 8, 5), ConvRelu(b, pooled, 8, 1)};
  return b.Finish(B::Call("concatenate", {MakeTuple(branches)}, {{"axis", 1}}));
}

Program Fire() {
  B b;
  const Expr squeezed = ConvRelu(b, b.Input({1, 16, 7, 7}), 4, 1);
  return b.Finish(B::Call("concatenate", {MakeTuple({ConvRelu(b, squeezed, 8, 1), ConvRelu(b, squeezed, 8, 3)})}, {{"axis", 1}}));
}

/// Layers with room for nothing between them; the second and the third share their weights.
Program TiedLayers() {
  B b;
  const Expr weight = b.Weight({16, 16}, 16);
  const Expr bias = b.Constant({16}, -1, 1);
  const auto tied = [&](const Expr& data) { return B::Relu(B::Add(B::Call("nn.dense", {data, weight}), bias)); };
  return b.Finish(b.Dense(tied(tied(B::Relu(b.Bias(b.Dense(b.Input({5, 8}), 16), -1)))), 4));
}

/// What leaves is also used inside.
Program SeveralExits() {
  B b;
  const Expr fine = ConvRelu(b, ConvRelu(b, b.Input({1, 3, 12, 12}), 20, 3), 20, 3);
  const Expr coarse = B::Call("nn.max_pool2d", {fine}, {{"pool_size", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  return b.Finish(MakeTuple({fine, ConvRelu(b, coarse, 8, 1), coarse}));
}

Program DenseLayer() {
  B b;
  const Expr x = b.Input({1, 12, 6, 6});
  const auto normalised = [&](const Expr& data) {
    const int64_t channels = ShapeOf(data)[1];
    return B::Relu(B::Add(B::Multiply(data, b.Constant({channels, 1, 1}, 0.5, 1.5)), b.Constant({channels, 1, 1}, -1, 1)));
  };
  const Expr grown = b.Conv2d(normalised(b.Conv2d(normalised(x), 16, 1)), 4, 3);
  return b.Finish(B::Call("concatenate", {MakeTuple({x, grown})}, {{"axis", 1}}));
}

Program SqueezeExcite() {
  B b;
  const Expr x = b.Input({1, 16, 6, 6});
  const Expr pooled = B::Call("nn.global_avg_pool2d", {x});
  const Expr gate = B::Call("sigmoid", {b.Bias(b.Conv2d(ConvRelu(b, pooled, 4, 1), 16, 1))});
  return b.Finish(B::Multiply(x, gate));
}

/// 2 heads of 8 over 6 positions.
Program Attention() {
  B b;
  const Expr x = b.Input({1, 6, 16});
  const auto heads = [&](const Ints& axes) {
    const Expr projected = B::Add(B::Call("nn.matmul", {x, b.Weight({16, 16}, 16)}), b.Constant({16}, -1, 1));
    return B::Call("transpose", {B::Call("reshape", {projected}, {{"newshape", Ints{1, 6, 2, 8}}})}, {{"axes", axes}});
  };
  const Expr scores = B::Call("nn.matmul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})});
  const Expr masked = B::Add(B::Call("divide", {scores, B::Scalar(2.8284271247)}), b.Input({1, 1, 1, 6}));
  const Expr values = B::Call("nn.matmul", {B::Call("nn.softmax", {masked}), heads({0, 2, 1, 3})});
  const Expr joined = B::Call("reshape", {B::Call("transpose", {values}, {{"axes", Ints{0, 2, 1, 3}}})}, {{"newshape", Ints{1, 6, 16}}});
  return b.Finish(b.LayerNorm(B::Add(x, b.Bias(b.Dense(joined, 16), -1))));
}

Program FeedForward() {
  B b;
  const Expr x = b.Input({1, 6, 16});
  const Expr wide = B::Gelu(b.Bias(b.Dense(x, 64), -1));
  return b.Finish(b.LayerNorm(B::Add(b.Bias(b.Dense(wide, 16), -1), x)));
}

Program Mnist() {
  B b;
  const Attributes pool{{"pool_size", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const auto stage = [&](const Expr& x, int64_t channels) {
    const Expr conv = b.Conv2d(x, channels, 5);
    return B::Call("nn.max_pool2d", {B::Relu(B::Add(conv, b.Constant({channels, 1, 1}, -1, 1)))}, pool);
  };
  const Expr features = stage(stage(b.Input({1, 1, 28, 28}), 8), 16);
  const Expr flat = B::Call("reshape", {features}, {{"newshape", Ints{1, 784}}});
  return b.Finish(B::Add(b.Dense(flat, 10), b.Constant({1, 10}, -1, 1)));
}

Program Generator() {
  B b;
  const Expr seed = b.Input({1, 32, 1, 1});
  const Attributes doubling{{"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}};
  const Expr first = B::Relu(b.Bias(B::Call("nn.conv2d_transpose", {seed, b.Weight({32, 16, 4, 4}, 32)})));
  const Expr second = B::Relu(b.Bias(B::Call("nn.conv2d_transpose", {first, b.Weight({16, 8, 4, 4}, 64)}, doubling)));
  return b.Finish(B::Call("tanh", {B::Call("nn.conv2d_transpose", {second, b.Weight({8, 3, 4, 4}, 32)}, doubling)}));
}

/// What stays when everything that computes has gone elsewhere: parameters and constants as results.
Program PassThrough() {
  B b;
  const Expr x = b.Input({2, 3});
  const Expr y = b.Input({4});
  return b.Finish(MakeTuple({B::Call("nn.relu", {x}), y, x}));
}

}  // namespace

std::vector<ProgramCase> BlockCases() {
  return {
      {"residual_bottleneck", ResidualBottleneck},
      {"residual_with_projection", ResidualWithProjection},
      {"inverted_residual", InvertedResidual},
      {"downsampling_inverted_residual", DownsamplingInvertedResidual},
      {"gated_inverted_residual", GatedInvertedResidual},
      {"separable_convolutions", SeparableConvolutions},
      {"pointwise_layers", PointwiseLayers},
      {"inception", Inception},
      {"fire", Fire},
      {"tied_layers", TiedLayers},
      {"several_exits", SeveralExits},
      {"dense_layer", DenseLayer},
      {"squeeze_excite", SqueezeExcite},
      {"attention", Attention},
      {"feed_forward", FeedForward},
      {"mnist", Mnist},
      {"generator", Generator},
      {"pass_through", PassThrough},
      {"same_result_twice",
       [] {
         B b;
         const Expr y = B::Relu(b.Input({3, 5}));
         return b.Finish(MakeTuple({y, y}));
       }},
      {"unused_parameter",
       [] {
         B b;
         const Expr x = b.Input({3, 5});
         b.Input({7});
         return b.Finish(B::Relu(x));
       }},
  };
}

}  // namespace collage::conformance
