#include "collage/backend/xsmm/winograd_loops.h"

#include <algorithm>
#include <array>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// The points, in pairs that differ in sign only; infinity comes last.
constexpr std::array<double, 5> kPoints = {0, 1, -1, 2, -2};

// Lanes are the parameter everywhere: a template that is given a type of vectors takes their alignment for the natural one.
template <int64_t patch, int64_t lanes>
COLLAGE_INLINE void TransformData(const typename Of<lanes>::Vector (&d)[patch], typename Of<lanes>::Vector (&t)[patch]) {
  using Vector = typename Of<lanes>::Vector;
  if constexpr (patch == 1) {
    t[0] = d[0];
  } else if constexpr (patch == 4) {
    t[0] = d[2] - d[0];
    t[1] = d[2] + d[1];
    t[2] = d[2] - d[1];
    t[3] = d[3] - d[1];
  } else {
    static_assert(patch == 6);
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
}

// Result i is the sum of the products, each times the i-th power of its point; infinity counts in the last one only.
template <int64_t patch, int64_t tile, int64_t lanes>
COLLAGE_INLINE void TransformProducts(const typename Of<lanes>::Vector (&m)[patch], typename Of<lanes>::Vector (&r)[tile]) {
  using Vector = typename Of<lanes>::Vector;
  if constexpr (patch == 1) {
    r[0] = m[0];
  } else {
    const Vector one[2] = {m[1] + m[2], m[1] - m[2]};
#pragma GCC unroll 5
    for (int64_t i = 0; i < tile; ++i) r[i] = one[i % 2];
    if constexpr (patch == 6) {
      const Vector two[2] = {m[3] + m[4], m[3] - m[4]};
#pragma GCC unroll 5
      for (int64_t i = 0; i < tile; ++i) r[i] += static_cast<float>(1 << i) * two[i % 2];
    }
    r[0] += m[0];
    r[tile - 1] += m[patch - 1];
  }
}

// One vector of channels of a patch that lies wholly in memory.
template <int64_t rows, int64_t columns, int64_t lanes>
COLLAGE_INLINE void TransformVector(const float* data, int64_t row_stride, int64_t pixel_stride, float* result, int64_t plane_stride) {
  using Vector = typename Of<lanes>::Vector;
  Vector half[rows][columns];
  for (int64_t x = 0; x < columns; ++x) {
    Vector column[rows];
    Vector transformed[rows];
    for (int64_t y = 0; y < rows; ++y) column[y] = *reinterpret_cast<const Vector*>(data + y * row_stride + x * pixel_stride);
    TransformData<rows, lanes>(column, transformed);
    for (int64_t i = 0; i < rows; ++i) half[i][x] = transformed[i];
  }
  for (int64_t i = 0; i < rows; ++i) {
    Vector transformed[columns];
    TransformData<columns, lanes>(half[i], transformed);
    for (int64_t j = 0; j < columns; ++j) *reinterpret_cast<Vector*>(result + (i * columns + j) * plane_stride) = transformed[j];
  }
}

template <int64_t rows, int64_t columns, int64_t lanes>
COLLAGE_INLINE void TransformPatch(const WinogradPatch& patch) {
  using Vector = typename Of<lanes>::Vector;
  const bool is_inside = patch.first_row == 0 && patch.first_column == 0 && patch.last_row == rows && patch.last_column == columns;
  // Padding stays zero for all channels.
  Vector copy[rows][columns] = {};
  int64_t channel = 0;
  for (const float* block = patch.data; channel < patch.channels; block += patch.block_stride) {
    const int64_t end = std::min(channel + patch.block, patch.channels);
    for (const float* data = block; channel < end; channel += lanes, data += lanes) {
      if (is_inside) {
        TransformVector<rows, columns, lanes>(data, patch.row_stride, patch.pixel_stride, patch.result + channel, patch.plane_stride);
        continue;
      }
      for (int64_t y = patch.first_row; y < patch.last_row; ++y) {
        for (int64_t x = patch.first_column; x < patch.last_column; ++x)
          copy[y][x] = *reinterpret_cast<const Vector*>(data + y * patch.row_stride + x * patch.pixel_stride);
      }
      TransformVector<rows, columns, lanes>(reinterpret_cast<const float*>(&copy), columns * lanes, lanes, patch.result + channel,
                                            patch.plane_stride);
    }
  }
}

template <int64_t patch_rows, int64_t patch_columns, int64_t rows, int64_t columns, int64_t lanes>
COLLAGE_INLINE void TransformResults(const WinogradResults& tile) {
  using Vector = typename Of<lanes>::Vector;
  for (int64_t channel = 0; channel < tile.channels; channel += lanes) {
    Vector half[rows][patch_columns];
    for (int64_t j = 0; j < patch_columns; ++j) {
      Vector column[patch_rows];
      Vector transformed[rows];
      for (int64_t i = 0; i < patch_rows; ++i)
        column[i] = *reinterpret_cast<const Vector*>(tile.products + (i * patch_columns + j) * tile.plane_stride + channel);
      TransformProducts<patch_rows, rows, lanes>(column, transformed);
      for (int64_t y = 0; y < rows; ++y) half[y][j] = transformed[y];
    }
    for (int64_t y = 0; y < tile.rows; ++y) {
      Vector transformed[columns];
      TransformProducts<patch_columns, columns, lanes>(half[y], transformed);
      float* row = tile.result + y * tile.row_stride + channel;
      for (int64_t x = 0; x < tile.columns; ++x) *reinterpret_cast<Vector*>(row + x * tile.pixel_stride) = transformed[x];
    }
  }
}

template <int64_t rows, int64_t columns>
COLLAGE_FOR_AVX512 void PatchOfAvx512(const WinogradPatch& patch) {
  TransformPatch<rows, columns, 16>(patch);
}
template <int64_t patch_rows, int64_t patch_columns, int64_t rows, int64_t columns>
COLLAGE_FOR_AVX512 void ResultsOfAvx512(const WinogradResults& tile) {
  TransformResults<patch_rows, patch_columns, rows, columns, 16>(tile);
}
template <int64_t rows, int64_t columns>
COLLAGE_FOR_AVX2 void PatchOfAvx2(const WinogradPatch& patch) {
  TransformPatch<rows, columns, 8>(patch);
}
template <int64_t patch_rows, int64_t patch_columns, int64_t rows, int64_t columns>
COLLAGE_FOR_AVX2 void ResultsOfAvx2(const WinogradResults& tile) {
  TransformResults<patch_rows, patch_columns, rows, columns, 8>(tile);
}

struct Record {
  WinogradSizes sizes;
  WinogradLoops avx512, avx2;
};

template <int64_t tile_down, int64_t taps_down, int64_t tile_across, int64_t taps_across>
constexpr Record RecordOf() {
  constexpr int64_t kRows = tile_down + taps_down - 1;
  constexpr int64_t kColumns = tile_across + taps_across - 1;
  return {{{tile_down, taps_down}, {tile_across, taps_across}},
          {PatchOfAvx512<kRows, kColumns>, ResultsOfAvx512<kRows, kColumns, tile_down, tile_across>},
          {PatchOfAvx2<kRows, kColumns>, ResultsOfAvx2<kRows, kColumns, tile_down, tile_across>}};
}

template <int64_t tile, int64_t taps>
constexpr std::array<Record, 3> RecordsOf() {
  return {RecordOf<tile, taps, tile, taps>(), RecordOf<1, 1, tile, taps>(), RecordOf<tile, taps, 1, 1>()};
}

constexpr std::array kRecords = {RecordsOf<3, 2>(), RecordsOf<2, 3>(), RecordsOf<5, 2>(),
                                 RecordsOf<4, 3>(), RecordsOf<3, 4>(), RecordsOf<2, 5>()};

// As many kernels as are transformed at once.
constexpr int64_t kKernels = 8;
typedef double Kernels __attribute__((vector_size(kKernels * sizeof(double))));

}  // namespace

