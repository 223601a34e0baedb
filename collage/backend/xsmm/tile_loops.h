#pragma once

// Pointwise operators on one tile, while it is in the first-level cache: loops compiled once for each instruction set.

#include <cstdint>
#include <string_view>

namespace collage::xsmm {

/// Row r begins at data + r * row_stride. Its elements lie side by side, or all columns see the one element there.
struct TileView {
  const float* data = nullptr;
  int64_t row_stride = 0;
  bool one_a_row = false;
};

/// What is absent of a sum.
inline constexpr float kZero = 0;

/// `result` may be the tile of an argument itself, but must not overlap it otherwise. Of two arguments one has an element for each column,
/// of three the first.
struct TileArguments {
  int64_t rows;
  int64_t columns;
  TileView first;
  TileView second;
  TileView third;
  float* result;
  int64_t result_stride;
  float alpha = 0;  ///< what the attributes of an operator say: slope, lower bound
  float beta = 0;   ///< upper bound
};

using TileLoop = void (*)(const TileArguments&);

/// The loop of an operator of the table (collage/op) of one or two arguments, for this processor; beside them "square", "cube" and the
/// activations of written_out_activation.h. With three arguments, what a unary one makes of their sum, and the sum itself for "". Null
/// where there is none. Exponentials saturate instead of overflowing, which no operator here shows.
TileLoop FindTileLoop(std::string_view op, size_t arguments);
/// As above, for vectors of so many elements: 16 with AVX-512, 8 with AVX2.
TileLoop FindTileLoop(std::string_view op, size_t arguments, int64_t lanes);

}  // namespace collage::xsmm
