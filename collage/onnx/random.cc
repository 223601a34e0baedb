#include <cmath>
#include <cstring>
#include <numbers>
#include <span>

#include "collage/onnx/data_type.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/support/hash.h"

// Random numbers are drawn once, when a model is read: every run of what is compiled has the same ones, so that it can be compared.

namespace collage::onnx_io {
namespace {

/// In (0, 1), never an end.
double Uniform(uint64_t seed, uint64_t place) { return (static_cast<double>(HashCombine(seed, place) >> 11) + 0.5) * 0x1p-53; }

/// Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.
double Normal(uint64_t seed, uint64_t place) {
  const double radius = std::sqrt(-2 * std::log(Uniform(seed, 2 * place)));
  return radius * std::cos(2 * std::numbers::pi * Uniform(seed, 2 * place + 1));
}

/// From the attribute, or another one for each node.
Result<uint64_t> SeedOf(const NodeReader& node) {
  if (!node.HasAttribute("seed")) return HashBytes(node.origin().ToString());
  const float seed = COLLAGE_TRY(node.Float("seed", 0));
  uint32_t bits = 0;
  std::memcpy(&bits, &seed, sizeof(bits));
  return uint64_t{bits};
}

template <class Draw>
Result<Expr> Drawn(NodeReader& node, const Shape& shape, DType dtype, Draw draw) {
  COLLAGE_TRY_STATUS(CheckExtents(shape));
  const uint64_t seed = COLLAGE_TRY(SeedOf(node));
  const TensorType type{shape, DType::kFloat64};
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor values(type);
  const std::span<double> numbers(values.MutableData<double>(), static_cast<size_t>(values.ElementCount()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = draw(seed, i);
  return node.Call("cast", {MakeConstant(std::move(values))}, {{"dtype", std::string(Name(dtype))}});
}

Result<DType> DTypeOf(const NodeReader& node, DType fallback) {
  if (!node.HasAttribute("dtype")) return fallback;
  const int64_t number = COLLAGE_TRY(node.Int("dtype", 0));
  const std::optional<DType> dtype = DTypeOfOnnx(number);
  if (!dtype) return Fail("attribute 'dtype' is the data type " + std::to_string(number) + ", which is not supported");
  return *dtype;
}

/// Attributes of both distributions are their ends, or their mean and deviation.
template <bool normal>
Result<Expr> Draw(NodeReader& node, const Shape& shape, DType dtype) {
  const double offset = COLLAGE_TRY(node.Float(normal ? "mean" : "low", 0));
  const double end = COLLAGE_TRY(node.Float(normal ? "scale" : "high", 1));
  const double factor = normal ? end : end - offset;
  return Drawn(node, shape, dtype,
               [=](uint64_t seed, uint64_t i) { return offset + factor * (normal ? Normal(seed, i) : Uniform(seed, i)); });
}

template <bool normal>
Result<std::vector<Expr>> ReadRandom(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(node.Ints("shape", {}));
  return std::vector<Expr>{COLLAGE_TRY(Draw<normal>(node, shape, COLLAGE_TRY(DTypeOf(node, DType::kFloat32))))};
}

template <bool normal>
Result<std::vector<Expr>> ReadRandomLike(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const DType fallback = IsFloatingPoint(type.dtype) ? type.dtype : DType::kFloat32;
  return std::vector<Expr>{COLLAGE_TRY(Draw<normal>(node, type.shape, COLLAGE_TRY(DTypeOf(node, fallback))))};
}

/// 1 with the probability that the input gives.
Result<std::vector<Expr>> ReadBernoulli(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  Formula formula(node, type.dtype);
  const Expr drawn = COLLAGE_TRY(Drawn(node, type.shape, type.dtype, Uniform));
  return formula.Done(formula.Cast(formula.Call("less", drawn, data), COLLAGE_TRY(DTypeOf(node, type.dtype))));
}

/// Classes by the logarithms of their probabilities: the largest after each got noise of Gumbel's distribution.
Result<std::vector<Expr>> ReadMultinomial(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t samples = COLLAGE_TRY(node.Int("sample_size", 1));
  if (type.shape.size() != 2 || samples < 1)
    return Fail("data " + ToString(type.shape) + " must be (batch, classes), 'sample_size' positive");
  const Expr noise = COLLAGE_TRY(Drawn(node, {type.shape[0], samples, type.shape[1]}, type.dtype,
                                       [](uint64_t seed, uint64_t i) { return -std::log(-std::log(Uniform(seed, i))); }));
  Formula formula(node, type.dtype);
  const Expr scores = formula.Call("add", formula.Apply("expand_dims", {data}, {{"axis", 1}}), noise);
  const Expr classes = formula.Apply("argmax", {scores}, {{"axis", 2}});
  return formula.Done(formula.Cast(classes, COLLAGE_TRY(DTypeOf(node, DType::kInt32))));
}

}  // namespace

OperatorFamily RandomFamily() {
  static constexpr ReadRow kRead[] = {
      {"RandomNormal", ReadRandom<true>},           {"RandomUniform", ReadRandom<false>}, {"RandomNormalLike", ReadRandomLike<true>},
      {"RandomUniformLike", ReadRandomLike<false>}, {"Bernoulli", ReadBernoulli},         {"Multinomial", ReadMultinomial}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
