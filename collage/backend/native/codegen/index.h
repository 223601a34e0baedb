#pragma once

// Where an element is, said in loop variables. A tensor's flat row-major position is cut into digits (a mixed radix number);
// reshapes and transposes only regroup digits, so an address that is linear in the loops stays linear, and no division is left
// in the code where none is needed. A digit that the loops do not provide whole is remembered as a wish ("cut here"); a stage is
// built a second time with its loops cut accordingly. (Halide's simplifier alone leaves divisions and gathers in such code.)

#include <Halide.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "collage/tensor/tensor_type.h"

namespace collage::native {

/// A loop of constant extent, and the positions at which somebody wanted it cut.
struct Loop {
  Halide::Expr variable;
  int64_t extent = 1;
  std::set<int64_t> cuts;
};

/// One digit: (loop / divisor) % extent; or, where `loop` is null, an opaque expression in [0, extent).
struct Digit {
  Loop* loop = nullptr;
  int64_t divisor = 1;
  int64_t extent = 1;
  Halide::Expr opaque;
};

/// Position in one dimension: digits, most significant first, plus a constant. Digits of extent one are left out.
struct DimensionIndex {
  std::vector<Digit> digits;
  int64_t offset = 0;

  /// Number of positions that the digits run over.
  [[nodiscard]] int64_t Span() const;
};

/// One entry a dimension.
using Index = std::vector<DimensionIndex>;

/// A digit with the distance, in elements, that one step of it moves.
struct Term {
  Digit digit;
  int64_t stride;
};

/// The sum of terms and a constant as an expression. Adjacent terms that continue each other become one.
Halide::Expr Linear(const std::vector<Term>& terms, int64_t constant);
/// The position in one dimension as an expression.
Halide::Expr ToExpr(const DimensionIndex& index);
/// An expression known to lie in [0, extent).
DimensionIndex Opaque(Halide::Expr expr, int64_t extent);
/// Address of an element of a row-major tensor.
Halide::Expr Address(const Index& index, const Shape& shape);
/// The same flat position in another shape of as many elements.
Index Regroup(const Index& index, const Shape& from, const Shape& to);
/// Indices of an argument that NumPy-broadcasts to the shape that `index` is for.
Index Broadcast(const Index& index, const Shape& argument);
/// Equal for equal positions; a key for caches.
std::string Key(const Index& index);

}  // namespace collage::native
