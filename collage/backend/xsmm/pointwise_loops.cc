#include "collage/backend/xsmm/pointwise_loops.h"

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// Some pixels by some vectors of columns, summed in registers: that takes loops which are unrolled wholly.
template <int64_t lanes, int64_t vectors, int64_t pixels>
COLLAGE_INLINE void Block(const PixelProduct& product, int64_t pixel, int64_t column) {
  using Vector = typename Of<lanes>::Vector;
  Vector sums[pixels][vectors] = {};
  const float* data = product.data + pixel * product.data_pixel;
  const float* weights = product.weights + column;
  for (int64_t d = 0; d < product.depth; ++d, weights += product.columns) {
    Vector row[vectors];
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v) row[v] = *reinterpret_cast<const Vector*>(weights + v * lanes);
#pragma GCC unroll 16
    for (int64_t p = 0; p < pixels; ++p) {
      const float one = data[p * product.data_pixel + d];
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) sums[p][v] += one * row[v];
    }
  }
  StoreSums<lanes, pixels, vectors>(sums, product.bias ? product.bias + column : nullptr, product.low, product.high,
                                    product.result + pixel * product.result_pixel + column, product.result_pixel);
}

template <int64_t lanes, int64_t vectors, int64_t most_pixels>
COLLAGE_INLINE void Columns(const PixelProduct& product, int64_t column) {
  int64_t pixel = 0;
  for (; pixel + most_pixels <= product.pixels; pixel += most_pixels) Block<lanes, vectors, most_pixels>(product, pixel, column);
  for (; pixel + 2 <= product.pixels; pixel += 2) Block<lanes, vectors, 2>(product, pixel, column);
  if (pixel < product.pixels) Block<lanes, vectors, 1>(product, pixel, column);
}

// Of 32 registers sums take 24, of 16 they take 12; weights and a pixel take the rest.
COLLAGE_FOR_AVX512 void ProductOfAvx512(const PixelProduct& product) {
  int64_t column = 0;
  for (; column + 64 <= product.columns; column += 64) Columns<16, 4, 6>(product, column);
  if (column + 48 <= product.columns) {
    Columns<16, 3, 8>(product, column);
    column += 48;
  }
  if (column + 32 <= product.columns) {
    Columns<16, 2, 12>(product, column);
    column += 32;
  }
  if (column < product.columns) Columns<16, 1, 12>(product, column);
}

COLLAGE_FOR_AVX2 void ProductOfAvx2(const PixelProduct& product) {
  int64_t column = 0;
  for (; column + 24 <= product.columns; column += 24) Columns<8, 3, 4>(product, column);
  if (column + 16 <= product.columns) {
    Columns<8, 2, 6>(product, column);
    column += 16;
  }
  if (column < product.columns) Columns<8, 1, 8>(product, column);
}

}  // namespace

PixelProductLoop PixelProductLoopFor(int64_t lanes) { return lanes == 16 ? ProductOfAvx512 : ProductOfAvx2; }

}  // namespace collage::xsmm
