#include "bench/graphs.h"

#include "collage/op/table.h"

namespace collage {
namespace {

constexpr int64_t kChannels = 8;
constexpr int64_t kSize = 4;

/// Makes calls and counts them.
class Network {
 public:
  Network() : input_(MakeVar("x", TensorType{{1, kChannels, kSize, kSize}, DType::kFloat32})) {}

  [[nodiscard]] const Expr& input() const { return input_; }
  [[nodiscard]] size_t count() const { return count_; }

  Expr Call(const char* op, std::vector<Expr> args, Attributes attributes = {}) {
    ++count_;
    return MakeCall(Operators().Find(op), std::move(args), std::move(attributes)).value();
  }
  Expr Relu(const Expr& x) { return Call("nn.relu", {x}); }
  Expr Add(const Expr& x, const Expr& y) { return Call("add", {x, y}); }

  /// A 1x1 convolution to kChannels, and its bias.
  Expr Pointwise(const Expr& x) {
    const int64_t channels = x->type().AsTensor()->shape[1];
    return Bias(Call("nn.conv2d", {x, Weight({kChannels, channels, 1, 1})}));
  }
  Expr Convolution(const Expr& x) {
    return Bias(Call("nn.conv2d", {x, Weight({kChannels, kChannels, 3, 3})}, {{"padding", Ints({1, 1, 1, 1})}}));
  }
  Expr Depthwise(const Expr& x) {
    return Call("nn.conv2d", {x, Weight({kChannels, 1, 3, 3})}, {{"padding", Ints({1, 1, 1, 1})}, {"groups", AttributeValue(kChannels)}});
  }
  Expr Pool(const Expr& x) {
    return Call("nn.avg_pool2d", {x}, {{"pool_size", Ints({3, 3})}, {"strides", Ints({1, 1})}, {"padding", Ints({1, 1, 1, 1})}});
  }
  Expr SeparableTwice(Expr x) {
    for (int i = 0; i < 2; ++i) x = Pointwise(Depthwise(Relu(x)));
    return x;
  }

  Expr Finish(Expr body) const { return MakeFunction({input_}, std::move(body)).value(); }

 private:
  static AttributeValue Ints(const std::vector<int64_t>& values) { return {values}; }
  static Expr Weight(Shape shape) { return MakeConstant(Tensor(TensorType{std::move(shape), DType::kFloat32})); }
  Expr Bias(const Expr& x) { return Call("nn.bias_add", {x, Weight({kChannels})}); }

  Expr input_;
  size_t count_ = 0;
};

Expr Cell(Network& network, const Expr& before, const Expr& last) {
  const Expr p = network.Pointwise(network.Relu(before));
  const Expr h = network.Pointwise(network.Relu(last));
  const std::vector<Expr> blocks = {
      network.Add(network.SeparableTwice(h), h),
      network.Add(network.SeparableTwice(p), network.SeparableTwice(h)),
      network.Add(network.Pool(h), p),
      network.Add(network.Pool(p), network.Pool(p)),
      network.Add(network.SeparableTwice(p), network.SeparableTwice(p)),
  };
  return network.Call("concatenate", {MakeTuple({p, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]})},
                      {{"axis", AttributeValue(1)}});
}

}  // namespace

Expr ConvolutionChain(size_t operators) {
  Network network;
  Expr x = network.input();
  while (network.count() + 3 <= operators) x = network.Relu(network.Convolution(x));
  return network.Finish(x);
}

Expr ResidualNetwork(size_t operators) {
  Network network;
  Expr x = network.input();
  while (network.count() + 7 <= operators) {
    const Expr inner = network.Convolution(network.Relu(network.Convolution(x)));
    x = network.Relu(network.Add(inner, x));
  }
  return network.Finish(x);
}

Expr NasnetLike(size_t operators) {
  Network network;
  Expr before = network.input();
  Expr last = network.input();
  while (network.count() + 57 <= operators) {
    const Expr next = Cell(network, before, last);
    before = last;
    last = next;
  }
  return network.Finish(last);
}

Expr AnnotatedChain(size_t operators) {
  constexpr size_t kBetween = 100;
  Network network;
  Expr x = network.input();
  while (network.count() < operators) {
    x = network.count() % 2 == 0 ? network.Relu(x) : network.Add(x, network.input());
    if (network.count() % kBetween != 0) continue;
    const char* device = network.count() / kBetween % 2 == 0 ? "cpu:0" : "cuda:0";
    x = MakeCall(Operators().Find("on_device"), {x}, {{"virtual_device", device}, {"constrain_result", true}}).value();
  }
  return network.Finish(x);
}

}  // namespace collage
