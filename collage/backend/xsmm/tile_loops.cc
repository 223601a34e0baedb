#include "collage/backend/xsmm/tile_loops.h"

#include <array>
#include <bit>

#include "collage/backend/xsmm/exponential.h"
#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

COLLAGE_INLINE float Absolute(float x) { return x < 0 ? -x : x; }

// 1 / x for x from 1 to 2^125, whose reciprocals are normal numbers; 1 + exp(80) is less. Subtracting the bits of x from a constant negates
// the exponent and nearly inverts the mantissa: with this constant, found by trying those around it, within 0.051 of 1 / x. Each of
// Newton's steps squares that error, and after three it is 1.2e-7. A division of vectors takes as long as twenty such operations.
COLLAGE_INLINE float Reciprocal(float x) {
  constexpr uint32_t kReflector = 0x7ef311c7;
  float y = std::bit_cast<float>(kReflector - std::bit_cast<uint32_t>(x));
  y = y + y * (1.0F - x * y);
  y = y + y * (1.0F - x * y);
  y = y + y * (1.0F - x * y);
  return y;
}

// Near zero Lambert's continued fraction, cut after 9 (within 1e-7 up to 1); beyond, by the exponential.
COLLAGE_INLINE float HyperbolicTangent(float x) {
  const float square = x * x;
  const float near = x * (945.0F + square * (105.0F + square)) / (945.0F + square * (420.0F + square * 15.0F));
  const float far = 1.0F - 2.0F / (1.0F + Exponential(2.0F * Absolute(x)));
  return Absolute(x) < 1.0F ? near : x < 0 ? -far : far;
}

// 1 - erf(x) of x >= 0: Abramowitz and Stegun 7.1.26, whose absolute error is 1.5e-7.
COLLAGE_INLINE float ComplementOfErf(float x) {
  const float t = 1.0F / (1.0F + 0.3275911F * x);
  float sum = 1.061405429F;
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  return sum * t * Exponential(-x * x);
}

// Near zero the Taylor polynomial (within 1.5e-8 up to 0.5); beyond, by the complement.
COLLAGE_INLINE float ErrorFunction(float x) {
  const float square = x * x;
  float series = -1.0F / 1320;
  series = series * square + 1.0F / 216;
  series = series * square - 1.0F / 42;
  series = series * square + 1.0F / 10;
  series = series * square - 1.0F / 3;
  series = series * square + 1.0F;
  const float near = 1.12837917F * x * series;
  const float far = 1.0F - ComplementOfErf(Absolute(x));
  return Absolute(x) < 0.5F ? near : x < 0 ? -far : far;
}

