#include "collage/backend/xsmm/tile_loops.h"

#include <array>

#include "collage/backend/xsmm/activations.h"
#include "collage/backend/xsmm/vectors.h"

namespace collage::xsmm {
namespace {

// Comparisons are such that what is no number stays so.
COLLAGE_INLINE float Bounded(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}

// Operations are functions of numbers (Of), whose loops the compiler turns into vectors, or of vectors (Take, activations.h).
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
struct Abs : Numbers {
  COLLAGE_INLINE float Of(float x) const { return x < 0 ? -x : x; }
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
template <class Operation>
concept OfVectors = requires(Of<8>::Vector& x) {
  Operation::template Take<8>(x);
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

template <int64_t lanes>
COLLAGE_INLINE void Load(typename Of<lanes>::Vector& vector, const float* from, int64_t count) {
  if (count == lanes) {
    __builtin_memcpy(&vector, from, sizeof vector);
    return;
  }
  float part[lanes] = {};
  for (int64_t i = 0; i < count; ++i) part[i] = from[i];
  __builtin_memcpy(&vector, part, sizeof vector);
}

template <int64_t lanes>
COLLAGE_INLINE void Store(const typename Of<lanes>::Vector& vector, float* to, int64_t count) {
  if (count == lanes) {
    __builtin_memcpy(to, &vector, sizeof vector);
    return;
  }
  float part[lanes];
  __builtin_memcpy(part, &vector, sizeof vector);
  for (int64_t i = 0; i < count; ++i) to[i] = part[i];
}

template <int64_t lanes>
COLLAGE_INLINE void AddTo(typename Of<lanes>::Vector& sum, const float* from, bool one_a_row, int64_t column, int64_t count) {
  if (one_a_row) {
    sum += *from;
    return;
  }
  typename Of<lanes>::Vector addend;
  Load<lanes>(addend, from + column, count);
  sum += addend;
}

// `count` columns from `column` on, of one argument or of the sum of three.
template <int64_t lanes, class Operation, int arguments>
COLLAGE_INLINE void TakeColumns(const Run& run, const TileArguments& tile, int64_t column, int64_t count) {
  typename Of<lanes>::Vector x;
  Load<lanes>(x, run.first + column, count);
  if constexpr (arguments == 3) {
    AddTo<lanes>(x, run.second, tile.second.one_a_row, column, count);
    AddTo<lanes>(x, run.third, tile.third.one_a_row, column, count);
  }
  Operation::template Take<lanes>(x);
  Store<lanes>(x, run.result + column, count);
}

template <int64_t lanes, class Operation, int arguments>
COLLAGE_INLINE void Vectors(const Run& run, const TileArguments& tile) {
  int64_t column = 0;
  for (; column + lanes <= run.columns; column += lanes) TakeColumns<lanes, Operation, arguments>(run, tile, column, lanes);
  if (column < run.columns) TakeColumns<lanes, Operation, arguments>(run, tile, column, run.columns - column);
}

COLLAGE_INLINE bool IsOneRun(const TileView& view, int64_t columns) { return view.row_stride == (view.one_a_row ? 0 : columns); }

template <int64_t lanes, class Operation, int arguments>
COLLAGE_INLINE void Rows(const TileArguments& tile) {
  // Rows that follow one another are one long row, whose loop is entered once.
  bool is_one_run = tile.result_stride == tile.columns && IsOneRun(tile.first, tile.columns);
  if constexpr (arguments > 1) is_one_run = is_one_run && IsOneRun(tile.second, tile.columns);
  if constexpr (arguments > 2) is_one_run = is_one_run && IsOneRun(tile.third, tile.columns);
  const int64_t runs = is_one_run ? 1 : tile.rows;
  const int64_t columns = is_one_run ? tile.rows * tile.columns : tile.columns;
  for (int64_t row = 0; row < runs; ++row) {
    const Run run{tile.first.data + row * tile.first.row_stride, tile.second.data + row * tile.second.row_stride,
                  tile.third.data + row * tile.third.row_stride, tile.result + row * tile.result_stride, columns};
    if constexpr (OfVectors<Operation>) {
      Vectors<lanes, Operation, arguments>(run, tile);
    } else {
      Operation operation;
      operation.alpha = tile.alpha;
      operation.beta = tile.beta;
      if constexpr (arguments == 1) Unary(operation, run);
      if constexpr (arguments == 2) Binary(operation, run, tile);
      if constexpr (arguments == 3) Sum(operation, run, tile);
    }
  }
}

template <class Operation, int arguments>
COLLAGE_FOR_AVX512 void RowsOfAvx512(const TileArguments& tile) {
  Rows<16, Operation, arguments>(tile);
}

template <class Operation, int arguments>
COLLAGE_FOR_AVX2 void RowsOfAvx2(const TileArguments& tile) {
  Rows<8, Operation, arguments>(tile);
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

TileLoop FindTileLoop(std::string_view op, size_t arguments, int64_t lanes) {
  for (const Record& record : kRecords) {
    if (record.op == op && record.arguments == arguments) return lanes == 16 ? record.avx512 : record.avx2;
  }
  return nullptr;
}

TileLoop FindTileLoop(std::string_view op, size_t arguments) {
  // Chosen by hand: the resolvers that target_clones makes run before sanitizers are ready.
  static const bool is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return FindTileLoop(op, arguments, is_wide ? 16 : 8);
}

}  // namespace collage::xsmm
