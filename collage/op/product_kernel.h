#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace collage {

/// result[m, n] = sum over k of left[m, k] * right[k, n], for operands that need not exist as matrices: a convolution reads its
/// data through the window instead of writing it out. Products and sums are in double precision, so that the reference is more
/// accurate than any float32 kernel compared with it, and every element is summed in the order of k.
struct BlockedProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  // All are called by the threads of a team (reference_team.h) at the same time, for different elements.
  /// Writes left[row, first .. first + count).
  std::function<void(int64_t row, int64_t first, int64_t count, double* out)> left;
  /// Writes right[k, first .. first + count).
  std::function<void(int64_t k, int64_t first, int64_t count, double* out)> right;
  /// Takes result[row, first .. first + count).
  std::function<void(int64_t row, int64_t first, int64_t count, const double* values)> store;
};

void Compute(const BlockedProduct& product);

/// A sum as an element; those of integers are exact in a double up to 2^53, and wrap around.
template <class T>
T Rounded(double sum) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<int64_t>(sum));
  return static_cast<T>(sum);
}

}  // namespace collage
