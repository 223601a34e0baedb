#include "collage/backend/xsmm/depthwise_loops.h"

#include <algorithm>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// The taps of a window that lie in the image, across.
struct Taps {
  int64_t first, last;
};

// Sums for `pixels` pixels side by side and `vectors` vectors of channels, in registers. A weight is read once for all pixels.
template <int64_t lanes, int64_t pixels, int64_t vectors>
COLLAGE_INLINE void SumInRegisters(const DepthwiseRow& row, const Taps& taps, int64_t x, int64_t channel) {
  using Vector = typename Of<lanes>::Vector;
  Vector sums[pixels][vectors] = {};
  const int64_t step = row.stride * row.data_pixel;
  const int64_t begin = (x * row.stride - row.pad_begin) * row.data_pixel + channel;
  for (int64_t r = 0; r < row.row_count; ++r) {
    const float* data = row.rows[r] + (begin + taps.first * row.dilation * row.data_pixel);
    const float* weights = row.weights + (r * row.taps + taps.first) * row.weight_stride + channel;
    for (int64_t tap = taps.first; tap < taps.last; ++tap) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) {
        const Vector weight = *reinterpret_cast<const Vector*>(weights + v * lanes);
#pragma GCC unroll 16
        for (int64_t p = 0; p < pixels; ++p) sums[p][v] += weight * *reinterpret_cast<const Vector*>(data + p * step + v * lanes);
      }
      data += row.dilation * row.data_pixel;
      weights += row.weight_stride;
    }
  }
  float* result = row.result + (x - row.first) * row.result_pixel + channel;
  StoreSums<lanes, pixels, vectors>(sums, row.bias ? row.bias + channel : nullptr, row.low, row.high, result, row.result_pixel);
}

// All channels of some pixels. The last vector reaches back over channels that are done already, which come out the same.
template <int64_t lanes, int64_t pixels, int64_t vectors>
COLLAGE_INLINE void AllChannels(const DepthwiseRow& row, const Taps& taps, int64_t x) {
  int64_t channel = 0;
  for (; channel + vectors * lanes <= row.channels; channel += vectors * lanes)
    SumInRegisters<lanes, pixels, vectors>(row, taps, x, channel);
  while (channel < row.channels) {
    SumInRegisters<lanes, pixels, 1>(row, taps, x, std::min(channel, row.channels - lanes));
    channel += lanes;
  }
}

// A pixel beside the padding, with the taps that it has: several vectors at a time, so that no sum waits for the one before.
template <int64_t lanes>
COLLAGE_INLINE void AtEdge(const DepthwiseRow& row, int64_t x) {
  const int64_t begin = x * row.stride - row.pad_begin;
  Taps taps{0, row.taps};
  while (taps.first < taps.last && begin + taps.first * row.dilation < 0) ++taps.first;
  while (taps.last > taps.first && begin + (taps.last - 1) * row.dilation >= row.width) --taps.last;
  AllChannels<lanes, 1, 4>(row, taps, x);
}

template <int64_t lanes>
COLLAGE_INLINE void Row(const DepthwiseRow& row) {
  const int64_t end = row.first + row.count;
  const auto ceiling = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  // Pixels of which all taps lie in the image.
  const int64_t room = row.width - 1 + row.pad_begin - (row.taps - 1) * row.dilation;
  const int64_t first_inside = std::clamp(ceiling(row.pad_begin, row.stride), row.first, end);
  const int64_t last_inside = room < 0 ? first_inside : std::clamp(room / row.stride + 1, first_inside, end);
  const Taps all{0, row.taps};
  int64_t x = row.first;
  for (; x < first_inside; ++x) AtEdge<lanes>(row, x);
  // Eight sums hide the latency of the multiply-add of current processors: 4 cycles, two a cycle. AVX2 has registers for no more.
  for (; x + 8 <= last_inside; x += 8) AllChannels<lanes, 8, 1>(row, all, x);
  for (; x + 4 <= last_inside; x += 4) AllChannels<lanes, 4, 2>(row, all, x);
  for (; x < last_inside; ++x) AllChannels<lanes, 1, 4>(row, all, x);
  for (; x < end; ++x) AtEdge<lanes>(row, x);
}

COLLAGE_FOR_AVX512 void RowOfAvx512(const DepthwiseRow& row) {
  if (row.channels < 16) return Row<1>(row);
  Row<16>(row);
}
COLLAGE_FOR_AVX2 void RowOfAvx2(const DepthwiseRow& row) {
  if (row.channels < 8) return Row<1>(row);
  Row<8>(row);
}

}  // namespace

DepthwiseLoop DepthwiseLoopFor(int64_t lanes) { return lanes == 16 ? RowOfAvx512 : RowOfAvx2; }

}  // namespace collage::xsmm
