#pragma once

// What Strassen's algorithm adds, in Winograd's form of it (Winograd, "On multiplication of 2 x 2 matrices", 1971): sums of quarters of the
// left operand before the products, and of products behind them. Compiled once for each instruction set.

#include <cstdint>

namespace collage::xsmm {

/// Rows of A = (A11 A12; A21 A22), and the four sums of its quarters that are multiplied. Numbers are elements.
struct StrassenRows {
  const float* upper;  ///< of A11
  const float* lower;  ///< of A21
  int64_t row_stride;
  int64_t upper_rows, lower_rows;  ///< as many, or one fewer: that row is zero
  int64_t half_depth;
  /// A21 + A22 - A11, A21 + A22, A11 - A21 and A11 + A12 - A21 - A22.
  float* sums;
  int64_t sum_row, sum_stride;  ///< from row to row, and from sum to sum
};

struct StrassenLoops {
  /// False where a sum is not finite.
  bool (*sum_rows)(const StrassenRows&);
  /// sums = first + second; first += second + third.
  void (*sum_products)(float* first, const float* second, const float* third, float* sums, int64_t count);
  /// to += from
  void (*add)(float* to, const float* from, int64_t count);
};

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
StrassenLoops StrassenLoopsFor(int64_t lanes);

}  // namespace collage::xsmm
