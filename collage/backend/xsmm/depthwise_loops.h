#pragma once

// Depthwise convolutions, channels last: each channel by a window of its own. Compiled once for each instruction set.

#include <cstdint>

namespace collage::xsmm {

/// Rows of a window that one result may read: what a thread can point to without allocating.
inline constexpr int64_t kMostWindowRows = 64;

/// Some pixels of one row of the result, for some channels. Numbers are elements.
struct DepthwiseRow {
  const float* const* rows;  ///< for each row of the window that lies in the image, the data of its first pixel
  int64_t row_count;         ///< of these; with none the result is zero
  int64_t data_pixel;        ///< from pixel to pixel of the data
  int64_t width;             ///< pixels of a row of the data
  const float* weights;      ///< of the first of these rows of the window: [rows][taps], `weight_stride` apart
  int64_t taps;              ///< across the window
  int64_t weight_stride;
  int64_t stride, dilation, pad_begin;  ///< across
  int64_t channels;
  const float* bias;     ///< added to the sums; null for none
  float low, high;       ///< which the results are kept within
  int64_t first, count;  ///< pixels of the result
  float* result;         ///< of the first of these
  int64_t result_pixel;
};

using DepthwiseLoop = void (*)(const DepthwiseRow&);

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2. Of fewer channels it takes one at a time.
DepthwiseLoop DepthwiseLoopFor(int64_t lanes);

}  // namespace collage::xsmm
