#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

struct Convolution {
  const char* name;
  Shape data;
  int64_t channels;
  int64_t kernel;
  Attributes attributes;
};

/// One convolution, bare and with each of the tails that models give it.
void AddWithTails(std::vector<ProgramCase>& cases, const Convolution& c) {
  const auto add = [&](const std::string& tail, const std::function<Expr(B&, const Expr&)>& extend) {
    cases.push_back({std::string(c.name) + tail, [c, extend] {
                       B b;
                       const Expr data = b.Input(c.data);
                       return b.Finish(extend(b, b.Conv2d(data, c.channels, c.kernel, c.attributes)));
                     }});
  };
  add("", [](B&, const Expr& x) { return x; });
  add("_bias", [](B& b, const Expr& x) { return b.Bias(x); });
  add("_bias_relu", [](B& b, const Expr& x) { return B::Relu(b.Bias(x)); });
}

Program ConvolutionWithTail(const std::function<Expr(B&, const Expr&)>& extend) {
  B b;
  const Expr data = b.Input({1, 16, 9, 9});
  return b.Finish(extend(b, b.Bias(b.Conv2d(data, 16, 3))));
}

void AddTails(std::vector<ProgramCase>& cases) {
  const auto add = [&](const char* name, std::function<Expr(B&, const Expr&)> extend) {
    cases.push_back({name, [extend] { return ConvolutionWithTail(extend); }});
  };
  const Shape out{1, 16, 9, 9};
  add("conv_bias_residual", [=](B& b, const Expr& x) { return B::Add(x, b.Input(out)); });
  add("conv_bias_residual_left_relu", [=](B& b, const Expr& x) { return B::Relu(B::Add(b.Input(out), x)); });
  add("conv_bias_relu_residual", [=](B& b, const Expr& x) { return B::Add(B::Relu(x), b.Input(out)); });
  add("conv_bias_add_broadcast_channel", [](B& b, const Expr& x) { return B::Add(x, b.Input({1, 16, 1, 1})); });
  add("conv_bias_added_to_itself", [](B&, const Expr& x) { return B::Add(x, x); });
  add("conv_bias_relu_twice_used", [](B&, const Expr& x) {
    const Expr relu = B::Relu(x);
    return MakeTuple({relu, B::Call("sigmoid", {relu})});
  });
  add("conv_bias_sigmoid", [](B&, const Expr& x) { return B::Call("sigmoid", {x}); });
  add("conv_bias_tanh", [](B&, const Expr& x) { return B::Call("tanh", {x}); });
  add("conv_bias_clip6", [](B&, const Expr& x) { return B::Call("clip", {x}, {{"a_min", 0.0}, {"a_max", 6.0}}); });
  add("conv_bias_clip_narrow", [](B&, const Expr& x) { return B::Call("clip", {x}, {{"a_min", -0.25}, {"a_max", 0.25}}); });
  add("conv_bias_leaky_relu", [](B&, const Expr& x) { return B::Call("nn.leaky_relu", {x}, {{"alpha", 0.1}}); });
  add("conv_bias_prelu", [](B& b, const Expr& x) { return B::Call("nn.prelu", {x, b.Constant({16}, 0, 0.5)}); });
  add("conv_bias_swish", [](B&, const Expr& x) { return B::Multiply(x, B::Call("sigmoid", {x})); });
  add("conv_bias_gelu", [](B&, const Expr& x) { return B::Gelu(x); });
  add("conv_bias_scale_shift", [](B& b, const Expr& x) {
    return B::Relu(B::Add(B::Multiply(x, b.Constant({16, 1, 1}, 0.5, 1.5)), b.Constant({16, 1, 1}, -1, 1)));
  });
  add("conv_bias_relu_max_pool", [](B&, const Expr& x) {
    return B::Call("nn.max_pool2d", {B::Relu(x)}, {{"pool_size", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  });
}

Program Transposed(Shape data, Shape weight, const Attributes& attributes, bool tail) {
  B b;
  const Expr x = b.Input(std::move(data));
  const int64_t fan_in = weight[0] * weight[2] * weight[3] / 2;
  const Expr y = B::Call("nn.conv2d_transpose", {x, b.Weight(std::move(weight), fan_in)}, attributes);
  return b.Finish(tail ? B::Relu(b.Bias(y)) : y);
}

void AddTransposed(std::vector<ProgramCase>& cases) {
  const auto add = [&](const std::string& name, const Shape& data, const Shape& weight, const Attributes& attributes) {
    cases.push_back({name, [=] { return Transposed(data, weight, attributes, false); }});
    cases.push_back({name + "_bias_relu", [=] { return Transposed(data, weight, attributes, true); }});
  };
  add("deconv_4x4_stride2", {1, 8, 5, 5}, {8, 6, 4, 4}, {{"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
  add("deconv_4x4_from_1x1", {1, 16, 1, 1}, {16, 8, 4, 4}, {});
  add("deconv_3x3_output_padding", {1, 8, 4, 6}, {8, 4, 3, 3},
      {{"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 1}}});
  add("deconv_2x2_stride2", {2, 4, 5, 3}, {4, 4, 2, 2}, {{"strides", Ints{2, 2}}});
  add("deconv_3x3_asymmetric", {1, 4, 5, 5}, {4, 3, 3, 3}, {{"strides", Ints{2, 2}}, {"padding", Ints{0, 1, 1, 0}}});
  add("deconv_grouped", {1, 8, 4, 4}, {8, 3, 3, 3}, {{"groups", 2}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
  add("deconv_dilated", {1, 4, 5, 5}, {4, 4, 3, 3}, {{"dilation", Ints{2, 2}}});
}

}  // namespace

std::vector<ProgramCase> ConvolutionCases() {
  std::vector<ProgramCase> cases;
  const std::vector<Convolution> convolutions = {
      {"conv_1x1", {1, 16, 7, 7}, 24, 1, {}},
      {"conv_1x1_stride2", {1, 16, 7, 7}, 24, 1, {{"strides", Ints{2, 2}}}},
      {"conv_1x1_many_channels", {2, 64, 7, 5}, 96, 1, {}},
      {"conv_3x3", {1, 16, 10, 10}, 32, 3, {}},
      {"conv_3x3_batch2", {2, 16, 8, 6}, 16, 3, {}},
      {"conv_3x3_stride2", {1, 8, 11, 9}, 16, 3, {{"strides", Ints{2, 2}}}},
      {"conv_3x3_no_padding", {1, 8, 8, 8}, 8, 3, {{"padding", Ints{0, 0, 0, 0}}}},
      {"conv_3x3_odd_channels", {1, 5, 9, 7}, 11, 3, {}},
      {"conv_3x3_dilated", {1, 8, 12, 12}, 8, 3, {{"dilation", Ints{2, 2}}, {"padding", Ints{2, 2, 2, 2}}}},
      {"conv_3x3_asymmetric_padding", {1, 8, 9, 9}, 8, 3, {{"padding", Ints{0, 1, 2, 1}}, {"strides", Ints{2, 2}}}},
      {"conv_5x5", {1, 8, 9, 9}, 16, 5, {}},
      {"conv_7x7_stride2_image", {1, 3, 32, 32}, 16, 7, {{"strides", Ints{2, 2}}}},
      {"conv_1x1_one_channel", {1, 1, 6, 6}, 1, 1, {}},
      {"conv_3x3_grouped", {1, 16, 8, 8}, 16, 3, {{"groups", 4}}},
      {"conv_1x1_grouped", {1, 24, 6, 6}, 48, 1, {{"groups", 3}}},
      {"conv_3x3_grouped_odd", {1, 15, 8, 8}, 10, 3, {{"groups", 5}}},
      {"depthwise_3x3", {1, 16, 9, 9}, 16, 3, {{"groups", 16}}},
      {"depthwise_3x3_stride2", {1, 24, 9, 8}, 24, 3, {{"groups", 24}, {"strides", Ints{2, 2}}}},
      {"depthwise_5x5_odd", {1, 7, 9, 9}, 7, 5, {{"groups", 7}}},
      {"depthwise_multiplier2", {1, 8, 7, 7}, 16, 3, {{"groups", 8}}},
  };
  for (const Convolution& convolution : convolutions) AddWithTails(cases, convolution);
  AddTails(cases);
  AddTransposed(cases);
  cases.push_back({"conv_1x2_dilated_gate", [] {
                     B b;
                     const Attributes attributes{{"dilation", Ints{1, 16}}, {"padding", Ints{0, 16, 0, 0}}};
                     const Expr x = B::Call("nn.conv2d", {b.Input({1, 16, 1, 512}), b.Weight({16, 16, 1, 2}, 32)}, attributes);
                     return b.Finish(B::Multiply(B::Call("tanh", {b.Bias(x)}), b.Input({1, 16, 1, 512})));
                   }});
  cases.push_back({"conv_weight_is_parameter", [] {
                     B b;
                     const Expr x = b.Input({1, 8, 7, 7});
                     return b.Finish(B::Call("nn.conv2d", {x, b.Input({12, 8, 3, 3})}, {{"padding", Ints{1, 1, 1, 1}}}));
                   }});
  return cases;
}

}  // namespace collage::conformance
