#pragma once

// Products of few rows that are added to what is there, as a recurrent layer takes one in each step. Compiled once for each instruction
// set.

#include <cstdint>

namespace collage::xsmm {

/// Vectors of columns that one call takes at most.
inline constexpr int64_t kGateVectors = 4;

/// sums[rows][vectors] += state[rows][depth] x weights[depth][vectors]. Numbers are elements.
struct GateProduct {
  const float* state;
  int64_t state_row;  ///< from row to row
  int64_t rows, depth;
  const float* weights;  ///< [depth][vectors][lanes]
  int64_t vectors;       ///< at most kGateVectors
  float* sums;
  int64_t sums_row;
  int64_t places[kGateVectors];  ///< where each vector begins in a row of the sums
};

using GateProductLoop = void (*)(const GateProduct&);

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
GateProductLoop GateProductLoopFor(int64_t lanes);

}  // namespace collage::xsmm
