#include "collage/backend/xsmm/panel_loops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// Weights come from memory once and in order, and the prefetchers of processors end with a page of 4 KiB; so the next page is asked for.
constexpr int64_t kAheadWords = 4096 / static_cast<int64_t>(sizeof(uint32_t));

template <int64_t lanes>
struct WordsOf {
  typedef int32_t Vector __attribute__((vector_size(lanes * sizeof(int32_t)), aligned(1), may_alias));
};

// Weight number `index` of each word as a number. Sixteen floats fit a register of AVX-512, and one instruction picks by the lowest four
// bits; elsewhere shifts move the weight to the top and back with its sign. GCC 12 takes the conversion of a vector of bytes apart, and
// shifts take no longer where weights come from memory. Clang has no shuffle by a variable.
template <int64_t lanes, int64_t bits>
COLLAGE_INLINE void Widen(const uint32_t* words, int64_t index, typename Of<lanes>::Vector& weight) {
  if constexpr (bits == 32) {
    weight = *reinterpret_cast<const typename Of<lanes>::Vector*>(words);
  } else {
    const auto packed = *reinterpret_cast<const typename WordsOf<lanes>::Vector*>(words);
#if !defined(__clang__)
    if constexpr (lanes == 16 && bits == 4) {
      const typename Of<lanes>::Vector numbers = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
      weight = __builtin_shuffle(numbers, packed >> static_cast<int>(bits * index));
      return;
    }
#endif
    const auto at_top = packed << static_cast<int>(32 - bits - bits * index);
    weight = __builtin_convertvector(at_top >> static_cast<int>(32 - bits), typename Of<lanes>::Vector);
  }
}

// Adds one depth of some rows and columns.
template <int64_t lanes, int64_t bits, int64_t vectors, int64_t rows>
COLLAGE_INLINE void Add(const float* data, int64_t data_row, const uint32_t* words, int64_t index,
                        typename Of<lanes>::Vector (&sums)[rows][vectors]) {
#pragma GCC unroll 16
  for (int64_t v = 0; v < vectors; ++v) {
    if (index == 0) __builtin_prefetch(words + v * lanes + kAheadWords);
    typename Of<lanes>::Vector weight;
    Widen<lanes, bits>(words + v * lanes, index, weight);
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) sums[r][v] += data[r * data_row] * weight;
  }
}

template <int64_t lanes>
COLLAGE_INLINE void Store(const typename Of<lanes>::Vector& vector, int64_t columns, float* result) {
  using Vector = typename Of<lanes>::Vector;
  if (columns >= lanes) {
    *reinterpret_cast<Vector*>(result) = vector;
  } else {
    std::memcpy(result, &vector, static_cast<size_t>(columns) * sizeof(float));
  }
}

// All columns of some rows. An addition waits four cycles for the one before, and two are begun in each: so there are eight sums at least,
// where there are fewer rows and vectors than that several for every `sets`-th depth. Totals are touched once a block and may be in memory.
template <int64_t lanes, int64_t bits, int64_t vectors, int64_t rows>
COLLAGE_INLINE void Rows(const PanelTile& tile, int64_t row) {
  using Vector = typename Of<lanes>::Vector;
  constexpr int64_t sets = std::clamp<int64_t>(8 / (vectors * rows), 1, 4);
  constexpr int64_t in_word = 32 / bits;
  constexpr int64_t words = std::max<int64_t>(1, sets / in_word);  // so that each set gets as many depths
  const PackedPanel& panel = tile.panel;
  const int64_t block_words = panel.block / in_word * vectors * lanes;
  Vector totals[rows][vectors] = {};
  const uint32_t* weights = panel.weights;
  for (int64_t first = 0, block = 0; first < panel.depth; first += panel.block, ++block) {
    const uint32_t* scales = weights;
    if (bits < 32) weights += vectors * lanes;
    const uint32_t* offsets = weights;
    if (panel.has_offsets) weights += vectors * lanes;
    Vector sums[sets][rows][vectors] = {};
    const float* data = tile.data + row * tile.data_row + first;
    const int64_t count = std::min(panel.block, panel.depth - first);
    const uint32_t* word = weights;
    int64_t d = 0;
    for (; d + words * in_word <= count; d += words * in_word) {
#pragma GCC unroll 16
      for (int64_t w = 0; w < words; ++w, word += vectors * lanes) {
#pragma GCC unroll 16
        for (int64_t index = 0; index < in_word; ++index)
          Add<lanes, bits, vectors, rows>(data + d + w * in_word + index, tile.data_row, word, index, sums[(w * in_word + index) % sets]);
      }
    }
    for (; d < count; ++d)
      Add<lanes, bits, vectors, rows>(data + d, tile.data_row, weights + d / in_word * vectors * lanes, d % in_word, sums[0]);
    weights += block_words;
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) {
        Vector sum = sums[0][r][v];
#pragma GCC unroll 16
        for (int64_t set = 1; set < sets; ++set) sum += sums[set][r][v];
        totals[r][v] += bits < 32 ? sum * *reinterpret_cast<const Vector*>(scales + v * lanes) : sum;
        if (panel.has_offsets)
          totals[r][v] += tile.sums[(row + r) * tile.sums_row + block] * *reinterpret_cast<const Vector*>(offsets + v * lanes);
      }
    }
  }
