#include "collage/search/price_rows.h"

#include <algorithm>

namespace collage {
namespace {

// For any length of rows.
void FindRestPortable(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* all_rest, Picoseconds* rest) {
  std::fill_n(rest, rows.stride, kNever);
  for (size_t backend = 0; backend < rows.backends; ++backend) {
    Picoseconds by = kNever;
    for (const PriceStep& step : steps)
      by = std::min(by, rows.prices[step.row * rows.stride + backend] + all_rest[step.to * rows.stride + backend]);
    if (IsNever(by)) continue;
    for (size_t last = 0; last <= rows.backends; ++last)
      rest[last] = std::min(rest[last], by + rows.transition_to[backend * rows.stride + last]);
  }
  for (size_t last = 0; last <= rows.backends; ++last) {
    if (IsNever(rest[last])) rest[last] = kNever;
  }
}

void PassOnPortable(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* reached, const Picoseconds* all_rest,
                    Picoseconds* all_reached, Picoseconds* around) {
  for (size_t next = 0; next < rows.backends; ++next) {
    Picoseconds arrived = kNever;
    for (size_t last = 0; last <= rows.backends; ++last)
      arrived = std::min(arrived, reached[last] + rows.transition_from[last * rows.stride + next]);
    if (IsNever(arrived)) continue;
    for (const PriceStep& step : steps) {
      const size_t row = step.row * rows.stride + next;
      const size_t to = step.to * rows.stride + next;
      around[row] = std::min(around[row], arrived + all_rest[to]);
      all_reached[to] = std::min(all_reached[to], arrived + rows.prices[row]);
    }
  }
}

#if defined(__x86_64__)

/// So many vectors, in registers.
template <size_t lanes, size_t vectors>
struct Row {
  typedef Picoseconds Lanes __attribute__((vector_size(lanes * sizeof(Picoseconds)), aligned(alignof(Picoseconds)), may_alias));

  __attribute__((always_inline)) static Lanes& At(Picoseconds* row, size_t i) { return *reinterpret_cast<Lanes*>(row + i * lanes); }
  __attribute__((always_inline)) static const Lanes& At(const Picoseconds* row, size_t i) {
    return *reinterpret_cast<const Lanes*>(row + i * lanes);
  }
  __attribute__((always_inline)) static void Lower(Lanes& now, const Lanes& to) { now = to < now ? to : now; }

  Lanes numbers[vectors];

  __attribute__((always_inline)) Row() {
    for (Lanes& one : numbers) one = Lanes{} + kNever;
  }
  __attribute__((always_inline)) void LowerTo(Picoseconds base, const Picoseconds* others) {
    for (size_t i = 0; i < vectors; ++i) Lower(numbers[i], base + At(others, i));
  }
};

template <size_t lanes, size_t vectors>
__attribute__((always_inline)) inline void FindRestOf(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* all_rest,
                                                      Picoseconds* rest) {
  using R = Row<lanes, vectors>;
  constexpr size_t stride = lanes * vectors;
  R by_backend;
  for (const PriceStep& step : steps) {
    for (size_t i = 0; i < vectors; ++i)
      R::Lower(by_backend.numbers[i], R::At(rows.prices + step.row * stride, i) + R::At(all_rest + step.to * stride, i));
  }
  Picoseconds by[stride];
  for (size_t i = 0; i < vectors; ++i) R::At(by, i) = by_backend.numbers[i];
  R least;
  // All of them: which could be left out is hard to predict, and a wrong guess takes longer.
  for (size_t backend = 0; backend < rows.backends; ++backend) least.LowerTo(by[backend], rows.transition_to + backend * stride);
  for (size_t i = 0; i < vectors; ++i) R::At(rest, i) = least.numbers[i] > kNever / 2 ? typename R::Lanes{} + kNever : least.numbers[i];
}

template <size_t lanes, size_t vectors>
__attribute__((always_inline)) inline void PassOnOf(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* reached,
                                                    const Picoseconds* all_rest, Picoseconds* all_reached, Picoseconds* around) {
  using R = Row<lanes, vectors>;
  constexpr size_t stride = lanes * vectors;
  R arrived;
  for (size_t last = 0; last <= rows.backends; ++last) arrived.LowerTo(reached[last], rows.transition_from + last * stride);
  for (const PriceStep& step : steps) {
    const size_t row = step.row * stride;
    const size_t to = step.to * stride;
    for (size_t i = 0; i < vectors; ++i) {
      R::Lower(R::At(around + row, i), arrived.numbers[i] + R::At(all_rest + to, i));
      R::Lower(R::At(all_reached + to, i), arrived.numbers[i] + R::At(rows.prices + row, i));
    }
  }
}

template <size_t vectors>
__attribute__((target("avx2"))) void FindRestAvx2(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* all_rest,
                                                  Picoseconds* rest) {
  FindRestOf<4, vectors>(rows, steps, all_rest, rest);
}
template <size_t vectors>
__attribute__((target("avx2"))) void PassOnAvx2(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* reached,
                                                const Picoseconds* all_rest, Picoseconds* all_reached, Picoseconds* around) {
  PassOnOf<4, vectors>(rows, steps, reached, all_rest, all_reached, around);
}
template <size_t vectors>
__attribute__((target("avx512f"))) void FindRestAvx512(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* all_rest,
                                                       Picoseconds* rest) {
  FindRestOf<8, vectors>(rows, steps, all_rest, rest);
}
template <size_t vectors>
__attribute__((target("avx512f"))) void PassOnAvx512(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* reached,
                                                     const Picoseconds* all_rest, Picoseconds* all_reached, Picoseconds* around) {
  PassOnOf<8, vectors>(rows, steps, reached, all_rest, all_reached, around);
}

#endif

}  // namespace

// Chosen by hand: the resolvers that target_clones makes run before sanitizers are ready.
PriceRowLoops LoopsFor(size_t stride, size_t most_lanes) {
#if defined(__x86_64__)
  const bool has_avx512 = most_lanes >= 8 && __builtin_cpu_supports("avx512f");
  const bool has_avx2 = most_lanes >= 4 && __builtin_cpu_supports("avx2");
  if (stride == kRowUnit && has_avx512) return {FindRestAvx512<1>, PassOnAvx512<1>};
  if (stride == kRowUnit && has_avx2) return {FindRestAvx2<2>, PassOnAvx2<2>};
  if (stride == 2 * kRowUnit && has_avx512) return {FindRestAvx512<2>, PassOnAvx512<2>};
  if (stride == 2 * kRowUnit && has_avx2) return {FindRestAvx2<4>, PassOnAvx2<4>};
#endif
  return {FindRestPortable, PassOnPortable};
}

}  // namespace collage
