#include "collage/backend/xsmm/winograd_loops.h"

#include <algorithm>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

constexpr int64_t kTile = kWinogradTile;
constexpr int64_t kPatch = kWinogradPatch;

// With the points 0, 1, -1, 2, -2 and infinity. Both share what differs in sign only.
template <class Vector>
COLLAGE_INLINE void TransformData(const Vector (&d)[kPatch], Vector (&t)[kPatch]) {
  const Vector even = d[4] - 4 * d[2];
  const Vector odd = d[3] - 4 * d[1];
  const Vector difference = d[4] - d[2];
  const Vector twice = 2 * (d[3] - d[1]);
  t[0] = 4 * d[0] - 5 * d[2] + d[4];
  t[1] = even + odd;
  t[2] = even - odd;
  t[3] = difference + twice;
  t[4] = difference - twice;
  t[5] = 4 * d[1] - 5 * d[3] + d[5];
}

template <class Vector>
COLLAGE_INLINE void TransformProducts(const Vector (&m)[kPatch], Vector (&r)[kTile]) {
  const Vector sum_of_one = m[1] + m[2];
  const Vector difference_of_one = m[1] - m[2];
  const Vector sum_of_two = m[3] + m[4];
  const Vector difference_of_two = m[3] - m[4];
  r[0] = m[0] + sum_of_one + sum_of_two;
  r[1] = difference_of_one + 2 * difference_of_two;
  r[2] = sum_of_one + 4 * sum_of_two;
  r[3] = difference_of_one + 8 * difference_of_two + m[5];
}

// One vector of channels of a patch that lies wholly in memory.
template <class Vector>
COLLAGE_INLINE void TransformVector(const float* data, int64_t row_stride, int64_t pixel_stride, float* result, int64_t plane_stride) {
  Vector half[kPatch][kPatch];
  for (int64_t x = 0; x < kPatch; ++x) {
    Vector column[kPatch];
    Vector transformed[kPatch];
    for (int64_t y = 0; y < kPatch; ++y) column[y] = *reinterpret_cast<const Vector*>(data + y * row_stride + x * pixel_stride);
    TransformData(column, transformed);
    for (int64_t i = 0; i < kPatch; ++i) half[i][x] = transformed[i];
  }
  for (int64_t i = 0; i < kPatch; ++i) {
    Vector transformed[kPatch];
    TransformData(half[i], transformed);
    for (int64_t j = 0; j < kPatch; ++j) *reinterpret_cast<Vector*>(result + (i * kPatch + j) * plane_stride) = transformed[j];
  }
}

template <int64_t lanes>
COLLAGE_INLINE void TransformPatch(const WinogradPatch& patch) {
  using Vector = typename Of<lanes>::Vector;
  const bool is_inside = patch.first_row == 0 && patch.first_column == 0 && patch.last_row == kPatch && patch.last_column == kPatch;
  // Padding stays zero for all channels.
  Vector copy[kPatch][kPatch] = {};
  int64_t channel = 0;
  for (const float* block = patch.data; channel < patch.channels; block += patch.block_stride) {
    const int64_t end = std::min(channel + patch.block, patch.channels);
    for (const float* data = block; channel < end; channel += lanes, data += lanes) {
      if (is_inside) {
        TransformVector<Vector>(data, patch.row_stride, patch.pixel_stride, patch.result + channel, patch.plane_stride);
        continue;
      }
      for (int64_t y = patch.first_row; y < patch.last_row; ++y) {
        for (int64_t x = patch.first_column; x < patch.last_column; ++x)
          copy[y][x] = *reinterpret_cast<const Vector*>(data + y * patch.row_stride + x * patch.pixel_stride);
      }
      TransformVector<Vector>(reinterpret_cast<const float*>(&copy), kPatch * lanes, lanes, patch.result + channel, patch.plane_stride);
    }
  }
}

template <int64_t lanes>
COLLAGE_INLINE void TransformResults(const WinogradResults& tile) {
  using Vector = typename Of<lanes>::Vector;
  for (int64_t channel = 0; channel < tile.channels; channel += lanes) {
    Vector half[kTile][kPatch];
    for (int64_t j = 0; j < kPatch; ++j) {
      Vector column[kPatch];
      Vector transformed[kTile];
      for (int64_t i = 0; i < kPatch; ++i)
        column[i] = *reinterpret_cast<const Vector*>(tile.products + (i * kPatch + j) * tile.plane_stride + channel);
      TransformProducts(column, transformed);
      for (int64_t y = 0; y < kTile; ++y) half[y][j] = transformed[y];
    }
    for (int64_t y = 0; y < tile.rows; ++y) {
      Vector transformed[kTile];
      TransformProducts(half[y], transformed);
      float* row = tile.result + y * tile.row_stride + channel;
      for (int64_t x = 0; x < tile.columns; ++x) *reinterpret_cast<Vector*>(row + x * tile.pixel_stride) = transformed[x];
    }
  }
}

COLLAGE_FOR_AVX512 void PatchOfAvx512(const WinogradPatch& patch) { TransformPatch<16>(patch); }
COLLAGE_FOR_AVX512 void ResultsOfAvx512(const WinogradResults& tile) { TransformResults<16>(tile); }
COLLAGE_FOR_AVX2 void PatchOfAvx2(const WinogradPatch& patch) { TransformPatch<8>(patch); }
COLLAGE_FOR_AVX2 void ResultsOfAvx2(const WinogradResults& tile) { TransformResults<8>(tile); }

void TransformTaps(const float (&g)[3], float (&t)[kPatch]) {
  const float even = g[0] + g[2];
  const float far = g[0] / 24 + g[2] / 6;
  t[0] = g[0] / 4;
  t[1] = -(even + g[1]) / 6;
  t[2] = -(even - g[1]) / 6;
  t[3] = far + g[1] / 12;
  t[4] = far - g[1] / 12;
  t[5] = g[2];
}

}  // namespace

WinogradLoops WinogradLoopsFor(int64_t lanes) {
  if (lanes == 16) return {PatchOfAvx512, ResultsOfAvx512};
  return {PatchOfAvx2, ResultsOfAvx2};
}

void TransformWinogradWeights(const float* kernel, float (&planes)[kWinogradPlanes]) {
  float half[kPatch][3];
  for (int64_t x = 0; x < 3; ++x) {
    float transformed[kPatch];
    TransformTaps({kernel[x], kernel[3 + x], kernel[6 + x]}, transformed);
    for (int64_t i = 0; i < kPatch; ++i) half[i][x] = transformed[i];
  }
  for (int64_t i = 0; i < kPatch; ++i) {
    float transformed[kPatch];
    TransformTaps(half[i], transformed);
    std::copy_n(transformed, kPatch, planes + i * kPatch);
  }
}

}  // namespace collage::xsmm