WinogradLoops WinogradLoopsFor(const WinogradSizes& sizes, int64_t lanes) {
  for (const auto& records : kRecords) {
    for (const Record& record : records) {
      if (record.sizes.down == sizes.down && record.sizes.across == sizes.across) return lanes == 16 ? record.avx512 : record.avx2;
    }
  }
  return {};
}

WinogradWeights::WinogradWeights(const WinogradSizes& sizes)
    : sizes_(sizes), down_(MatrixOf(sizes.down)), across_(MatrixOf(sizes.across)) {}

// The kernel's polynomial at each point, divided by the product of the point's distances from the others: with that the data's transform is
// one of integers.
WinogradWeights::Matrix WinogradWeights::MatrixOf(const WinogradSize& size) {
  Matrix matrix = {};
  const auto points = static_cast<size_t>(size.patch() - 1);
  const auto taps = static_cast<size_t>(size.taps);
  for (size_t i = 0; i < points; ++i) {
    double value = 1;
    for (size_t other = 0; other < points; ++other) {
      if (other != i) value /= kPoints[i] - kPoints[other];
    }
    for (size_t tap = 0; tap < taps; ++tap, value *= kPoints[i]) matrix[i][tap] = value;
  }
  matrix[points][taps - 1] = 1;
  return matrix;
}

COLLAGE_FOR_AVX2 void WinogradWeights::Transform(const float* kernels, int64_t stride, int64_t count, float* planes,
                                                 int64_t plane_stride) const {
  const auto [down, across] = sizes_;
  for (int64_t first = 0; first < count; first += kKernels) {
    const int64_t some = std::min(kKernels, count - first);
    Kernels taps[kMostTaps * kMostTaps] = {};
    for (int64_t k = 0; k < some; ++k) {
      const float* kernel = kernels + (first + k) * stride;
      for (int64_t tap = 0; tap < down.taps * across.taps; ++tap) taps[tap][k] = kernel[tap];
    }
    float* plane = planes + first;
    for (int64_t i = 0; i < down.patch(); ++i) {
      Kernels row[kMostTaps] = {};
      for (int64_t y = 0; y < down.taps; ++y) {
        for (int64_t x = 0; x < across.taps; ++x)
          row[x] += down_[static_cast<size_t>(i)][static_cast<size_t>(y)] * taps[y * across.taps + x];
      }
      for (int64_t j = 0; j < across.patch(); ++j, plane += plane_stride) {
        Kernels value = {};
        for (int64_t x = 0; x < across.taps; ++x) value += across_[static_cast<size_t>(j)][static_cast<size_t>(x)] * row[x];
        for (int64_t k = 0; k < some; ++k) plane[k] = static_cast<float>(value[k]);
      }
    }
  }
}

}  // namespace collage::xsmm
