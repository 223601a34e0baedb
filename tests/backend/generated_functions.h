#pragma once

#include <utility>
#include <vector>

#include "tests/backend/kernel_harness.h"

namespace collage::testing_backend {

/// Functions that between them have every kind of code that is generated: chains, movement, windows, products, and rows along the last axis
/// and along others, shorter and longer than a warp and a block.
inline std::vector<std::pair<std::string, Expr>> GeneratedFunctions() {
  std::vector<std::pair<std::string, Expr>> functions;
  const auto add = [&](const std::string& name, const Expr& x, const Expr& body) { functions.emplace_back(name, FunctionOf({x}, body)); };
  for (const Shape& shape : std::vector<Shape>{{5, 7}, {3, 33}, {2, 2, 300}, {2, 2000}, {1, 1}}) {
    const Expr x = Input(shape);
    const int64_t width = shape.back();
    const std::string of = " of " + ToString(shape);
    const Expr scaled = CallOp("multiply", {x, Scalar(0.3)});
    add("chain" + of, x, CallOp("tanh", {CallOp("add", {scaled, RandomConstant({width}, 3)})}));
    add("softmax" + of, x, CallOp("nn.softmax", {CallOp("add", {scaled, RandomConstant({width}, 3)})}));
    add("layer norm" + of, x,
        CallOp("nn.layer_norm", {CallOp("add", {x, Scalar(5)}), RandomConstant({width}, 1), RandomConstant({width}, 2)}));
    for (const char* reduction : {"sum", "mean", "max", "min"}) {
      add(reduction + of, x, CallOp(reduction, {x}, {{"axis", std::vector<int64_t>{-1}}, {"keepdims", true}}));
      add(reduction + (" of all" + of), x, CallOp(reduction, {CallOp("negative", {x})}));
      add(reduction + (" along the first axis" + of), x, CallOp(reduction, {x}, {{"axis", std::vector<int64_t>{0}}}));
    }
  }
  const Expr image = Input({2, 6, 9, 8});
  const Attributes window{{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}};
  const Attributes padded{{"padding", std::vector<int64_t>{1, 1}}, {"groups", 2}};
  add("convolution", image, CallOp("nn.relu", {CallOp("nn.conv2d", {image, RandomConstant({4, 3, 3, 3}, 2)}, padded)}));
  add("max pool", image, CallOp("nn.max_pool2d", {CallOp("nn.relu", {image})}, window));
  add("average pool", image, CallOp("nn.avg_pool2d", {image}, window));
  add("global average pool", image, CallOp("nn.global_avg_pool2d", {image}));
  add("softmax along channels", image, CallOp("nn.softmax", {image}, {{"axis", 1}}));
  add("transpose", image, CallOp("transpose", {CallOp("erf", {image})}, {{"axes", std::vector<int64_t>{0, 2, 3, 1}}}));
  const Expr half = CallOp(
      "strided_slice", {CallOp("negative", {image})},
      {{"begin", std::vector<int64_t>{0, 5, 8}}, {"end", std::vector<int64_t>{2, 1, -10}}, {"strides", std::vector<int64_t>{1, -2, -3}}});
  add("slice", image, CallOp("exp", {half}));
  const Expr parts = CallOp("split", {CallOp("abs", {image})}, {{"indices_or_sections", std::vector<int64_t>{1, 4}}, {"axis", 1}});
  for (size_t part = 0; part < 3; ++part) add("part " + std::to_string(part), image, CallOp("sqrt", {*MakeTupleGetItem(parts, part)}));
  const Expr join = CallOp("concatenate", {MakeTuple({image, CallOp("tanh", {image}), RandomConstant({2, 2, 9, 8}, 4)})}, {{"axis", 1}});
  add("join", image, CallOp("nn.relu", {join}));
  add("join of parts", image,
      CallOp("concatenate", {MakeTuple({*MakeTupleGetItem(parts, 2), *MakeTupleGetItem(parts, 0)})}, {{"axis", -3}}));
  const Expr depth = Input({2, 12, 3, 5});
  for (const char* mode : {"DCR", "CRD"}) {
    const Expr space = CallOp("nn.depth_to_space", {CallOp("negative", {depth})}, {{"block_size", 2}, {"mode", mode}});
    add(std::string("depth to space in the order ") + mode, depth, CallOp("nn.relu", {space}));
  }
  using Widths = std::vector<int64_t>;
  const Attributes widths{{"pad_width", AttributeValue::List{Widths{0, 1}, Widths{0, 0}, Widths{2, 1}, Widths{0, 4}}}};
  const Expr around = CallOp("nn.pad", {CallOp("tanh", {image}), Scalar(0.5)}, widths);
  add("pad", image, CallOp("multiply", {around, Scalar(2)}));
  add("space to depth", image, CallOp("exp", {CallOp("nn.space_to_depth", {around}, {{"block_size", 4}})}));
  const auto add_blocks = [&](const std::string& name, const Expr& blocks, const Attributes& geometry) {
    const Expr sum = CallOp("nn.col2im", {CallOp("negative", {blocks})}, geometry);
    add("blocks " + name, blocks, CallOp("nn.relu", {CallOp("add", {sum, Scalar(0.5)})}));
  };
  add_blocks("of a line", Input({2, 6, 4}), {{"output_size", Widths{9}}, {"kernel_size", 3}, {"strides", 2}});
  add_blocks("that overlap", Input({2, 48, 20}),
             {{"output_size", Widths{9, 11}}, {"kernel_size", 4}, {"strides", 2}, {"padding", Widths{1, 0, 1, 1}}});
  add_blocks("with gaps", Input({1, 8, 9}), {{"output_size", Widths{11, 12}}, {"kernel_size", Widths{2, 1}}, {"strides", 4}});
  add_blocks("that are dilated", Input({1, 18, 15}),
             {{"output_size", Widths{13, 8}},
              {"kernel_size", 3},
              {"strides", Widths{6, 3}},
              {"dilation", Widths{4, 2}},
              {"padding", Widths{5, 4, 3, 6}}});
  add_blocks("of a volume", Input({1, 16, 18}), {{"output_size", Widths{4, 4, 4}}, {"kernel_size", 2}, {"strides", Widths{1, 2, 1}}});
  add("power", image, CallOp("power", {CallOp("abs", {image}), RandomConstant({9, 8}, 6)}));
  add("leaky relu", image, CallOp("nn.leaky_relu", {image}, {{"alpha", 0.2}}));
  const Expr matrix = Input({33, 20});
  add("dense", matrix, CallOp("nn.relu", {CallOp("nn.dense", {matrix, RandomConstant({17, 20}, 2)})}));
  return functions;
}

}  // namespace collage::testing_backend
