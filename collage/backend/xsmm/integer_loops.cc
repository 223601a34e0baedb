#include "collage/backend/xsmm/integer_loops.h"

#include <algorithm>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

template <int64_t lanes>
struct IntegersOf {
  typedef int32_t Vector __attribute__((vector_size(lanes * sizeof(int32_t)), aligned(1), may_alias));
};

// Adds one depth of some rows and columns: byte number `byte` of each four. Shifts move it to the top, and back with its sign. GCC 12 takes
// the conversion of a vector of bytes apart, and these take no longer where weights come from memory.
template <int64_t lanes, int64_t vectors, int64_t rows>
COLLAGE_INLINE void Add(const float* data, int64_t data_row, const int8_t* fours, int64_t byte,
                        typename Of<lanes>::Vector (&sums)[rows][vectors]) {
#pragma GCC unroll 16
  for (int64_t v = 0; v < vectors; ++v) {
    if (byte == 0) __builtin_prefetch(fours + v * lanes * kIntegerDepths + kAheadBytes);
    const auto four = *reinterpret_cast<const typename IntegersOf<lanes>::Vector*>(fours + v * lanes * kIntegerDepths);
    const auto weights = __builtin_convertvector((four << static_cast<int>(24 - 8 * byte)) >> 24, typename Of<lanes>::Vector);
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) sums[r][v] += data[r * data_row] * weights;
  }
}

// All columns of some rows. An addition waits four cycles for the one before, and two are begun in each: so there are eight sums at least,
// where there are fewer rows and vectors than that several for every `sets`-th depth.
template <int64_t lanes, int64_t vectors, int64_t rows>
COLLAGE_INLINE void Block(const IntegerProduct& product, int64_t row) {
  using Vector = typename Of<lanes>::Vector;
  constexpr int64_t sets = std::clamp<int64_t>(8 / (vectors * rows), 1, kIntegerDepths);
  Vector sums[sets][rows][vectors] = {};
  const float* data = product.data + row * product.data_row;
  const int8_t* fours = product.weights;
  int64_t d = 0;
  for (; d + kIntegerDepths <= product.depth; d += kIntegerDepths, fours += vectors * lanes * kIntegerDepths) {
#pragma GCC unroll 16
    for (int64_t byte = 0; byte < kIntegerDepths; ++byte)
      Add<lanes, vectors, rows>(data + d + byte, product.data_row, fours, byte, sums[byte % sets]);
  }
  for (int64_t byte = 0; d + byte < product.depth; ++byte)
    Add<lanes, vectors, rows>(data + d + byte, product.data_row, fours, byte, sums[0]);
  AddSets<lanes>(sums);
#pragma GCC unroll 16
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v) {
      const Vector sum = sums[0][r][v] * *reinterpret_cast<const Vector*>(product.scales + v * lanes);
      StoreColumns<lanes>(sum, product.columns - v * lanes, product.result + (row + r) * product.result_row + v * lanes);
    }
  }
}

template <int64_t lanes, int64_t vectors>
struct Rows {
  const IntegerProduct& product;
  template <int64_t count>
  COLLAGE_INLINE void operator()(int64_t first) const {
    Block<lanes, vectors, count>(product, first);
  }
};

template <int64_t lanes, int64_t most>
COLLAGE_INLINE void Columns(const IntegerProduct& product) {
  const int64_t vectors = (product.columns + lanes - 1) / lanes;
  if (vectors == 1) VisitInBlocks<most>(product.rows, Rows<lanes, 1>{product});
  if (vectors == 2) VisitInBlocks<most>(product.rows, Rows<lanes, 2>{product});
  if (vectors == 3) VisitInBlocks<most>(product.rows, Rows<lanes, 3>{product});
  if (vectors == 4) VisitInBlocks<most>(product.rows, Rows<lanes, 4>{product});
}

// Of 32 registers sums take 24, of 16 they take 12: four vectors of columns for six rows and for three.
COLLAGE_FOR_AVX512 void ProductOfAvx512(const IntegerProduct& product) { Columns<16, 6>(product); }
COLLAGE_FOR_AVX2 void ProductOfAvx2(const IntegerProduct& product) { Columns<8, 3>(product); }

}  // namespace

IntegerProductLoop IntegerProductLoopFor(int64_t lanes) { return lanes == 16 ? ProductOfAvx512 : ProductOfAvx2; }

}  // namespace collage::xsmm
