#include "collage/onnx/packed_bits.h"

#include <algorithm>
#include <cmath>

namespace collage::onnx_io {

Result<Expr> Unpacked(NodeReader& node, Formula& formula, const Expr& bytes, int64_t bits, const Shape& shape, First first) {
  if (bits == 8) return COLLAGE_TRY(formula.Done(formula.Cast(formula.Reshape(bytes, shape), formula.dtype())))[0];
  // Not as operators on bits, which opset 17 has no form of.
  Formula integers(node, DType::kInt32);
  const Expr wide = integers.Cast(bytes, DType::kInt32);
  const double numbers = std::exp2(bits);
  std::vector<Expr> parts;
  for (int64_t bit = 0; bit < 8; bit += bits) {
    const Expr rest = bit == 0 ? wide : integers.Call("divide", wide, std::exp2(bit));
    parts.push_back(bit + bits == 8 ? rest : integers.Call("floor_mod", rest, numbers));
  }
  if (first == First::kHigh) std::reverse(parts.begin(), parts.end());
  const int64_t rows = shape[0];
  const int64_t row = Formula::ShapeOf(bytes)[1] * static_cast<int64_t>(parts.size());
  const int64_t wanted = ElementCount(Shape(shape.begin() + 1, shape.end()));
  Expr flat = integers.Reshape(integers.Stack(parts, -1), {rows, row});
  if (row > wanted) flat = integers.Slice(flat, 1, 0, wanted);
  COLLAGE_TRY(integers.Done(flat));
  return COLLAGE_TRY(formula.Done(formula.Cast(formula.Reshape(flat, shape), formula.dtype())))[0];
}

}  // namespace collage::onnx_io
