#pragma once

#include <cstdint>
#include <span>

#include "collage/ir/attributes.h"
#include "collage/ir/type.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// nn.matmul_nbits(data, weights, scales, zero_points): data[.., depth] times the transpose of a matrix [columns, depth] whose elements are
/// (weight - zero point) * scale. Weights are whole numbers of few bits; blocks of them along the depth, the last of which need not be
/// filled, share a scale and a zero point. This is the layout of MatMulNBits of com.microsoft.
struct NBitsProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t bits = 4;    ///< of a weight: 2, 4 or 8, the lowest bits of a byte first
  int64_t block = 32;  ///< elements, which fill whole bytes
  int64_t blocks = 0;  ///< of a column

  /// What stands for zero where a model says nothing.
  [[nodiscard]] int64_t DefaultZero() const { return int64_t{1} << (bits - 1); }
  /// Bytes of the zero points of a column, each column beginning with a whole byte.
  [[nodiscard]] int64_t ZeroBytes() const { return (blocks * bits + 7) / 8; }
  /// That for every block, as a tensor of zero points.
  [[nodiscard]] Tensor DefaultZeros() const;
  /// Whether zero points are those.
  [[nodiscard]] bool HasDefaultZeros(const Tensor& zero_points) const;
  /// Of block `at` of a column.
  [[nodiscard]] int64_t Zero(std::span<const uint8_t> zero_points, int64_t column, int64_t at) const;
  /// Weights first to first + count of a column as they are stored.
  void Unpack(std::span<const uint8_t> weights, int64_t column, int64_t first, int64_t count, uint8_t* values) const;
};

/// Errors where types or attributes do not fit each other.
Result<NBitsProduct> ReadNBitsProduct(std::span<const TensorType> arguments, const Attributes& attributes);

}  // namespace collage