struct Numbers {
  float alpha, beta;
};
struct Identity : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x; }
};
struct Relu : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x < 0 ? 0 : x; }
};
struct LeakyRelu : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x < 0 ? alpha * x : x; }
};
struct Clip : Numbers {
  COLLAGE_INLINE float Of(float x) const { return Bounded(x, alpha, beta); }
};
struct Sigmoid : Numbers {
  COLLAGE_INLINE float Of(float x) const { return Reciprocal(1.0F + Exponential(-x)); }
};
struct Tanh : Numbers {
  COLLAGE_INLINE float Of(float x) const { return HyperbolicTangent(x); }
};
struct Erf : Numbers {
  COLLAGE_INLINE float Of(float x) const { return ErrorFunction(x); }
};
struct Abs : Numbers {
  COLLAGE_INLINE float Of(float x) const { return Absolute(x); }
};
struct Negative : Numbers {
  COLLAGE_INLINE float Of(float x) const { return -x; }
};
struct Square : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x * x; }
};
struct Cube : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x * x * x; }
};
// x / 2 (1 + erf(x / sqrt(2))), by the complement of erf where that is small: nothing is lost of what is left of it.
struct GeluByErf : Numbers {
  COLLAGE_INLINE float Of(float x) const {
    const float half = 0.5F * x;
    const float outside = half * ComplementOfErf(0.70710678F * Absolute(x));
    return x < 0 ? outside : x - outside;
  }
};
struct GeluByTanh : Numbers {
  // (1 + tanh(y)) / 2 = sigmoid(2 y)
  COLLAGE_INLINE float Of(float x) const { return x * Reciprocal(1.0F + Exponential(-1.59576912F * x * (1.0F + 0.044715F * x * x))); }
};
struct Swish : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x * Reciprocal(1.0F + Exponential(-x)); }
};
struct HardSwish : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x * Bounded(x + 3.0F, 0.0F, 6.0F) * (1.0F / 6); }
};
struct Add : Numbers {
  COLLAGE_INLINE float Of(float a, float b) const { return a + b; }
};
struct Subtract : Numbers {
  COLLAGE_INLINE float Of(float a, float b) const { return a - b; }
};
struct Multiply : Numbers {
  COLLAGE_INLINE float Of(float a, float b) const { return a * b; }
};
struct Divide : Numbers {
  COLLAGE_INLINE float Of(float a, float b) const { return a / b; }
};
struct Maximum : Numbers {
  COLLAGE_INLINE float Of(float a, float b) const { return a < b ? b : a; }
};
struct Minimum : Numbers {
  COLLAGE_INLINE float Of(float a, float b) const { return a > b ? b : a; }
};
struct ParametricRelu : Numbers {
  COLLAGE_INLINE float Of(float x, float slope) const { return x < 0 ? slope * x : x; }
};
template <class Activation>
struct OfSum : Activation {
  COLLAGE_INLINE float Of(float a, float b, float c) const { return Activation::Of(a + b + c); }
};

// One row of a tile, or all of them where they follow one another. An element is read before it is written and no other is, whichever of
// the tiles are one: the pragmas tell so.
struct Run {
  const float* first;
  const float* second;
  const float* third;
  float* result;
  int64_t columns;
};

template <class Operation>
COLLAGE_INLINE void Unary(const Operation& operation, const Run& run) {
#pragma GCC ivdep
  for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(run.first[c]);
}

template <class Operation>
COLLAGE_INLINE void Binary(const Operation& operation, const Run& run, const TileArguments& tile) {
  if (tile.second.one_a_row) {
    const float one = *run.second;
#pragma GCC ivdep
    for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(run.first[c], one);
  } else if (tile.first.one_a_row) {
    const float one = *run.first;
#pragma GCC ivdep
    for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(one, run.second[c]);
  } else {
#pragma GCC ivdep
    for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(run.first[c], run.second[c]);
  }
}

// Of what may be added to the first, which has all columns.
template <class Operation>
COLLAGE_INLINE void Sum(const Operation& operation, const Run& run, const TileArguments& tile) {
  if (tile.second.one_a_row && tile.third.one_a_row) {
    const float one = *run.second + *run.third;
#pragma GCC ivdep
    for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(run.first[c], one, 0.0F);
  } else if (tile.second.one_a_row || tile.third.one_a_row) {
    const float one = tile.second.one_a_row ? *run.second : *run.third;
    const float* other = tile.second.one_a_row ? run.third : run.second;
#pragma GCC ivdep
    for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(run.first[c], other[c], one);
  } else {
#pragma GCC ivdep
    for (int64_t c = 0; c < run.columns; ++c) run.result[c] = operation.Of(run.first[c], run.second[c], run.third[c]);
  }
}

COLLAGE_INLINE bool IsOneRun(const TileView& view, int64_t columns) { return view.row_stride == (view.one_a_row ? 0 : columns); }

