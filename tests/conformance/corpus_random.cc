#include <random>

#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

/// Small random numbers from a fixed seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  /// Uniform in {low, ..., high}.
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));  // not std: the same on every library
  }
  bool Flip() { return Roll(0, 1) == 1; }
  template <class T>
  T Pick(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Roll(0, static_cast<int64_t>(choices.size()) - 1))];
  }
  Shape RollShape(size_t rank, int64_t most) {
    Shape shape(rank);
    for (int64_t& extent : shape) extent = Roll(1, most);
    return shape;
  }

 private:
  std::mt19937_64 engine_;
};

Expr Activated(B& b, const Expr& x, Dice& dice) {
  switch (dice.Roll(0, 5)) {
    case 0:
      return B::Relu(x);
    case 1:
      return B::Call("clip", {x}, {{"a_min", -0.5}, {"a_max", 0.75}});
    case 2:
      return B::Call("sigmoid", {x});
    case 3:
      return B::Call("nn.leaky_relu", {x}, {{"alpha", 0.3}});
    case 4:
      return B::Relu(B::Add(x, b.Input(ShapeOf(x))));
    default:
      return x;
  }
}

Program Convolution(Dice dice) {
  B b;
  const int64_t groups = dice.Pick<int64_t>({1, 1, 2, 3, 4});
  const int64_t depth = dice.Pick<int64_t>({1, 3, 4, 8, 16});
  const int64_t height = dice.Pick<int64_t>({1, 3, 5});
  const int64_t width = dice.Pick<int64_t>({1, 3, 4});
  const Ints dilation{dice.Roll(1, 2), dice.Roll(1, 2)};
  const Ints padding{dice.Roll(0, 2), dice.Roll(0, 2), dice.Roll(0, 2), dice.Roll(0, 2)};
  const Expr x = b.Input({dice.Roll(1, 2), groups * depth, dice.Roll(9, 14), dice.Roll(9, 14)});
  const int64_t channels = groups * dice.Pick<int64_t>({1, 5, 8, 16});
  const Expr weight = b.Weight({channels, depth, height, width}, depth * height * width);
  const Expr y =
      B::Call("nn.conv2d", {x, weight},
              {{"groups", groups}, {"strides", Ints{dice.Roll(1, 2), dice.Roll(1, 3)}}, {"padding", padding}, {"dilation", dilation}});
  return b.Finish(Activated(b, dice.Flip() ? b.Bias(y) : y, dice));
}

Program Deconvolution(Dice dice) {
  B b;
  const int64_t groups = dice.Pick<int64_t>({1, 1, 2});
  const int64_t depth = dice.Pick<int64_t>({1, 4, 16});
  const int64_t kernel = dice.Roll(2, 5);
  const Ints strides{dice.Roll(1, 3), dice.Roll(1, 3)};
  const Ints padding{dice.Roll(0, 1), dice.Roll(0, 1), dice.Roll(0, 1), dice.Roll(0, 1)};
  const Ints extra{dice.Roll(0, strides[0] - 1), dice.Roll(0, strides[1] - 1)};
  const Expr x = b.Input({dice.Roll(1, 2), groups * depth, dice.Roll(3, 6), dice.Roll(3, 6)});
  const Expr weight = b.Weight({groups * depth, dice.Pick<int64_t>({1, 3, 8}), kernel, kernel}, depth * kernel);
  const Expr y = B::Call("nn.conv2d_transpose", {x, weight},
                         {{"groups", groups}, {"strides", strides}, {"padding", padding}, {"output_padding", extra}});
  return b.Finish(dice.Flip() ? B::Relu(b.Bias(y)) : y);
}

Program Product(Dice dice) {
  B b;
  const int64_t m = dice.Roll(1, 40);
  const int64_t k = dice.Roll(1, 70);
  const int64_t n = dice.Roll(1, 40);
  const bool transpose_a = dice.Flip();
  const bool transpose_b = dice.Flip();
  Shape left = dice.RollShape(static_cast<size_t>(dice.Roll(0, 2)), 3);
  const bool batched = dice.Flip();
  Shape right = batched ? left : Shape{};
  for (int64_t extent : transpose_a ? Ints{k, m} : Ints{m, k}) left.push_back(extent);
  for (int64_t extent : transpose_b ? Ints{n, k} : Ints{k, n}) right.push_back(extent);
  const Expr a = b.Input(left);
  const Expr c = dice.Flip() ? b.Weight(right, k) : b.Input(right);
  const Expr y = B::Call("nn.matmul", {a, c}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  return b.Finish(Activated(b, dice.Flip() ? B::Add(y, b.Constant({n}, -1, 1)) : y, dice));
}

Program DenseLayers(Dice dice) {
  B b;
  Expr x = b.Input({dice.Roll(1, 9), dice.Roll(1, 70)});
  for (int64_t layers = dice.Roll(1, 3); layers > 0; --layers) x = Activated(b, b.Bias(b.Dense(x, dice.Roll(1, 50)), -1), dice);
  return b.Finish(x);
}

Program Pooling(Dice dice) {
  B b;
  const Ints window{dice.Roll(2, 4), dice.Roll(2, 4)};
  const Ints padding{dice.Roll(0, 1), dice.Roll(0, 1), dice.Roll(0, 1), dice.Roll(0, 1)};
  const bool average = dice.Flip();
  Attributes attributes{
      {"pool_size", window}, {"strides", Ints{dice.Roll(1, 3), dice.Roll(1, 3)}}, {"padding", padding}, {"ceil_mode", dice.Flip()}};
  if (average) attributes.Set("count_include_pad", dice.Flip());
  const Expr x = b.Input({dice.Roll(1, 2), dice.Pick<int64_t>({1, 5, 16}), dice.Roll(6, 12), dice.Roll(6, 12)});
  return b.Finish(B::Call(average ? "nn.avg_pool2d" : "nn.max_pool2d", {x}, attributes));
}

Program Reduction(Dice dice) {
  B b;
  const auto rank = static_cast<size_t>(dice.Roll(1, 4));
  const Shape shape = dice.RollShape(rank, 12);
  Ints axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (dice.Flip()) axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) axes.push_back(static_cast<int64_t>(rank) - 1);
  const std::string op = dice.Pick<std::string>({"sum", "mean", "max", "min"});
  const Expr x = b.Input(shape, 0.5, 1.5);
  const Expr y = B::Call(op, {dice.Flip() ? B::Call("exp", {x}) : x}, {{"axis", axes}, {"keepdims", dice.Flip()}});
  return b.Finish(dice.Flip() ? B::Call("sqrt", {y}) : y);
}

