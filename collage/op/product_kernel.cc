#include "collage/op/product_kernel.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collage/op/reference_team.h"

namespace collage {
namespace {

// Register tile: 4 rows of 16 doubles. A block of `right` (256 x 128 doubles, 256 KiB) stays in the second-level cache while
// all rows pass over it.
constexpr int64_t kTileRows = 4;
constexpr int64_t kTileColumns = 16;
constexpr int64_t kBlockRows = 512;
constexpr int64_t kBlockColumns = 128;
constexpr int64_t kBlockDepth = 256;

template <int64_t lanes>
struct Of {
  typedef double Lanes __attribute__((vector_size(lanes * sizeof(double)), aligned(8), may_alias));
};

// accumulator[r, 0..16) += sum over k of left[k, r] * right[k, 0..16), rows of the accumulator being `stride` apart. Two vectors of a
// row at a time: eight sums fit the registers of every instruction set, and wider vectors than it has would go through memory.
template <int64_t lanes>
__attribute__((always_inline)) inline void TileBody(const double* left, const double* right, int64_t depth, int64_t stride,
                                                    double* accumulator) {
  using Lanes = typename Of<lanes>::Lanes;
  for (int64_t column = 0; column < kTileColumns; column += 2 * lanes, right += 2 * lanes, accumulator += 2 * lanes) {
    Lanes sums[kTileRows][2];
    for (int64_t r = 0; r < kTileRows; ++r) {
      sums[r][0] = *reinterpret_cast<const Lanes*>(accumulator + r * stride);
      sums[r][1] = *reinterpret_cast<const Lanes*>(accumulator + r * stride + lanes);
    }
    for (int64_t k = 0; k < depth; ++k) {
      const Lanes low = *reinterpret_cast<const Lanes*>(right + k * kTileColumns);
      const Lanes high = *reinterpret_cast<const Lanes*>(right + k * kTileColumns + lanes);
#pragma GCC unroll 4
      for (int64_t r = 0; r < kTileRows; ++r) {
        const double factor = left[k * kTileRows + r];
        sums[r][0] += factor * low;
        sums[r][1] += factor * high;
      }
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      *reinterpret_cast<Lanes*>(accumulator + r * stride) = sums[r][0];
      *reinterpret_cast<Lanes*>(accumulator + r * stride + lanes) = sums[r][1];
    }
  }
}

using Tile = void (*)(const double* left, const double* right, int64_t depth, int64_t stride, double* accumulator);

void TilePortable(const double* left, const double* right, int64_t depth, int64_t stride, double* accumulator) {
  TileBody<2>(left, right, depth, stride, accumulator);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void TileAvx2(const double* left, const double* right, int64_t depth, int64_t stride,
                                                  double* accumulator) {
  TileBody<4>(left, right, depth, stride, accumulator);
}

__attribute__((target("avx512f,avx2,fma"))) void TileAvx512(const double* left, const double* right, int64_t depth, int64_t stride,
                                                            double* accumulator) {
  TileBody<8>(left, right, depth, stride, accumulator);
}
#endif

// Chosen by hand: the resolvers that target_clones makes run before sanitizers are ready.
Tile ChooseTile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")) return TileAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return TileAvx2;
#endif
  return TilePortable;
}

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Few blocks would leave most of a team idle. Each of them packs `right` again: with 64 rows for 128 operations an element.
int64_t BlockRows(int64_t rows, int64_t across) {
  constexpr int64_t kEnoughBlocks = 32;  // several for each thread of most teams, so that none waits long for the last one
  constexpr int64_t kLeastRows = 64;
  const int64_t wanted = RoundUp(rows * across, kEnoughBlocks) / kEnoughBlocks;
  return std::clamp(RoundUp(wanted, kTileRows), kLeastRows, kBlockRows);
}

// One block of rows by one block of columns, over the whole depth.
class Block {
 public:
  explicit Block(const BlockedProduct& product)
      : product_(product), tile_(ChooseTile()), stride_(RoundUp(std::min(product.columns, kBlockColumns), kTileColumns)) {
    row_.resize(std::max(kBlockColumns, kBlockDepth));
    // Of small products, of which attention has one a head, clearing more would take longer than computing.
    const int64_t depth = std::min(product.depth, kBlockDepth);
    right_.resize(static_cast<size_t>(stride_ * depth));
    left_.resize(static_cast<size_t>(kTileRows * depth));
    accumulator_.resize(static_cast<size_t>(RoundUp(std::min(product.rows, kBlockRows), kTileRows) * stride_));
  }

  void Compute(int64_t first_row, int64_t rows, int64_t first_column, int64_t columns) {
    std::fill(accumulator_.begin(), accumulator_.end(), 0.0);
    for (int64_t first_k = 0; first_k < product_.depth; first_k += kBlockDepth) {
      const int64_t depth = std::min(kBlockDepth, product_.depth - first_k);
      PackRight(first_k, depth, first_column, columns);
      for (int64_t row = 0; row < rows; row += kTileRows) {
        PackLeft(first_row + row, std::min(kTileRows, rows - row), first_k, depth);
        for (int64_t column = 0; column < columns; column += kTileColumns) {
          tile_(left_.data(), right_.data() + column * depth, depth, stride_, accumulator_.data() + row * stride_ + column);
        }
      }
    }
    for (int64_t row = 0; row < rows; ++row) product_.store(first_row + row, first_column, columns, accumulator_.data() + row * stride_);
  }

 private:
  // Panels of 16 columns, each [k][16]; columns beyond the end keep what was there and never leave the accumulator.
  void PackRight(int64_t first_k, int64_t depth, int64_t first_column, int64_t columns) {
    for (int64_t k = 0; k < depth; ++k) {
      product_.right(first_k + k, first_column, columns, row_.data());
      for (int64_t column = 0; column < columns; column += kTileColumns) {
        std::memcpy(right_.data() + column * depth + k * kTileColumns, row_.data() + column, kTileColumns * sizeof(double));
      }
    }
  }

  // [k][4]; rows beyond the end likewise.
  void PackLeft(int64_t first_row, int64_t rows, int64_t first_k, int64_t depth) {
    for (int64_t r = 0; r < rows; ++r) {
      product_.left(first_row + r, first_k, depth, row_.data());
      for (int64_t k = 0; k < depth; ++k) left_[static_cast<size_t>(k * kTileRows + r)] = row_[static_cast<size_t>(k)];
    }
  }

  const BlockedProduct& product_;
  Tile tile_;
  int64_t stride_;  // of the accumulator's rows
  std::vector<double> row_;
  std::vector<double> right_;
  std::vector<double> left_;
  std::vector<double> accumulator_;
};

}  // namespace

void Compute(const BlockedProduct& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const int64_t across = RoundUp(product.columns, kBlockColumns) / kBlockColumns;
  const int64_t rows = BlockRows(product.rows, across);
  const int64_t down = RoundUp(product.rows, rows) / rows;
  ShareAmongTeam(down * across, [&](int64_t begin, int64_t end) {
    Block block(product);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / across * rows;
      const int64_t column = i % across * kBlockColumns;
      block.Compute(row, std::min(rows, product.rows - row), column, std::min(kBlockColumns, product.columns - column));
    }
  });
}

}  // namespace collage
