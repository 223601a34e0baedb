#include "collage/onnx/packed_bits.h"

namespace collage::onnx_io {

Expr Unpacked(NodeReader& node, Formula& formula, const Expr& bytes, int64_t bits, const Shape& shape) {
  if (bits == 8) return formula.Cast(formula.Reshape(bytes, shape), formula.dtype());
  // Not as operators on bits, which opset 17 has no form of.
  Formula integers(node, DType::kInt32);
  const Expr wide = integers.Cast(bytes, DType::kInt32);
  std::vector<Expr> numbers;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    const Expr shifted = integers.Call("divide", wide, static_cast<double>(1 << shift));
    numbers.push_back(integers.Call("floor_mod", shifted, static_cast<double>(1 << bits)));
  }
  const int64_t rows = Formula::ShapeOf(bytes)[0];
  const int64_t row = 8 / bits * Formula::ShapeOf(bytes)[1];
  const int64_t wanted = ElementCount(Shape(shape.begin() + 1, shape.end()));
  Expr flat = integers.Reshape(integers.Stack(numbers, -1), {rows, row});
  if (row > wanted) flat = integers.Slice(flat, 1, 0, wanted);  // zero points need not fill their last byte
  return formula.Cast(formula.Reshape(flat, shape), formula.dtype());
}

}  // namespace collage::onnx_io
