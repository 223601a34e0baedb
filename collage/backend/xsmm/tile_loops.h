#pragma once

// Pointwise operators on one tile, while it is in the first-level cache: plain loops that the compiler turns into vectors, compiled once
// for each instruction set.

#include <cstdint>
#include <string_view>

namespace collage::xsmm {

/// Row r begins at data + r * row_stride. Its elements lie side by side, or all columns see the one element there.
struct TileView {
  const float* data;
  int64_t row_stride;
  bool one_a_row = false;
};

/// `result` may be the tile of `first` or `second` itself, but must not overlap them otherwise. One of the two has an element for each
/// column; a unary operator is given its argument as both.
struct TileArguments {
  int64_t rows;
  int64_t columns;
  TileView first;
  TileView second;
  float* result;
  int64_t result_stride;
  float alpha = 0;  ///< what the attributes of an operator say: slope, lower bound
  float beta = 0;   ///< upper bound
};

using TileLoop = void (*)(const TileArguments&);

/// The loop of an operator of the table (collage/op) of so many arguments, for this processor; "square" and "cube" beside them. Null where
/// there is none. Exponentials saturate instead of overflowing, which no operator here shows.
TileLoop FindTileLoop(std::string_view op, size_t arguments);

}  // namespace collage::xsmm
