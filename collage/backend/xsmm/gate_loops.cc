#include "collage/backend/xsmm/gate_loops.h"

#include <algorithm>

#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// All vectors of some rows. An addition waits four cycles for the one before, and two are begun in each: so there are eight sums at least,
// where there are fewer rows and vectors than that several for every `sets`-th depth.
template <int64_t lanes, int64_t vectors, int64_t rows>
COLLAGE_INLINE void Block(const GateProduct& product, int64_t row) {
  using Vector = typename Of<lanes>::Vector;
  constexpr int64_t sets = std::clamp<int64_t>(8 / (vectors * rows), 1, 4);
  Vector sums[sets][rows][vectors] = {};
  const float* state = product.state + row * product.state_row;
  const float* weights = product.weights;
  const auto add = [&](int64_t d, Vector(&to)[rows][vectors]) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v) {
      const Vector weight = *reinterpret_cast<const Vector*>(weights + (d * vectors + v) * lanes);
#pragma GCC unroll 16
      for (int64_t r = 0; r < rows; ++r) to[r][v] += state[r * product.state_row + d] * weight;
    }
  };
  int64_t d = 0;
  for (; d + sets <= product.depth; d += sets) {
#pragma GCC unroll 16
    for (int64_t set = 0; set < sets; ++set) add(d + set, sums[set]);
  }
  for (; d < product.depth; ++d) add(d, sums[0]);
#pragma GCC unroll 16
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; ++v) {
      Vector sum = sums[0][r][v];
#pragma GCC unroll 16
      for (int64_t set = 1; set < sets; ++set) sum += sums[set][r][v];
      *reinterpret_cast<Vector*>(product.sums + (row + r) * product.sums_row + product.places[v]) += sum;
    }
  }
}

template <int64_t lanes, int64_t vectors>
struct Rows {
  const GateProduct& product;
  template <int64_t count>
  COLLAGE_INLINE void operator()(int64_t first) const {
    Block<lanes, vectors, count>(product, first);
  }
};

template <int64_t lanes, int64_t most>
COLLAGE_INLINE void Vectors(const GateProduct& product) {
  if (product.vectors == 1) VisitInBlocks<most>(product.rows, Rows<lanes, 1>{product});
  if (product.vectors == 2) VisitInBlocks<most>(product.rows, Rows<lanes, 2>{product});
  if (product.vectors == 3) VisitInBlocks<most>(product.rows, Rows<lanes, 3>{product});
  if (product.vectors == 4) VisitInBlocks<most>(product.rows, Rows<lanes, 4>{product});
}

// Of 32 registers sums take 24, of 16 they take 12: four vectors for six rows and for three.
COLLAGE_FOR_AVX512 void ProductOfAvx512(const GateProduct& product) { Vectors<16, 6>(product); }
COLLAGE_FOR_AVX2 void ProductOfAvx2(const GateProduct& product) { Vectors<8, 3>(product); }

}  // namespace

GateProductLoop GateProductLoopFor(int64_t lanes) { return lanes == 16 ? ProductOfAvx512 : ProductOfAvx2; }

}  // namespace collage::xsmm
