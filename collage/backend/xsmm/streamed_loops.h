#pragma once

// Products of so few rows that weights are read once, from memory, which such a product waits for. Compiled once for each instruction set.

#include <cstdint>

namespace collage::xsmm {

/// Rows that share one pass over the weights.
inline constexpr int64_t kStreamedRows = 6;

/// result[rows][columns] = data[rows][depth] x weights[depth][columns]. Numbers are elements.
struct StreamedProduct {
  const float* data;
  int64_t data_row;  ///< from row to row
  int64_t rows, depth;
  const float* weights;  ///< rows of columns in whole vectors follow one another
  int64_t columns;       ///< at most four vectors, the last of which need not be whole
  float* result;
  int64_t result_row;
};

using StreamedLoop = void (*)(const StreamedProduct&);

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
StreamedLoop StreamedLoopFor(int64_t lanes);

}  // namespace collage::xsmm
