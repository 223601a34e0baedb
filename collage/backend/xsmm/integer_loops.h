#pragma once

// Products of few rows with weights of 8 bits, which are widened in registers: of each weight a quarter of the bytes is read. Compiled once
// for each instruction set.

#include <cstdint>

namespace collage::xsmm {

/// Weights of a column at so many depths lie side by side.
inline constexpr int64_t kIntegerDepths = 4;

/// result[rows][columns] = (data[rows][depth] x weights[depth][columns]) x scales[columns]. Numbers are elements.
struct IntegerProduct {
  const float* data;
  int64_t data_row;  ///< from row to row
  int64_t rows, depth;
  /// [depth / kIntegerDepths][columns][kIntegerDepths], columns in whole vectors, depths rounded up. What is beyond the depth is not used.
  const int8_t* weights;
  const float* scales;  ///< of whole vectors of columns
  int64_t columns;      ///< at most four vectors, the last of which need not be whole
  float* result;
  int64_t result_row;
};

using IntegerProductLoop = void (*)(const IntegerProduct&);

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
IntegerProductLoop IntegerProductLoopFor(int64_t lanes);

}  // namespace collage::xsmm
