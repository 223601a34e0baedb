#pragma once

// What the loops of this folder are written with: each is compiled once for each instruction set, in a source file of its own. Everything
// here lies in a namespace without a name, so that no two files share code that was compiled for different processors.

#include <cstdint>

// What is called inside of loops has to be compiled as part of them, for their instruction set.
#define COLLAGE_INLINE [[gnu::always_inline]] inline
#if defined(__clang__)
// It ignores a target that names a preference, and takes it as an attribute of its own.
#define COLLAGE_FOR_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"), min_vector_width(512)))
#else
#define COLLAGE_FOR_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")))
#endif
#define COLLAGE_FOR_AVX2 __attribute__((target("avx2,fma")))

namespace collage::xsmm {
namespace {

/// So many numbers, and as many integers of their size.
template <int64_t lanes>
struct Of {
  typedef float Vector __attribute__((vector_size(lanes * sizeof(float)), aligned(4), may_alias));
  typedef uint32_t Bits __attribute__((vector_size(lanes * sizeof(uint32_t)), aligned(4), may_alias));
};

/// visit.template operator()<count>(first) for blocks of at most `most` of these rows (3 or 6), as equal as can be: what the rows of a
/// block have in common is read once for all of them. The visitor has to be COLLAGE_INLINE.
template <int64_t most, class Visit>
COLLAGE_INLINE void VisitInBlocks(int64_t rows, const Visit& visit) {
  const int64_t blocks = (rows + most - 1) / most;
  int64_t first = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t count = (rows - first + blocks - block - 1) / (blocks - block);
    if (count == 1) visit.template operator()<1>(first);
    if (count == 2) visit.template operator()<2>(first);
    if (count == 3) visit.template operator()<3>(first);
    if constexpr (most > 3) {
      if (count == 4) visit.template operator()<4>(first);
      if (count == 5) visit.template operator()<5>(first);
      if (count == 6) visit.template operator()<6>(first);
    }
    first += count;
  }
}

/// Writes sums that are in registers: `vectors` of `lanes` channels for each of some pixels, `pixel` elements apart, each plus the bias of
/// its channel (null: none) and within bounds.
template <int64_t lanes, int64_t pixels, int64_t vectors>
COLLAGE_INLINE void StoreSums(const typename Of<lanes>::Vector (&sums)[pixels][vectors], const float* bias, float low, float high,
                              float* result, int64_t pixel) {
  using Vector = typename Of<lanes>::Vector;
  const Vector lowest = Vector{} + low;
  const Vector highest = Vector{} + high;
#pragma GCC unroll 16
  for (int64_t v = 0; v < vectors; ++v) {
    const Vector added = bias ? *reinterpret_cast<const Vector*>(bias + v * lanes) : Vector{};
#pragma GCC unroll 16
    for (int64_t p = 0; p < pixels; ++p) {
      const Vector sum = sums[p][v] + added;
      const Vector above = sum < lowest ? lowest : sum;
      *reinterpret_cast<Vector*>(result + p * pixel + v * lanes) = above > highest ? highest : above;
    }
  }
}

}  // namespace
}  // namespace collage::xsmm
