#include "collage/backend/xsmm/packing.h"

#include <algorithm>

namespace collage::xsmm {
namespace {

int64_t MatrixCount(const Tiling& tiling) {
  int64_t columns = 0;
  for (const Tiling::Panel& panel : tiling.panels) columns += panel.count;
  return columns * tiling.depth * static_cast<int64_t>(tiling.packing->term_offsets.size());
}

// A square of 8 x 8 in registers of AVX2, which every processor has that this backend runs on.
constexpr int64_t kSquare = 8;
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));

// Neighbours are exchanged at distances of 1, 2 and 4: after each, pairs of rows hold pairs, quadruples and all eight of a column.
__attribute__((target("avx2"))) void TransposeSquare(const float* source, int64_t source_stride, float* target, int64_t target_stride) {
  Eight rows[kSquare];
  Eight pairs[kSquare];
  for (int64_t i = 0; i < kSquare; ++i) rows[i] = *reinterpret_cast<const Eight*>(source + i * source_stride);
  for (int64_t i = 0; i < kSquare; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int64_t i = 0; i < kSquare; i += 4) {
    for (int64_t half = 0; half < 2; ++half) {
      rows[i + 2 * half] = __builtin_shufflevector(pairs[i + half], pairs[i + half + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      rows[i + 2 * half + 1] = __builtin_shufflevector(pairs[i + half], pairs[i + half + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int64_t i = 0; i < kSquare / 2; ++i) {
    *reinterpret_cast<Eight*>(target + i * target_stride) = __builtin_shufflevector(rows[i], rows[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<Eight*>(target + (i + 4) * target_stride) = __builtin_shufflevector(rows[i], rows[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace

int64_t PackedCount(const Tiling& tiling) { return MatrixCount(tiling) * static_cast<int64_t>(tiling.packing->matrices.size()); }

void Pack(const Tiling& tiling, const float* constant, float* packed) {
  const Packing& packing = *tiling.packing;
  for (const int64_t matrix : packing.matrices) {
    int64_t first = 0;
    for (const Tiling::Panel& panel : tiling.panels) {
      for (const int64_t term : packing.term_offsets) {
        for (int64_t d = 0; d < tiling.depth; ++d) {
          const float* from = constant + matrix + term + d * packing.depth_stride + first * packing.column_stride;
          for (int64_t c = 0; c < panel.count; ++c) *packed++ = from[c * packing.column_stride];
        }
      }
      first += panel.count;
    }
  }
}

void TransposePanel(const float* source, int64_t source_stride, int64_t columns, int64_t depth, float* target) {
  const int64_t square_columns = columns / kSquare * kSquare;
  const int64_t square_depth = depth / kSquare * kSquare;
  for (int64_t d = 0; d < square_depth; d += kSquare) {
    for (int64_t c = 0; c < square_columns; c += kSquare)
      TransposeSquare(source + c * source_stride + d, source_stride, target + d * columns + c, columns);
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t d = c < square_columns ? square_depth : 0; d < depth; ++d) target[d * columns + c] = source[c * source_stride + d];
  }
}

}  // namespace collage::xsmm
