#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/backend/cast_values.h"
#include "tests/backend/kernel_harness.h"
#include "tests/op/in_type.h"

namespace collage::testing_backend {

/// Functions of float32 that between them have every kind of code that is generated for it: chains, movement, windows, products, and rows
/// along the last axis and along others, shorter and longer than a warp and a block.
inline std::vector<std::pair<std::string, Expr>> GeneratedFunctionsOfFloat32() {
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

/// From each type that has code to each other, behind and before operators of its own.
inline std::vector<std::pair<std::string, Expr>> GeneratedCasts() {
  std::vector<std::pair<std::string, Expr>> functions;
  for (const DType from : kCastTypes) {
    const Expr x = MakeVar("x", TensorType{{5, 7}, from});
    const Expr moved = CallOp("transpose", {IsFloatingPoint(from) ? CallOp("exp", {x}) : x});
    for (const DType cast : kCastTypes) {
      const std::string to(Name(cast));
      const std::string name = std::string(Name(from)) + " to " + to;
      functions.emplace_back("cast of " + name, FunctionOf({x}, CallOp("cast", {moved}, {{"dtype", to}})));
      const Expr there = CallOp("cast", {x}, {{"dtype", to}});
      functions.emplace_back("cast and back of " + name, FunctionOf({x}, CallOp("cast", {there}, {{"dtype", std::string(Name(from))}})));
    }
  }
  return functions;
}

/// Lookups and choices.
inline std::vector<std::pair<std::string, Expr>> GeneratedChoices() {
  std::vector<std::pair<std::string, Expr>> functions;
  const auto add = [&](const std::string& name, const Expr& x, const Expr& body) { functions.emplace_back(name, FunctionOf({x}, body)); };
  const Expr x = Input({4, 6, 3});
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    // Also outside, on either side.
    Tensor places(TensorType{{2, 5}, dtype});
    VisitElementType(dtype, [&](auto zero) {
      constexpr std::array kPlaces = {0, 5, 3, -1, -7, 6, 11, 70, -70, 2};
      std::copy(kPlaces.begin(), kPlaces.end(), places.MutableData<decltype(zero)>());
    });
    const Expr indices = MakeConstant(places);
    for (const char* mode : {"clip", "wrap"}) {
      const std::string how = std::string(Name(dtype)) + " " + mode;
      for (const int64_t axis : {0, 1, -1})
        add("take " + how + std::to_string(axis), x, CallOp("take", {CallOp("negative", {x}), indices}, {{"axis", axis}, {"mode", mode}}));
      add("take of all " + how, x, CallOp("exp", {CallOp("take", {x, indices}, {{"mode", mode}})}));
    }
  }
  const Expr row = RandomConstant({6, 1}, 3);
  for (const char* comparison : {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"}) {
    const Expr condition = CallOp(comparison, {CallOp("floor", {CallOp("multiply", {x, Scalar(2)})}), CallOp("ceil", {row})});
    add(comparison, x, condition);
    add(std::string("where ") + comparison, x, CallOp("where", {condition, CallOp("exp", {x}), row}));
  }
  const Expr is_positive = CallOp("greater", {x, Scalar(0)});
  const Expr is_small = CallOp("less", {x, Scalar(0.5)});
  add("logical and", x, CallOp("logical_and", {is_positive, is_small}));
  add("logical or", x, CallOp("logical_or", {CallOp("logical_not", {is_positive}), is_small}));
  const Expr integers = MakeVar("x", TensorType{{3, 8}, DType::kInt64});
  const Expr most = MakeConstant(Tensor::Scalar(2, DType::kInt64));
  add("where of integers", integers, CallOp("where", {CallOp("less", {integers, most}), integers, most}));
  add("join of integers", integers,
      CallOp("concatenate",
             {MakeTuple({integers, CallOp("transpose", {CallOp("reshape", {integers}, {{"newshape", std::vector<int64_t>{8, 3}}})})})},
             {{"axis", 0}}));
  return functions;
}

/// All that is generated, floating point in each type.
inline std::vector<std::pair<std::string, Expr>> GeneratedFunctions() {
  std::vector<std::pair<std::string, Expr>> functions = GeneratedFunctionsOfFloat32();
  const std::vector<std::pair<std::string, Expr>> choices = GeneratedChoices();
  functions.insert(functions.end(), choices.begin(), choices.end());
  const size_t whole = functions.size();
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (size_t i = 0; i < whole; ++i)
      functions.emplace_back(functions[i].first + " in " + std::string(Name(dtype)), InType(*functions[i].second->As<Function>(), dtype));
  }
  const std::vector<std::pair<std::string, Expr>> casts = GeneratedCasts();
  functions.insert(functions.end(), casts.begin(), casts.end());
  return functions;
}

}  // namespace collage::testing_backend
