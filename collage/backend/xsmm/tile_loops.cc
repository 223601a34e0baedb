#include "collage/backend/xsmm/tile_loops.h"

#include <array>
#include <bit>

namespace collage::xsmm {
namespace {

// What is called inside of loops has to be compiled as part of them, for their instruction set.
#define COLLAGE_INLINE [[gnu::always_inline]] inline

// Comparisons are such that what is no number stays so.
COLLAGE_INLINE float Bounded(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}
COLLAGE_INLINE float Absolute(float x) { return x < 0 ? -x : x; }

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, ln(2) split in two as by Cody and Waite (1980), and the Taylor polynomial of degree 6, which
// is exact to 1.2e-7. Saturates at exp(-87) and exp(88), which float32 still holds.
COLLAGE_INLINE float Exponential(float x) {
  constexpr float kReciprocalOfLn2 = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to an integer, in the last bits of the mantissa
  const float bounded = Bounded(x, -87.0F, 88.0F);
  const float rounded = bounded * kReciprocalOfLn2 + kRounder;
  const float n = rounded - kRounder;
  const float r = (bounded - n * kLn2High) - n * kLn2Low;
  float sum = 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  constexpr uint32_t kBias = 127;
  constexpr uint32_t kMantissaBits = 23;
  const uint32_t power = std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(kRounder);
  return sum * std::bit_cast<float>((power + kBias) << kMantissaBits);
}

// Near zero Lambert's continued fraction, cut after 9 (within 1e-7 up to 1); beyond, by the exponential.
COLLAGE_INLINE float HyperbolicTangent(float x) {
  const float square = x * x;
  const float near = x * (945.0F + square * (105.0F + square)) / (945.0F + square * (420.0F + square * 15.0F));
  const float far = 1.0F - 2.0F / (1.0F + Exponential(2.0F * Absolute(x)));
  return Absolute(x) < 1.0F ? near : x < 0 ? -far : far;
}

// Near zero the Taylor polynomial (within 1.5e-8 up to 0.5); beyond, Abramowitz and Stegun 7.1.26, whose absolute error is 1.5e-7.
COLLAGE_INLINE float ErrorFunction(float x) {
  const float square = x * x;
  float series = -1.0F / 1320;
  series = series * square + 1.0F / 216;
  series = series * square - 1.0F / 42;
  series = series * square + 1.0F / 10;
  series = series * square - 1.0F / 3;
  series = series * square + 1.0F;
  const float near = 1.12837917F * x * series;
  const float t = 1.0F / (1.0F + 0.3275911F * Absolute(x));
  float sum = 1.061405429F;
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const float far = 1.0F - sum * t * Exponential(-square);
  return Absolute(x) < 0.5F ? near : x < 0 ? -far : far;
}

// A unary operator sees its argument twice.
struct Numbers {
  float alpha, beta;
};
struct Relu : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return x < 0 ? 0 : x; }
};
struct LeakyRelu : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return x < 0 ? alpha * x : x; }
};
struct Clip : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return Bounded(x, alpha, beta); }
};
struct Sigmoid : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return 1.0F / (1.0F + Exponential(-x)); }
};
struct Tanh : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return HyperbolicTangent(x); }
};
struct Erf : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return ErrorFunction(x); }
};
struct Abs : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return Absolute(x); }
};
struct Negative : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return -x; }
};
struct Square : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return x * x; }
};
struct Cube : Numbers {
  COLLAGE_INLINE float Of(float x, float /*same*/) const { return x * x * x; }
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

// An element is read before it is written and no other is, whichever of the tiles are one: the pragma tells so.
template <class Operation>
COLLAGE_INLINE void Row(const Operation& operation, const TileArguments& tile, int64_t row, int64_t columns) {
  const float* first = tile.first.data + row * tile.first.row_stride;
  const float* second = tile.second.data + row * tile.second.row_stride;
  float* result = tile.result + row * tile.result_stride;
  if (tile.second.one_a_row) {
    const float one = *second;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) result[c] = operation.Of(first[c], one);
  } else if (tile.first.one_a_row) {
    const float one = *first;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) result[c] = operation.Of(one, second[c]);
  } else {
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) result[c] = operation.Of(first[c], second[c]);
  }
}

bool IsOneRun(const TileView& view, int64_t columns) { return view.row_stride == (view.one_a_row ? 0 : columns); }

template <class Operation>
COLLAGE_INLINE void Rows(const TileArguments& tile) {
  const Operation operation{{tile.alpha, tile.beta}};
  // Rows that follow one another are one long row, whose loop is entered once.
  if (tile.result_stride == tile.columns && IsOneRun(tile.first, tile.columns) && IsOneRun(tile.second, tile.columns))
    return Row(operation, tile, 0, tile.rows * tile.columns);
  for (int64_t row = 0; row < tile.rows; ++row) Row(operation, tile, row, tile.columns);
}

template <class Operation>
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512"))) void RowsOfAvx512(
    const TileArguments& tile) {
  Rows<Operation>(tile);
}

template <class Operation>
__attribute__((target("avx2,fma"))) void RowsOfAvx2(const TileArguments& tile) {
  Rows<Operation>(tile);
}

struct Record {
  std::string_view op;
  size_t arguments;
  TileLoop avx512, avx2;
};

template <class Operation>
constexpr Record RecordOf(std::string_view op, size_t arguments) {
  return {op, arguments, RowsOfAvx512<Operation>, RowsOfAvx2<Operation>};
}

constexpr std::array<Record, 18> kRecords = {
    {RecordOf<Relu>("nn.relu", 1), RecordOf<LeakyRelu>("nn.leaky_relu", 1), RecordOf<Clip>("clip", 1), RecordOf<Sigmoid>("sigmoid", 1),
     RecordOf<Tanh>("tanh", 1), RecordOf<Erf>("erf", 1), RecordOf<Abs>("abs", 1), RecordOf<Negative>("negative", 1),
     RecordOf<Square>("square", 1), RecordOf<Cube>("cube", 1), RecordOf<Add>("add", 2), RecordOf<Add>("nn.bias_add", 2),
     RecordOf<Subtract>("subtract", 2), RecordOf<Multiply>("multiply", 2), RecordOf<Divide>("divide", 2), RecordOf<Maximum>("maximum", 2),
     RecordOf<Minimum>("minimum", 2), RecordOf<ParametricRelu>("nn.prelu", 2)}};

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
