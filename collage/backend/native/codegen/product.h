#pragma once

// Sums of products over a register tile: what convolutions and matrix products have in common.

#include <memory>

#include "collage/backend/native/codegen/emitter.h"

namespace collage::native {

/// result[outer, row, column] = sum over the reduction of left(outer, row) * right(outer, row, column). Neighbouring columns
/// are lanes of a vector; a few rows share each vector of `right`, and each scalar of `left` is used for a few vectors.
struct ProductSpec {
  int64_t outer = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  std::vector<int64_t> reduction;  ///< extents of the summation loops, innermost first
  Halide::Type type = Halide::Float(32);
  /// Rows in one tile must divide this (rows that share `right`); any number where it is zero.
  int64_t row_group = 0;
  int64_t tile_rows = 0;     ///< wished rows of a tile; 0 for PickTile's choice. A wish that does not fit is not granted
  int64_t tile_vectors = 0;  ///< wished columns of a tile, in vectors; likewise
  /// Columns are packed in panels of ProductTile's width: tiles must begin at multiples of it.
  bool packed_columns = false;
  /// Tiles of one column panel after another (else tiles of one row panel): what is held while the other streams.
  bool columns_outermost = false;

  using Factor =
      std::function<Halide::Expr(const Halide::Expr& outer, const Halide::Expr& row, const Halide::Expr& column, const Halide::RDom& r)>;
  Factor left;   ///< must not depend on the column
  Factor right;  ///< may depend on the row through row / row_group only

  [[nodiscard]] int64_t Depth() const;
};

/// Size of the register tile.
struct ProductTile {
  int64_t rows;
  int64_t columns;
};
ProductTile PickTile(const ProductSpec& spec, int lanes);

/// A stage over [outer, rows, columns] with its schedule.
Emitter::Anchor MakeProduct(Emitter& emitter, const ProductSpec& spec);

}  // namespace collage::native