/// A random directed graph of pointwise operators over broadcastable shapes.
Program Pointwise(Dice dice) {
  B b;
  const Shape shape{dice.Roll(1, 3), dice.Roll(1, 9), dice.Roll(1, 7), dice.Roll(1, 9)};
  std::vector<Expr> values = {b.Input(shape), b.Input({shape[1], 1, 1}), b.Constant({shape[3]}, 0.5, 1.5)};
  for (int64_t steps = dice.Roll(3, 12); steps > 0; --steps) {
    const Expr left = dice.Pick(values);
    const Expr right = dice.Pick(values);
    if (dice.Flip()) {
      values.push_back(B::Call(dice.Pick<std::string>({"tanh", "sigmoid", "nn.relu", "erf", "abs", "negative", "cos"}), {left}));
    } else {
      values.push_back(B::Call(dice.Pick<std::string>({"add", "subtract", "multiply", "maximum", "minimum"}), {left, right}));
    }
  }
  return b.Finish(B::Add(values.back(), values[0]));
}

Program Movement(Dice dice) {
  B b;
  Expr x = b.Input(dice.RollShape(4, 6));
  for (int64_t steps = dice.Roll(1, 4); steps > 0; --steps) {
    const Shape shape = ShapeOf(x);
    switch (dice.Roll(0, 3)) {
      case 0: {
        Ints axes{0, 1, 2, 3};
        for (size_t i = 3; i > 0; --i) std::swap(axes[i], axes[static_cast<size_t>(dice.Roll(0, static_cast<int64_t>(i)))]);
        x = B::Call("transpose", {x}, {{"axes", axes}});
        break;
      }
      case 1:
        x = B::Call("reshape", {x}, {{"newshape", Ints{shape[1], shape[0], shape[3], shape[2]}}});
        break;
      case 2:
        x = B::Call("concatenate", {MakeTuple({x, b.Input(shape)})}, {{"axis", dice.Roll(0, 3)}});
        break;
      default: {
        Ints begin;
        for (int64_t extent : shape) begin.push_back(dice.Roll(0, extent - 1));
        x = B::Call("strided_slice", {x}, {{"begin", begin}, {"end", shape}, {"strides", Ints{1, 1, dice.Roll(1, 2), 1}}});
      }
    }
  }
  return b.Finish(dice.Flip() ? B::Relu(x) : x);
}

Program Softmax(Dice dice) {
  B b;
  const auto rank = static_cast<size_t>(dice.Roll(1, 4));
  const Expr x = b.Input(dice.RollShape(rank, 20), -5, 5);
  const int64_t axis = dice.Roll(-static_cast<int64_t>(rank), static_cast<int64_t>(rank) - 1);
  return b.Finish(B::Call(dice.Flip() ? "nn.softmax" : "nn.log_softmax", {x}, {{"axis", axis}}));
}

}  // namespace

std::vector<ProgramCase> RandomCases(int count) {
  const std::vector<std::pair<std::string, Program (*)(Dice)>> kinds = {
      {"convolution", Convolution}, {"deconvolution", Deconvolution}, {"product", Product},   {"dense", DenseLayers}, {"pooling", Pooling},
      {"reduction", Reduction},     {"pointwise", Pointwise},         {"movement", Movement}, {"softmax", Softmax},
  };
  std::vector<ProgramCase> cases;
  for (const auto& [name, make] : kinds) {
    for (int seed = 0; seed < count; ++seed) {
      cases.push_back(
          {"random_" + name + "_" + std::to_string(seed), [make = make, seed] { return make(Dice(static_cast<uint64_t>(seed))); }});
    }
  }
  return cases;
}

}  // namespace collage::conformance