template <class Operation, int arguments>
COLLAGE_INLINE void Rows(const TileArguments& tile) {
  Operation operation;
  operation.alpha = tile.alpha;
  operation.beta = tile.beta;
  // Rows that follow one another are one long row, whose loop is entered once.
  bool is_one_run = tile.result_stride == tile.columns && IsOneRun(tile.first, tile.columns);
  if constexpr (arguments > 1) is_one_run = is_one_run && IsOneRun(tile.second, tile.columns);
  if constexpr (arguments > 2) is_one_run = is_one_run && IsOneRun(tile.third, tile.columns);
  const int64_t runs = is_one_run ? 1 : tile.rows;
  const int64_t columns = is_one_run ? tile.rows * tile.columns : tile.columns;
  for (int64_t row = 0; row < runs; ++row) {
    const Run run{tile.first.data + row * tile.first.row_stride, tile.second.data + row * tile.second.row_stride,
                  tile.third.data + row * tile.third.row_stride, tile.result + row * tile.result_stride, columns};
    if constexpr (arguments == 1) Unary(operation, run);
    if constexpr (arguments == 2) Binary(operation, run, tile);
    if constexpr (arguments == 3) Sum(operation, run, tile);
  }
}

template <class Operation, int arguments>
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512"))) void RowsOfAvx512(
    const TileArguments& tile) {
  Rows<Operation, arguments>(tile);
}

template <class Operation, int arguments>
__attribute__((target("avx2,fma"))) void RowsOfAvx2(const TileArguments& tile) {
  Rows<Operation, arguments>(tile);
}

struct Record {
  std::string_view op;
  size_t arguments;
  TileLoop avx512, avx2;
};

template <class Operation>
constexpr Record OfOne(std::string_view op) {
  return {op, 1, RowsOfAvx512<Operation, 1>, RowsOfAvx2<Operation, 1>};
}
template <class Operation>
constexpr Record AfterSum(std::string_view op) {
  return {op, 3, RowsOfAvx512<OfSum<Operation>, 3>, RowsOfAvx2<OfSum<Operation>, 3>};
}
template <class Operation>
constexpr Record OfTwo(std::string_view op) {
  return {op, 2, RowsOfAvx512<Operation, 2>, RowsOfAvx2<Operation, 2>};
}

constexpr std::array kRecords = {
    OfOne<Relu>("nn.relu"), OfOne<LeakyRelu>("nn.leaky_relu"), OfOne<Clip>("clip"), OfOne<Sigmoid>("sigmoid"), OfOne<Tanh>("tanh"),
    OfOne<Erf>("erf"), OfOne<Abs>("abs"), OfOne<Negative>("negative"), OfOne<Square>("square"), OfOne<Cube>("cube"),
    OfOne<GeluByErf>("gelu_by_erf"), OfOne<GeluByTanh>("gelu_by_tanh"), OfOne<Swish>("swish"), OfOne<HardSwish>("hard_swish"),
    OfTwo<Add>("add"), OfTwo<Add>("nn.bias_add"), OfTwo<Subtract>("subtract"), OfTwo<Multiply>("multiply"), OfTwo<Divide>("divide"),
    OfTwo<Maximum>("maximum"), OfTwo<Minimum>("minimum"), OfTwo<ParametricRelu>("nn.prelu"),
    // What commonly follows a bias or a residual.
    AfterSum<Identity>(""), AfterSum<Relu>("nn.relu"), AfterSum<LeakyRelu>("nn.leaky_relu"), AfterSum<Clip>("clip"),
    AfterSum<Sigmoid>("sigmoid"), AfterSum<Tanh>("tanh"), AfterSum<GeluByErf>("gelu_by_erf"), AfterSum<GeluByTanh>("gelu_by_tanh"),
    AfterSum<Swish>("swish"), AfterSum<HardSwish>("hard_swish")};

}  // namespace

TileLoop FindTileLoop(std::string_view op, size_t arguments) {
  // Chosen by hand: the resolvers that target_clones makes run before sanitizers are ready.
  static const bool is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  for (const Record& record : kRecords) {
    if (record.op == op && record.arguments == arguments) return is_wide ? record.avx512 : record.avx2;
  }
  return nullptr;
}

}  // namespace collage::xsmm
