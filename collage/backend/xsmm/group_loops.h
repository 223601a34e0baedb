#pragma once

// Convolutions in groups of fewer channels than a vector has lanes, channels last. What the lanes of a vector of results read of a pixel
// lies in different groups, so it is spread over the lanes first; then a tap is one multiplication and addition for each channel of a group
// and nothing is multiplied by zero. Compiled once for each instruction set.

#include <array>
#include <cstdint>
#include <vector>

namespace collage::xsmm {

/// What the lanes of one vector of results read of a pixel for one channel of their groups.
struct SpreadChannel {
  alignas(64) std::array<int32_t, 16> lane_from;  ///< for each lane: an element of two vectors of the data, counted through both
  int64_t first, second;                          ///< from which channels on these are read
};

/// Some pixels of one row of the data, spread. Numbers are elements.
struct SpreadRow {
  const float* data;  ///< the first of these pixels
  int64_t data_pixel;
  int64_t pixels;
  const SpreadChannel* channels;  ///< for each channel of a group
  int64_t depth;                  ///< of these
  float* spread;                  ///< [pixels][depth][lanes]
};

/// Some pixels of one row of the result, for one vector of channels.
struct GroupedRow {
  struct WindowRow {
    const float* spread;   ///< the pixel that the first tap of the first result reads
    const float* weights;  ///< [taps][depth][lanes]
  };
  const WindowRow* rows;  ///< those of the window that lie in the data
  int64_t row_count;
  int64_t taps, depth, stride, dilation;  ///< across
  const float* bias;                      ///< of these channels; null for none
  float low, high;                        ///< which the results are kept within
  int64_t count;                          ///< pixels
  float* result;
  int64_t result_pixel;
};

struct GroupLoops {
  void (*spread_one)(const SpreadRow&);  ///< where no lane reads the second vectors
  void (*spread_two)(const SpreadRow&);
  void (*convolve)(const GroupedRow&);
  int64_t pixels;  ///< whose sums are in registers at once
};

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
GroupLoops GroupLoopsFor(int64_t lanes);

/// How `inputs` channels in `groups` groups are spread over the `lanes` channels of the result from `first` on, of `outputs`. Empty where
/// some vector would need more than two vectors of the data.
std::vector<SpreadChannel> SpreadChannels(int64_t inputs, int64_t outputs, int64_t groups, int64_t first, int64_t lanes);

}  // namespace collage::xsmm
