#include "collage/backend/xsmm/nbits_loops.h"

#include <algorithm>
#include <numeric>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

template <int64_t lanes>
struct NBitsWordsOf {
  typedef int32_t Vector __attribute__((vector_size(lanes * sizeof(int32_t)), aligned(1), may_alias));
};

// Weight number `index` of each word as a number. Sixteen floats fit a register of AVX-512, and one instruction picks by the lowest four
// bits; elsewhere shifts move the weight to the top and back with its sign. Clang has no such shuffle by a variable.
template <int64_t lanes, int64_t bits>
COLLAGE_INLINE void Widen(const typename NBitsWordsOf<lanes>::Vector& words, int64_t index, typename Of<lanes>::Vector& weight) {
#if !defined(__clang__)
  if constexpr (lanes == 16 && bits == 4) {
    const typename Of<lanes>::Vector numbers = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    weight = __builtin_shuffle(numbers, words >> static_cast<int>(bits * index));
    return;
  }
#endif
  const auto at_top = words << static_cast<int>(32 - bits - bits * index);
  weight = __builtin_convertvector(at_top >> static_cast<int>(32 - bits), typename Of<lanes>::Vector);
}

// All columns of some rows. An addition waits four cycles for the one before, and two are begun in each: so there are eight sums at least,
// where there are fewer rows and vectors than that several for every `sets`-th depth.
template <int64_t lanes, int64_t bits, int64_t vectors, int64_t rows>
COLLAGE_INLINE void NBitsBlock(const NBitsTile& tile, int64_t row) {
  using Vector = typename Of<lanes>::Vector;
  using Words = typename NBitsWordsOf<lanes>::Vector;
  constexpr int64_t in_word = 32 / bits;
  constexpr int64_t sets = std::clamp<int64_t>(8 / (vectors * rows), 1, 4);
  const int64_t words_of_block = tile.block / in_word;
  Vector totals[rows][vectors] = {};
  const float* data = tile.data + row * tile.data_row;
  const uint32_t* weights = tile.weights;
  for (int64_t first = 0, block = 0; first < tile.depth; first += tile.block, ++block) {
    const uint32_t* scales = weights;
    weights += vectors * lanes;
    const uint32_t* offsets = weights;
    if (tile.sums) weights += vectors * lanes;
    const uint32_t* end = weights + words_of_block * vectors * lanes;
    Vector sums[sets][rows][vectors] = {};
    const auto add = [&](const float* number, int64_t index) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) {
        if (index == 0) __builtin_prefetch(weights + v * lanes + kAheadBytes / static_cast<int64_t>(sizeof(uint32_t)));
        Vector weight;
        Widen<lanes, bits>(*reinterpret_cast<const Words*>(weights + v * lanes), index, weight);
#pragma GCC unroll 16
        for (int64_t r = 0; r < rows; ++r) sums[index % sets][r][v] += number[r * tile.data_row] * weight;
      }
    };
    const int64_t count = std::min(tile.block, tile.depth - first);
    int64_t d = 0;
    for (; d + in_word <= count; d += in_word, weights += vectors * lanes) {
#pragma GCC unroll 16
      for (int64_t index = 0; index < in_word; ++index) add(data + first + d + index, index);
    }
#pragma GCC unroll 16
    for (int64_t index = 0; index < in_word; ++index) {
      if (d + index < count) add(data + first + d + index, index);
    }
    weights = end;
    AddSets<lanes>(sums);
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) {
        totals[r][v] += sums[0][r][v] * *reinterpret_cast<const Vector*>(scales + v * lanes);
        if (tile.sums) totals[r][v] += tile.sums[(row + r) * tile.sums_row + block] * *reinterpret_cast<const Vector*>(offsets + v * lanes);
      }
    }
  }
#pragma GCC unroll 16
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v)
      StoreColumns<lanes>(totals[r][v], tile.columns - v * lanes, tile.result + (row + r) * tile.result_row + v * lanes);
  }
}

template <int64_t lanes, int64_t bits, int64_t vectors>
struct NBitsRows {
  const NBitsTile& tile;
  template <int64_t count>
  COLLAGE_INLINE void operator()(int64_t first) const {
    NBitsBlock<lanes, bits, vectors, count>(tile, first);
  }
};

// Three rows of four vectors are 12 sums and as many totals, of 32 registers. Of 16, those of AVX2, some wait in memory.
template <int64_t lanes, int64_t bits>
COLLAGE_INLINE void NBitsColumns(const NBitsTile& tile) {
  const int64_t vectors = (tile.columns + lanes - 1) / lanes;
  if (vectors == 1) VisitInBlocks<3>(tile.rows, NBitsRows<lanes, bits, 1>{tile});
  if (vectors == 2) VisitInBlocks<3>(tile.rows, NBitsRows<lanes, bits, 2>{tile});
  if (vectors == 3) VisitInBlocks<3>(tile.rows, NBitsRows<lanes, bits, 3>{tile});
  if (vectors == 4) VisitInBlocks<3>(tile.rows, NBitsRows<lanes, bits, 4>{tile});
}

COLLAGE_FOR_AVX512 void FourBitsOfAvx512(const NBitsTile& tile) { NBitsColumns<16, 4>(tile); }
COLLAGE_FOR_AVX512 void EightBitsOfAvx512(const NBitsTile& tile) { NBitsColumns<16, 8>(tile); }
COLLAGE_FOR_AVX2 void FourBitsOfAvx2(const NBitsTile& tile) { NBitsColumns<8, 4>(tile); }
COLLAGE_FOR_AVX2 void EightBitsOfAvx2(const NBitsTile& tile) { NBitsColumns<8, 8>(tile); }

}  // namespace

NBitsLoop NBitsLoopFor(int64_t lanes, int64_t bits) {
  if (lanes == 16) return bits == 4 ? FourBitsOfAvx512 : EightBitsOfAvx512;
  return bits == 4 ? FourBitsOfAvx2 : EightBitsOfAvx2;
}

void SumBlocks(const float* data, int64_t depth, int64_t block, float* sums) {
  for (int64_t first = 0; first < depth; first += block)
    *sums++ = std::accumulate(data + first, data + std::min(first + block, depth), 0.0F);
}

}  // namespace collage::xsmm
