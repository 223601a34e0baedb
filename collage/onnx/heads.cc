#include "collage/onnx/heads.h"

#include <numeric>

namespace collage::onnx_io {
namespace {

/// Even and odd places, or first and second half, of the last dimension.
std::pair<Expr, Expr> RotaryHalves(Formula& formula, const Expr& data, bool interleaved) {
  const Shape shape = Formula::ShapeOf(data);
  if (!formula.ok()) return {};
  const int64_t half = shape[3] / 2;
  if (!interleaved) return {formula.Slice(data, 3, 0, half), formula.Slice(data, 3, half, 2 * half)};
  const Expr pairs = formula.Reshape(data, {shape[0], shape[1], shape[2], half, 2});
  const Shape plane{shape[0], shape[1], shape[2], half};
  return {formula.Reshape(formula.Slice(pairs, 4, 0, 1), plane), formula.Reshape(formula.Slice(pairs, 4, 1, 2), plane)};
}

Expr JoinRotaryHalves(Formula& formula, const Expr& real, const Expr& imaginary, bool interleaved) {
  if (!interleaved) return formula.Concatenate({real, imaginary}, 3);
  Shape shape = Formula::ShapeOf(real);
  if (!formula.ok()) return nullptr;
  const Expr pairs = formula.Stack({real, imaginary}, 4);
  shape[3] *= 2;
  return formula.Reshape(pairs, shape);
}

}  // namespace

Expr SplitHeads(Formula& formula, const Expr& data, int64_t heads) {
  const Shape shape = Formula::ShapeOf(data);
  if (!formula.ok()) return nullptr;
  if (shape.size() != 3 || shape[2] % heads != 0)
    return formula.Refuse("shape " + ToString(shape) + " is not (batch, length, " + std::to_string(heads) + " * size)");
  return formula.Transpose(formula.Reshape(data, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Expr JoinHeads(Formula& formula, const Expr& data) {
  const Shape shape = Formula::ShapeOf(data);
  if (!formula.ok()) return nullptr;
  return formula.Reshape(formula.Transpose(data, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Expr RepeatHeads(Formula& formula, const Expr& data, int64_t heads) {
  const Shape shape = Formula::ShapeOf(data);
  if (!formula.ok() || shape[1] == heads) return data;
  const int64_t times = heads / shape[1];
  const Expr column = formula.Reshape(data, {shape[0], shape[1], 1, shape[2], shape[3]});
  const Expr repeated = formula.Broadcast(column, {shape[0], shape[1], times, shape[2], shape[3]});
  return formula.Reshape(repeated, {shape[0], heads, shape[2], shape[3]});
}

Expr Rotated(Formula& formula, const Expr& data, const Expr& cosine, const Expr& sine, bool interleaved) {
  if (!formula.ok()) return nullptr;
  const Shape shape = Formula::ShapeOf(data);
  const Shape angles = Formula::ShapeOf(cosine);
  if (shape.size() != 4 || angles.size() != 4 || 2 * angles[3] > shape[3])
    return formula.Refuse("cosines " + ToString(angles) + " do not turn " + ToString(shape) +
                          "; (batch, 1, length, half) turns (batch, heads, length, size)");
  const int64_t size = shape[3];
  const int64_t rotated = 2 * angles[3];
  const auto [first, second] = RotaryHalves(formula, rotated == size ? data : formula.Slice(data, 3, 0, rotated), interleaved);
  const Expr real = formula.Call("subtract", formula.Call("multiply", cosine, first), formula.Call("multiply", sine, second));
  const Expr imaginary = formula.Call("add", formula.Call("multiply", sine, first), formula.Call("multiply", cosine, second));
  const Expr result = JoinRotaryHalves(formula, real, imaginary, interleaved);
  return rotated < size ? formula.Concatenate({result, formula.Slice(data, 3, rotated, size)}, 3) : result;
}

}  // namespace collage::onnx_io
