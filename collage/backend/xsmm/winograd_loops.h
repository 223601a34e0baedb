#pragma once

// The transforms of Winograd's algorithm F(4x4, 3x3): four by four results of a convolution by 3x3 take 36 multiplications instead of 144
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). Compiled once for each instruction set.

#include <cstdint>

namespace collage::xsmm {

inline constexpr int64_t kWinogradTile = 4;   ///< results along each dimension
inline constexpr int64_t kWinogradPatch = 6;  ///< data along each dimension that they come from
inline constexpr int64_t kWinogradPlanes = kWinogradPatch * kWinogradPatch;
inline constexpr int64_t kWinogradTaps = 9;  ///< of a kernel, 3 by 3

/// A patch of pixels, each with channels in blocks. Numbers are elements.
struct WinogradPatch {
  const float* data;  ///< where its first pixel lies, or would lie if it is padding
  int64_t row_stride, pixel_stride, block_stride;
  int64_t channels, block;  ///< multiples of a vector
  /// Of its rows and columns those from the first to before the last are in the image; others are zero.
  int64_t first_row, last_row, first_column, last_column;
  float* result;  ///< its channels side by side; element (i, j) of the transform lies in plane 6 i + j
  int64_t plane_stride;
};

/// The results of one tile for some channels.
struct WinogradResults {
  const float* products;  ///< channels side by side, as in a patch's result
  int64_t plane_stride;
  int64_t channels;       ///< a multiple of a vector
  int64_t rows, columns;  ///< of the tile that are in the result
  float* result;          ///< of the first pixel
  int64_t row_stride, pixel_stride;
};

struct WinogradLoops {
  void (*transform_patch)(const WinogradPatch&);
  void (*transform_results)(const WinogradResults&);
};

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2.
WinogradLoops WinogradLoopsFor(int64_t lanes);

/// The transform of one 3x3 kernel, by plane.
void TransformWinogradWeights(const float* kernel, float (&planes)[kWinogradPlanes]);

}  // namespace collage::xsmm
