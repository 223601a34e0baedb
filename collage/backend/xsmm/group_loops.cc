#include "collage/backend/xsmm/group_loops.h"

#include <algorithm>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// Each lane gets the element of one vector, or of two counted through both, that it is told. Clang, which compiles for the sanitizers, has
// no builtin for numbers that are known at run time alone.
template <int64_t lanes, bool reads_two>
COLLAGE_INLINE void Permute(const float* first, const float* second, const int32_t* lane_from, float* to) {
#ifdef __clang__
  for (int64_t lane = 0; lane < lanes; ++lane)
    to[lane] = lane_from[lane] < lanes ? first[lane_from[lane]] : second[lane_from[lane] - lanes];
#else
  using Vector = typename Of<lanes>::Vector;
  const auto from = *reinterpret_cast<const typename Of<lanes>::Bits*>(lane_from);
  if constexpr (reads_two) {
    *reinterpret_cast<Vector*>(to) =
        __builtin_shuffle(*reinterpret_cast<const Vector*>(first), *reinterpret_cast<const Vector*>(second), from);
  } else {
    *reinterpret_cast<Vector*>(to) = __builtin_shuffle(*reinterpret_cast<const Vector*>(first), from);
  }
#endif
}

// A copy of the row stays in registers: what is stored might be the row itself, for all that the compiler knows.
template <int64_t lanes, bool reads_two>
COLLAGE_INLINE void Spread(const SpreadRow row) {
  float* to = row.spread;
  for (int64_t x = 0; x < row.pixels; ++x) {
    const float* pixel = row.data + x * row.data_pixel;
    // Pixels lie too far apart for the processor to see them coming. Spreading eight takes about as long as the third-level cache does.
    constexpr int64_t kAhead = 8;
    __builtin_prefetch(pixel + kAhead * row.data_pixel + row.channels[0].first);
    for (int64_t j = 0; j < row.depth; ++j, to += lanes) {
      const SpreadChannel& channel = row.channels[j];
      Permute<lanes, reads_two>(pixel + channel.first, pixel + channel.second, channel.lane_from.data(), to);
    }
  }
}

// Sums for `pixels` pixels side by side in registers. A weight is read once for all of them. Taps side by side that are not dilated read
// what follows one another, so that they are one loop.
template <int64_t lanes, int64_t pixels>
COLLAGE_INLINE void SumInRegisters(const GroupedRow& row, int64_t x) {
  using Vector = typename Of<lanes>::Vector;
  Vector sums[pixels][1] = {};
  const int64_t pixel = row.depth * lanes;
  const int64_t step = row.stride * pixel;
  const bool is_dilated = row.dilation > 1;
  const int64_t runs = is_dilated ? row.taps : 1;
  const int64_t length = is_dilated ? pixel : row.taps * pixel;
  for (int64_t r = 0; r < row.row_count; ++r) {
    const float* spread = row.rows[r].spread + x * step;
    const float* weights = row.rows[r].weights;
    for (int64_t run = 0; run < runs; ++run, spread += row.dilation * pixel, weights += length) {
      for (int64_t j = 0; j < length; j += lanes) {
        const Vector weight = *reinterpret_cast<const Vector*>(weights + j);
#pragma GCC unroll 16
        for (int64_t p = 0; p < pixels; ++p) sums[p][0] += weight * *reinterpret_cast<const Vector*>(spread + p * step + j);
      }
    }
  }
  StoreSums<lanes, pixels, 1>(sums, row.bias, row.low, row.high, row.result + x * row.result_pixel, row.result_pixel);
}

template <int64_t lanes, int64_t most>
COLLAGE_INLINE void SumBlock(const GroupedRow& row, int64_t x, int64_t pixels) {
  if (pixels == most) return SumInRegisters<lanes, most>(row, x);
  if constexpr (most > 1) SumBlock<lanes, most - 1>(row, x, pixels);
}

// Blocks of at most `most` pixels, as equal as can be: each register holds a sum, and a block of few would wait for each of them.
template <int64_t lanes, int64_t most>
COLLAGE_INLINE void Convolve(const GroupedRow& row) {
  const int64_t blocks = (row.count + most - 1) / most;
  for (int64_t block = 0, x = 0; block < blocks; ++block) {
    const int64_t pixels = (row.count - x + blocks - block - 1) / (blocks - block);
    SumBlock<lanes, most>(row, x, pixels);
    x += pixels;
  }
}

COLLAGE_FOR_AVX512 void SpreadOneOfAvx512(const SpreadRow& row) { Spread<16, false>(row); }
COLLAGE_FOR_AVX512 void SpreadTwoOfAvx512(const SpreadRow& row) { Spread<16, true>(row); }
COLLAGE_FOR_AVX2 void SpreadOneOfAvx2(const SpreadRow& row) { Spread<8, false>(row); }
COLLAGE_FOR_AVX2 void SpreadTwoOfAvx2(const SpreadRow& row) { Spread<8, true>(row); }

// Of 32 registers and of 16: enough to hide what a multiply-add takes, and images of ResNets are multiples of 14 wide.
constexpr int64_t kPixelsOfAvx512 = 14;
constexpr int64_t kPixelsOfAvx2 = 12;
COLLAGE_FOR_AVX512 void ConvolveOfAvx512(const GroupedRow& row) { Convolve<16, kPixelsOfAvx512>(row); }
COLLAGE_FOR_AVX2 void ConvolveOfAvx2(const GroupedRow& row) { Convolve<8, kPixelsOfAvx2>(row); }

}  // namespace

GroupLoops GroupLoopsFor(int64_t lanes) {
  if (lanes == 16) return {SpreadOneOfAvx512, SpreadTwoOfAvx512, ConvolveOfAvx512, kPixelsOfAvx512};
  return {SpreadOneOfAvx2, SpreadTwoOfAvx2, ConvolveOfAvx2, kPixelsOfAvx2};
}

std::vector<SpreadChannel> SpreadChannels(int64_t inputs, int64_t outputs, int64_t groups, int64_t first, int64_t lanes) {
  if (inputs < lanes) return {};
  const auto channel_of = [&](int64_t lane, int64_t j) { return (first + lane) / (outputs / groups) * (inputs / groups) + j; };
  // Where one vector holds all that is read of a pixel, all read that one.
  const bool is_near = channel_of(lanes - 1, inputs / groups - 1) - channel_of(0, 0) < lanes;
  std::vector<SpreadChannel> channels;
  for (int64_t j = 0; j < inputs / groups; ++j) {
    SpreadChannel channel{{}, std::min(channel_of(0, is_near ? 0 : j), inputs - lanes), 0};
    channel.second = std::min(channel.first + lanes, inputs - lanes);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const bool is_in_first = channel_of(lane, j) < channel.first + lanes;
      const int64_t from = is_in_first ? channel_of(lane, j) - channel.first : channel_of(lane, j) - channel.second + lanes;
      if (from >= 2 * lanes) return {};
      channel.lane_from[static_cast<size_t>(lane)] = static_cast<int32_t>(from);
    }
    channels.push_back(channel);
  }
  return channels;
}

}  // namespace collage::xsmm
