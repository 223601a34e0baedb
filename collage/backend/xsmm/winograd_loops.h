#pragma once

// The transforms of Winograd's algorithm F(m x m, r x r): m by m results of a convolution by r x r take (m + r - 1)^2 multiplications
// instead of m^2 r^2 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). Compiled once for each instruction set.

#include <array>
#include <cstdint>

namespace collage::xsmm {

/// The algorithm along one dimension.
struct WinogradSize {
  int64_t tile = 1;  ///< results
  int64_t taps = 1;  ///< of the kernel
  /// Data that the results come from, and multiplications: 4 with the points 0, 1, -1 and infinity; 6 with 2 and -2 besides; 1 where
  /// nothing is transformed.
  [[nodiscard]] int64_t patch() const { return tile + taps - 1; }
  friend bool operator==(const WinogradSize&, const WinogradSize&) = default;
};

struct WinogradSizes {
  WinogradSize down, across;
  [[nodiscard]] int64_t planes() const { return down.patch() * across.patch(); }
};

/// A patch of pixels, each with channels in blocks. Numbers are elements.
struct WinogradPatch {
  const float* data;  ///< where its first pixel lies, or would lie if it is padding
  int64_t row_stride, pixel_stride, block_stride;
  int64_t channels, block;  ///< multiples of a vector
  /// Of its rows and columns those from the first to before the last are in the image; others are zero.
  int64_t first_row, last_row, first_column, last_column;
  float* result;  ///< its channels side by side; element (i, j) of the transform lies in plane i * columns of a patch + j
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
  void (*transform_patch)(const WinogradPatch&) = nullptr;
  void (*transform_results)(const WinogradResults&) = nullptr;
};

/// For vectors of so many elements: 16 with AVX-512, 8 with AVX2. There are loops for patches of 4 and 6 in both dimensions alike, and of 1
/// in one of them; null for others.
WinogradLoops WinogradLoopsFor(const WinogradSizes& sizes, int64_t lanes);

/// The transform of weights, in double precision.
class WinogradWeights {
 public:
  explicit WinogradWeights(const WinogradSizes& sizes);

  /// Of `count` kernels [taps down][taps across] that lie `stride` elements apart. Element k of a plane is of kernel k, and planes lie
  /// `plane_stride` elements apart. For processors with AVX2.
  void Transform(const float* kernels, int64_t stride, int64_t count, float* planes, int64_t plane_stride) const;

 private:
  static constexpr int64_t kMostTaps = 5;                                // a tile of 2 of a patch of 6
  static constexpr int64_t kMostPatch = 6;                               // one element for each point, and for infinity
  using Matrix = std::array<std::array<double, kMostTaps>, kMostPatch>;  // element of the patch, tap
  static Matrix MatrixOf(const WinogradSize& size);

  WinogradSizes sizes_;
  Matrix down_, across_;
};

}  // namespace collage::xsmm
