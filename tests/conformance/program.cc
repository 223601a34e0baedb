#include "tests/conformance/program.h"

#include <cmath>
#include <stdexcept>

#include "collage/op/table.h"

namespace collage::conformance {
namespace {

template <class T>
T Unwrap(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

/// Integers are uniform in {low, ..., high - 1}; FillRandom knows one range of them only.
void Fill(Tensor& tensor, uint64_t seed, const Program::Range& range) {
  if (IsFloatingPoint(tensor.dtype()) || tensor.dtype() == DType::kBool) {
    FillRandom(tensor, seed, range.low, range.high);
    return;
  }
  Tensor uniform(TensorType{tensor.shape(), DType::kFloat64});
  FillRandom(uniform, seed, range.low, range.high);
  VisitElementType(tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < tensor.ElementCount(); ++i) tensor.MutableData<T>()[i] = static_cast<T>(std::floor(uniform.Data<double>()[i]));
  });
}

}  // namespace

std::vector<Tensor> Program::RandomInputs(uint64_t seed) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < ranges.size(); ++i) {
    inputs.emplace_back(*Get().parameters[i]->type().AsTensor());
    Fill(inputs.back(), seed * 1000 + i, ranges[i]);
  }
  return inputs;
}

Expr ProgramBuilder::Input(Shape shape, double low, double high, DType dtype) {
  parameters_.push_back(MakeVar("x" + std::to_string(parameters_.size()), TensorType{std::move(shape), dtype}));
  ranges_.push_back({low, high});
  return parameters_.back();
}

Expr ProgramBuilder::Constant(Shape shape, double low, double high, DType dtype) {
  Tensor tensor(TensorType{std::move(shape), dtype});
  Fill(tensor, seed_++, {low, high});
  return MakeConstant(std::move(tensor));
}

Expr ProgramBuilder::Weight(Shape shape, int64_t fan_in) {
  const double bound = std::sqrt(3.0 / static_cast<double>(fan_in));
  return Constant(std::move(shape), -bound, bound);
}

Expr ProgramBuilder::Scalar(double value, DType dtype) { return MakeConstant(Tensor::Scalar(value, dtype)); }

Expr ProgramBuilder::Call(const std::string& op, std::vector<Expr> args, Attributes attributes) {
  const OpDef* def = Operators().Find(op);
  if (!def) throw std::runtime_error("unknown operator " + op);
  return Unwrap(MakeCall(def, std::move(args), std::move(attributes)));
}

Expr ProgramBuilder::Get(const Expr& tuple, size_t index) { return Unwrap(MakeTupleGetItem(tuple, index)); }

Program ProgramBuilder::Finish(const Expr& body) { return {Unwrap(MakeFunction(parameters_, body, {{"Primitive", 1}})), ranges_}; }

Expr ProgramBuilder::Conv2d(const Expr& data, int64_t channels, int64_t kernel, Attributes attributes) {
  const int64_t groups = Unwrap(attributes.Int("groups", 1));
  const int64_t depth = ShapeOf(data)[1] / groups;
  if (!attributes.Has("padding")) attributes.Set("padding", Ints(4, kernel / 2));
  return Call("nn.conv2d", {data, Weight({channels, depth, kernel, kernel}, depth * kernel * kernel)}, std::move(attributes));
}

Expr ProgramBuilder::Bias(const Expr& data, int64_t axis) {
  const Shape& shape = ShapeOf(data);
  const int64_t extent = shape[axis < 0 ? shape.size() + axis : axis];
  return Call("nn.bias_add", {data, Constant({extent}, -1, 1)}, {{"axis", axis}});
}

Expr ProgramBuilder::Dense(const Expr& data, int64_t units) {
  const int64_t depth = ShapeOf(data).back();
  return Call("nn.dense", {data, Weight({units, depth}, depth)});
}

Expr ProgramBuilder::LayerNorm(const Expr& data) {
  const int64_t extent = ShapeOf(data).back();
  const Attributes last{{"axis", Ints{-1}}, {"keepdims", true}};
  const Expr centred = Call("subtract", {data, Call("mean", {data}, last)});
  const Expr variance = Call("mean", {Call("power", {centred, Scalar(2)})}, last);
  const Expr deviation = Call("sqrt", {Add(variance, Scalar(1e-5))});
  const Expr normal = Call("divide", {centred, deviation});
  return Add(Multiply(normal, Constant({extent}, 0.5, 1.5)), Constant({extent}, -0.5, 0.5));
}

Expr ProgramBuilder::Gelu(const Expr& data) {
  const Expr erf = Call("erf", {Call("divide", {data, Scalar(std::sqrt(2.0))})});
  return Multiply(Multiply(data, Add(erf, Scalar(1))), Scalar(0.5));
}

const Shape& ShapeOf(const Expr& expr) { return expr->type().AsTensor()->shape; }

}  // namespace collage::conformance
