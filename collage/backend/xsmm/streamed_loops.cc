#include "collage/backend/xsmm/streamed_loops.h"

#include <algorithm>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// All columns of some rows. An addition waits four cycles for the one before, and two are begun in each: so there are eight sums at least,
// where there are fewer rows and vectors than that several for every `sets`-th depth.
template <int64_t lanes, int64_t vectors, int64_t rows>
COLLAGE_INLINE void StreamedBlock(const StreamedProduct& product, int64_t row) {
  using Vector = typename Of<lanes>::Vector;
  constexpr int64_t sets = std::clamp<int64_t>(8 / (vectors * rows), 1, 4);
  constexpr int64_t ahead = kAheadBytes / static_cast<int64_t>(sizeof(float));
  Vector sums[sets][rows][vectors] = {};
  const float* data = product.data + row * product.data_row;
  const float* weights = product.weights;
  const auto add = [&](int64_t set) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v) {
      __builtin_prefetch(weights + v * lanes + ahead);
      const Vector weight = *reinterpret_cast<const Vector*>(weights + v * lanes);
#pragma GCC unroll 16
      for (int64_t r = 0; r < rows; ++r) sums[set][r][v] += data[r * product.data_row] * weight;
    }
    weights += vectors * lanes;
    ++data;
  };
  int64_t d = 0;
  for (; d + sets <= product.depth; d += sets) {
#pragma GCC unroll 16
    for (int64_t set = 0; set < sets; ++set) add(set);
  }
  for (; d < product.depth; ++d) add(0);
  AddSets<lanes>(sums);
#pragma GCC unroll 16
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v) {
      StoreColumns<lanes>(sums[0][r][v], product.columns - v * lanes, product.result + (row + r) * product.result_row + v * lanes);
    }
  }
}

template <int64_t lanes, int64_t vectors>
struct StreamedBlocks {
  const StreamedProduct& product;
  template <int64_t count>
  COLLAGE_INLINE void operator()(int64_t first) const {
    StreamedBlock<lanes, vectors, count>(product, first);
  }
};

template <int64_t lanes, int64_t most>
COLLAGE_INLINE void StreamedColumns(const StreamedProduct& product) {
  const int64_t vectors = (product.columns + lanes - 1) / lanes;
  if (vectors == 1) VisitInBlocks<most>(product.rows, StreamedBlocks<lanes, 1>{product});
  if (vectors == 2) VisitInBlocks<most>(product.rows, StreamedBlocks<lanes, 2>{product});
  if (vectors == 3) VisitInBlocks<most>(product.rows, StreamedBlocks<lanes, 3>{product});
  if (vectors == 4) VisitInBlocks<most>(product.rows, StreamedBlocks<lanes, 4>{product});
}

// Of 32 registers sums take 24, of 16 they take 12: four vectors of columns for six rows and for three.
COLLAGE_FOR_AVX512 void StreamedOfAvx512(const StreamedProduct& product) { StreamedColumns<16, kStreamedRows>(product); }
COLLAGE_FOR_AVX2 void StreamedOfAvx2(const StreamedProduct& product) { StreamedColumns<8, 3>(product); }

}  // namespace

StreamedLoop StreamedLoopFor(int64_t lanes) { return lanes == 16 ? StreamedOfAvx512 : StreamedOfAvx2; }

}  // namespace collage::xsmm
