#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

ProgramCase BatchNorm(const std::string& name, const Shape& data, const Attributes& attributes = {}) {
  return {name, [=] {
            B b;
            const Shape channels{data[1]};
            const Expr norm = B::Call("nn.batch_norm",
                                      {b.Input(data), b.Constant(channels, 0.5, 1.5), b.Constant(channels, -1, 1),
                                       b.Constant(channels, -1, 1), b.Constant(channels, 0.2, 2)},
                                      attributes);
            return b.Finish(B::Get(norm, 0));
          }};
}

/// Layer, instance and group normalisation: data, scale and shift.
ProgramCase Norm(const std::string& name, const std::string& op, const Shape& data, int64_t extent, const Attributes& attributes) {
  return {name, [=] {
            B b;
            return b.Finish(B::Call(op, {b.Input(data), b.Constant({extent}, 0.5, 1.5), b.Constant({extent}, -1, 1)}, attributes));
          }};
}

ProgramCase Unary(const std::string& name, const std::string& op, const Shape& data, const Attributes& attributes = {}) {
  return {name, [=] {
            B b;
            return b.Finish(B::Call(op, {b.Input(data, -4, 4)}, attributes));
          }};
}

}  // namespace

std::vector<ProgramCase> NormalisationCases() {
  return {
      BatchNorm("batch_norm", {1, 16, 6, 6}),
      BatchNorm("batch_norm_batch2_odd", {2, 5, 3, 7}, {{"epsilon", 1e-3}}),
      BatchNorm("batch_norm_rank2", {4, 12}),
      {"batch_norm_relu",
       [] {
         B b;
         const Shape channels{16};
         const Expr norm = B::Call("nn.batch_norm", {b.Input({1, 16, 6, 6}), b.Constant(channels, 0.5, 1.5), b.Constant(channels, -1, 1),
                                                     b.Constant(channels, -1, 1), b.Constant(channels, 0.2, 2)});
         return b.Finish(B::Relu(B::Get(norm, 0)));
       }},
      {"conv_batch_norm_relu",
       [] {
         B b;
         const Shape channels{16};
         const Expr norm =
             B::Call("nn.batch_norm", {b.Conv2d(b.Input({1, 8, 6, 6}), 16, 3), b.Constant(channels, 0.5, 1.5), b.Constant(channels, -1, 1),
                                       b.Constant(channels, -1, 1), b.Constant(channels, 0.2, 2)});
         return b.Finish(B::Relu(B::Get(norm, 0)));
       }},
      Norm("layer_norm", "nn.layer_norm", {2, 6, 32}, 32, {}),
      Norm("layer_norm_odd", "nn.layer_norm", {3, 17}, 17, {{"epsilon", 1e-3}}),
      Norm("layer_norm_without_vectors", "nn.layer_norm", {4, 24}, 24, {{"center", false}, {"scale", false}}),
      Norm("layer_norm_without_shift", "nn.layer_norm", {2, 3, 16}, 16, {{"center", false}}),
      Norm("layer_norm_channels", "nn.layer_norm", {2, 6, 5, 5}, 6, {{"axis", 1}}),
      Norm("instance_norm", "nn.instance_norm", {2, 6, 5, 5}, 6, {}),
      Norm("instance_norm_without_scale", "nn.instance_norm", {2, 6, 5, 5}, 6, {{"scale", false}}),
      Norm("group_norm", "nn.group_norm", {2, 12, 4, 5}, 12, {{"num_groups", 3}}),
      Norm("group_norm_without_shift", "nn.group_norm", {2, 12, 4, 5}, 12, {{"num_groups", 3}, {"center", false}}),
      {"layer_norm_decomposed",
       [] {
         B b;
         return b.Finish(b.LayerNorm(b.Input({2, 6, 32}, -2, 2)));
       }},
      {"residual_layer_norm_decomposed",
       [] {
         B b;
         return b.Finish(b.LayerNorm(B::Add(b.Input({1, 8, 64}), b.Input({1, 8, 64}))));
       }},
      Unary("softmax", "nn.softmax", {3, 10}),
      Unary("softmax_rank4", "nn.softmax", {1, 4, 6, 6}),
      Unary("softmax_channels", "nn.softmax", {2, 7, 3, 3}, {{"axis", 1}}),
      Unary("softmax_first", "nn.softmax", {5, 8}, {{"axis", 0}}),
      Unary("softmax_one_row", "nn.softmax", {1, 1000}),
      Unary("log_softmax", "nn.log_softmax", {3, 10}),
      Unary("log_softmax_channels", "nn.log_softmax", {2, 7, 3, 3}, {{"axis", 1}}),
      Unary("lrn", "nn.lrn", {1, 16, 5, 5}, {{"size", 5}, {"bias", 1.0}, {"alpha", 1e-2}, {"beta", 0.75}}),
      Unary("lrn_size3", "nn.lrn", {2, 7, 4, 3}, {{"size", 3}, {"bias", 2.0}, {"alpha", 0.5}, {"beta", 0.5}}),
      {"softmax_of_scaled",
       [] {
         B b;
         return b.Finish(B::Call("nn.softmax", {B::Multiply(b.Input({4, 24}, -4, 4), B::Scalar(0.25))}));
       }},
      {"softmax_of_scaled_masked",
       [] {
         B b;
         const Expr scaled = B::Multiply(b.Input({1, 4, 8, 8}, -4, 4), B::Scalar(0.25));
         return b.Finish(B::Call("nn.softmax", {B::Add(scaled, b.Input({1, 1, 1, 8}))}));
       }},
  };
}

}  // namespace collage::conformance
