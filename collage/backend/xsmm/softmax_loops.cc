#include "collage/backend/xsmm/softmax_loops.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "collage/backend/xsmm/exponential.h"
#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

template <int64_t lanes>
COLLAGE_INLINE typename Of<lanes>::Vector& At(float* place) {
  return *reinterpret_cast<typename Of<lanes>::Vector*>(place);
}

// Each lane gets what the one `distance` further has.
template <int64_t lanes, int64_t distance, size_t... lane>
COLLAGE_INLINE void Rotate(const typename Of<lanes>::Vector& vector, typename Of<lanes>::Vector& rotated,
                           std::index_sequence<lane...> /*of lanes*/) {
  rotated = __builtin_shufflevector(vector, vector, ((lane + distance) % lanes)...);
}

// The largest, or the sum, of all lanes, in each of them.
template <int64_t lanes, bool is_sum, int64_t distance = lanes / 2>
COLLAGE_INLINE void Reduce(typename Of<lanes>::Vector& vector) {
  typename Of<lanes>::Vector rotated;
  Rotate<lanes, distance>(vector, rotated, std::make_index_sequence<lanes>());
  if constexpr (is_sum) {
    vector += rotated;
  } else {
    vector = rotated > vector ? rotated : vector;
  }
  if constexpr (distance > 1) Reduce<lanes, is_sum, distance / 2>(vector);
}

// Of whole vectors. Two at a time, so that no step waits for the one before.
template <int64_t lanes>
COLLAGE_INLINE float LargestOf(float* row, int64_t count) {
  using Vector = typename Of<lanes>::Vector;
  Vector first = At<lanes>(row);
  Vector second = first;
  int64_t i = lanes;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const Vector a = At<lanes>(row + i);
    const Vector b = At<lanes>(row + i + lanes);
    first = a > first ? a : first;
    second = b > second ? b : second;
  }
  if (i < count) {
    const Vector last = At<lanes>(row + i);
    first = last > first ? last : first;
  }
  first = second > first ? second : first;
  Reduce<lanes, false>(first);
  return first[0];
}

template <int64_t lanes>
COLLAGE_INLINE void TakeExponentialOfNegative(typename Of<lanes>::Vector& x) {
  HoldAbove<lanes>(x, -kMostOfExponential);
  TakeExponentialWithin<lanes>(x);
}

template <int64_t lanes>
COLLAGE_INLINE float Exponentials(float* row, int64_t count) {
  using Vector = typename Of<lanes>::Vector;
  // Behind the last score comes what changes neither the largest of them nor, but for exp(-80), their sum.
  for (; count % lanes != 0; ++count) row[count] = -std::numeric_limits<float>::infinity();
  const float largest = LargestOf<lanes>(row, count);
  Vector first{};
  Vector second{};
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    Vector a = At<lanes>(row + i) - largest;
    Vector b = At<lanes>(row + i + lanes) - largest;
    TakeExponentialOfNegative<lanes>(a);
    TakeExponentialOfNegative<lanes>(b);
    first += a;
    second += b;
    At<lanes>(row + i) = a;
    At<lanes>(row + i + lanes) = b;
  }
  if (i < count) {
    Vector last = At<lanes>(row + i) - largest;
    TakeExponentialOfNegative<lanes>(last);
    first += last;
    At<lanes>(row + i) = last;
  }
  first += second;
  Reduce<lanes, true>(first);
  return first[0];
}

// A plain loop, which the compiler turns into vectors.
COLLAGE_INLINE void Select(float* __restrict__ row, int64_t count, const uint8_t* __restrict__ choice, bool replaced, float otherwise) {
  for (int64_t i = 0; i < count; ++i) row[i] = (choice[i] != 0) == replaced ? otherwise : row[i];
}

COLLAGE_FOR_AVX512 void SelectOfAvx512(float* row, int64_t count, const uint8_t* choice, bool replaced, float otherwise) {
  Select(row, count, choice, replaced, otherwise);
}
COLLAGE_FOR_AVX2 void SelectOfAvx2(float* row, int64_t count, const uint8_t* choice, bool replaced, float otherwise) {
  Select(row, count, choice, replaced, otherwise);
}
COLLAGE_FOR_AVX512 float ExponentialsOfAvx512(float* row, int64_t count) { return Exponentials<16>(row, count); }
COLLAGE_FOR_AVX2 float ExponentialsOfAvx2(float* row, int64_t count) { return Exponentials<8>(row, count); }

}  // namespace

SoftmaxLoops SoftmaxLoopsFor(int64_t lanes) {
  if (lanes == 16) return {SelectOfAvx512, ExponentialsOfAvx512};
  return {SelectOfAvx2, ExponentialsOfAvx2};
}

}  // namespace collage::xsmm
