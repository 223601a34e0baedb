#pragma once

// What lies between the two products of attention, on rows of scores that are in the second-level cache. Compiled once for each
// instruction set.

#include <cstdint>

namespace collage::xsmm {

struct SoftmaxLoops {
  /// Each score times a factor.
  void (*scale)(float* row, int64_t count, float factor);
  /// Each score plus one number of a row.
  void (*add)(float* row, int64_t count, const float* addend);
  /// Each score plus the same number.
  void (*shift)(float* row, int64_t count, float addend);
  /// `otherwise` where a byte of `choice` says `replaced`.
  void (*select)(float* row, int64_t count, const uint8_t* choice, bool replaced, float otherwise);
  /// The exponentials of a row of at least one score, each less the largest of them. Returns their sum. Saturates at exp(-80). The row has
  /// room for whole vectors, and nothing of worth behind its scores.
  float (*exponentials)(float* row, int64_t count);
  /// to[i] = from[i] * factor
  void (*copy_scaled)(const float* from, int64_t count, float factor, float* to);
};

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
SoftmaxLoops SoftmaxLoopsFor(int64_t lanes);

}  // namespace collage::xsmm
