#include "collage/backend/xsmm/packing.h"

#include <algorithm>

namespace collage::xsmm {
namespace {

int64_t MatrixCount(const Tiling& tiling) {
  int64_t columns = 0;
  for (const Tiling::Panel& panel : tiling.panels) columns += panel.count;
  return columns * tiling.depth * static_cast<int64_t>(tiling.row_terms.size());
}

// Small enough for what is read of each column to stay in the first-level cache until the next elements of it are wanted.
constexpr int64_t kTransposed = 16;

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

std::vector<int64_t> PanelTerms(const Tiling& tiling, int64_t columns) {
  std::vector<int64_t> terms;
  for (size_t term = 0; term < tiling.row_terms.size(); ++term) terms.push_back(static_cast<int64_t>(term) * tiling.depth * columns);
  return terms;
}

void TransposePanel(const float* source, int64_t source_stride, int64_t columns, int64_t depth, float* target) {
  for (int64_t d = 0; d < depth; d += kTransposed) {
    const int64_t end = std::min(d + kTransposed, depth);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = d; i < end; ++i) target[i * columns + c] = source[c * source_stride + i];
    }
  }
}

}  // namespace collage::xsmm
