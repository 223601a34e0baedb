#pragma once

// What lies between the two products of attention and no loop over tiles does (tile_loops.h), on rows of scores. Compiled once for each
// instruction set.

#include <cstdint>

namespace collage::xsmm {

struct SoftmaxLoops {
  /// `otherwise` where a byte of `choice` says `replaced`.
  void (*select)(float* row, int64_t count, const uint8_t* choice, bool replaced, float otherwise);
  /// The exponentials of a row of at least one score, each less the largest of them. Returns their sum. Saturates at exp(-80). The row has
  /// room for whole vectors, and nothing of worth behind its scores.
  float (*exponentials)(float* row, int64_t count);
};

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
SoftmaxLoops SoftmaxLoopsFor(int64_t lanes);

}  // namespace collage::xsmm
