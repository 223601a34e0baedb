#include "collage/backend/xsmm/strassen_loops.h"

#include <algorithm>
#include <bit>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// Of a magnitude; those of infinity and of what is no number are the largest.
COLLAGE_INLINE uint32_t MagnitudeBits(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffU; }
constexpr uint32_t kInfinity = 0x7f800000U;

// The largest of all sums, as far as it tells whether all are finite.
template <bool has_lower>
COLLAGE_INLINE uint32_t SumRow(const StrassenRows& rows, int64_t row) {
  const float* const upper = rows.upper + row * rows.row_stride;
  const float* const lower = rows.lower + row * rows.row_stride;
  float* const low_less_a11 = rows.sums + row * rows.sum_row;
  float* const low = low_less_a11 + rows.sum_stride;
  float* const left = low + rows.sum_stride;
  float* const all = left + rows.sum_stride;
  uint32_t largest = 0;
#pragma GCC ivdep
  for (int64_t d = 0; d < rows.half_depth; ++d) {
    const float a11 = upper[d];
    const float a12 = upper[rows.half_depth + d];
    const float a21 = has_lower ? lower[d] : 0;
    const float a22 = has_lower ? lower[rows.half_depth + d] : 0;
    const float sum = a21 + a22;
    low_less_a11[d] = sum - a11;
    low[d] = sum;
    left[d] = a11 - a21;
    all[d] = a12 - (sum - a11);
    // The other two are no sums of their own: where one of them is not finite, this is not.
    largest = std::max(largest, std::max(MagnitudeBits(all[d]), MagnitudeBits(left[d])));
  }
  return largest;
}

COLLAGE_INLINE bool SumRows(const StrassenRows& rows) {
  uint32_t largest = 0;
  for (int64_t row = 0; row < rows.lower_rows; ++row) largest = std::max(largest, SumRow<true>(rows, row));
  for (int64_t row = rows.lower_rows; row < rows.upper_rows; ++row) largest = std::max(largest, SumRow<false>(rows, row));
  return largest < kInfinity;
}

COLLAGE_INLINE void SumProducts(float* first, const float* second, const float* third, float* sums, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float sum = first[i] + second[i];
    sums[i] = sum;
    first[i] = sum + third[i];
  }
}

COLLAGE_INLINE void Add(float* to, const float* from, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

COLLAGE_FOR_AVX512 bool SumRowsOfAvx512(const StrassenRows& rows) { return SumRows(rows); }
COLLAGE_FOR_AVX2 bool SumRowsOfAvx2(const StrassenRows& rows) { return SumRows(rows); }
COLLAGE_FOR_AVX512 void SumProductsOfAvx512(float* first, const float* second, const float* third, float* sums, int64_t count) {
  SumProducts(first, second, third, sums, count);
}
COLLAGE_FOR_AVX2 void SumProductsOfAvx2(float* first, const float* second, const float* third, float* sums, int64_t count) {
  SumProducts(first, second, third, sums, count);
}
COLLAGE_FOR_AVX512 void AddOfAvx512(float* to, const float* from, int64_t count) { Add(to, from, count); }
COLLAGE_FOR_AVX2 void AddOfAvx2(float* to, const float* from, int64_t count) { Add(to, from, count); }

}  // namespace

StrassenLoops StrassenLoopsFor(int64_t lanes) {
  if (lanes == 16) return {SumRowsOfAvx512, SumProductsOfAvx512, AddOfAvx512};
  return {SumRowsOfAvx2, SumProductsOfAvx2, AddOfAvx2};
}

}  // namespace collage::xsmm