#pragma GCC unroll 16
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v)
      Store<lanes>(totals[r][v], panel.columns - v * lanes, tile.result + (row + r) * tile.result_row + v * lanes);
  }
}

template <int64_t lanes, int64_t bits, int64_t vectors>
struct Blocks {
  const PanelTile& tile;
  template <int64_t rows>
  COLLAGE_INLINE void operator()(int64_t first) const {
    Rows<lanes, bits, vectors, rows>(tile, first);
  }
};

template <int64_t lanes, int64_t most, int64_t bits>
COLLAGE_INLINE void Columns(const PanelTile& tile) {
  const int64_t vectors = (tile.panel.columns + lanes - 1) / lanes;
  if (vectors == 1) VisitInBlocks<most>(tile.rows, Blocks<lanes, bits, 1>{tile});
  if (vectors == 2) VisitInBlocks<most>(tile.rows, Blocks<lanes, bits, 2>{tile});
  if (vectors == 3) VisitInBlocks<most>(tile.rows, Blocks<lanes, bits, 3>{tile});
  if (vectors == 4) VisitInBlocks<most>(tile.rows, Blocks<lanes, bits, 4>{tile});
}

template <int64_t lanes, int64_t bits, int64_t vectors>
COLLAGE_INLINE void WidenAll(const PackedPanel& panel, float* widened) {
  using Vector = typename Of<lanes>::Vector;
  constexpr int64_t in_word = 32 / bits;
  const uint32_t* weights = panel.weights;
  for (int64_t first = 0; first < panel.depth; first += panel.block) {
    const auto* scales = reinterpret_cast<const Vector*>(weights);
    weights += vectors * lanes;
    const auto* offsets = reinterpret_cast<const Vector*>(weights);
    if (panel.has_offsets) weights += vectors * lanes;
    const int64_t count = std::min(panel.block, panel.depth - first);
    for (int64_t d = 0; d < count; ++d, widened += vectors * lanes) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) {
        Vector weight;
        Widen<lanes, bits>(weights + (d / in_word * vectors + v) * lanes, d % in_word, weight);
        weight *= scales[v];
        if (panel.has_offsets) weight += offsets[v];
        *reinterpret_cast<Vector*>(widened + v * lanes) = weight;
      }
    }
    weights += panel.block / in_word * vectors * lanes;
  }
}

template <int64_t lanes, int64_t bits>
COLLAGE_INLINE void WidenColumns(const PackedPanel& panel, float* widened) {
  const int64_t vectors = (panel.columns + lanes - 1) / lanes;
  if (vectors == 1) WidenAll<lanes, bits, 1>(panel, widened);
  if (vectors == 2) WidenAll<lanes, bits, 2>(panel, widened);
  if (vectors == 3) WidenAll<lanes, bits, 3>(panel, widened);
  if (vectors == 4) WidenAll<lanes, bits, 4>(panel, widened);
}

// Of 32 registers sums take 24, of 16 they take 12: four vectors of columns for six rows and for three.
template <int64_t bits>
COLLAGE_FOR_AVX512 void OfAvx512(const PanelTile& tile) {
  Columns<16, kPanelRows, bits>(tile);
}
template <int64_t bits>
COLLAGE_FOR_AVX2 void OfAvx2(const PanelTile& tile) {
  Columns<8, kPanelRows / 2, bits>(tile);
}

template <int64_t bits>
COLLAGE_FOR_AVX512 void WidenOfAvx512(const PackedPanel& panel, float* widened) {
  WidenColumns<16, bits>(panel, widened);
}
template <int64_t bits>
COLLAGE_FOR_AVX2 void WidenOfAvx2(const PackedPanel& panel, float* widened) {
  WidenColumns<8, bits>(panel, widened);
}

template <int64_t bits>
PanelLoop LoopFor(int64_t lanes) {
  return lanes == 16 ? OfAvx512<bits> : OfAvx2<bits>;
}

}  // namespace

PanelLoop PanelLoopFor(int64_t lanes, int64_t bits) {
  if (bits == 4) return LoopFor<4>(lanes);
  return bits == 8 ? LoopFor<8>(lanes) : LoopFor<32>(lanes);
}

PanelWidener PanelWidenerFor(int64_t lanes, int64_t bits) {
  if (bits == 4) return lanes == 16 ? WidenOfAvx512<4> : WidenOfAvx2<4>;
  return lanes == 16 ? WidenOfAvx512<8> : WidenOfAvx2<8>;
}

void SumBlocks(const float* data, int64_t depth, int64_t block, float* sums) {
  for (int64_t first = 0; first < depth; first += block)
    *sums++ = std::accumulate(data + first, data + std::min(first + block, depth), 0.0F);
}

}  // namespace collage::xsmm
