#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collage/search/picoseconds.h"

namespace collage {

/// Rows of prices have whole vectors: one of AVX-512 or two of AVX2 hold so many.
constexpr size_t kRowUnit = 8;

/// From a covered set to another, at the prices of one row.
struct PriceStep {
  uint32_t to;
  uint32_t row;
};

/// Rows of prices by backend, `stride` numbers each: one for each backend, one for none, and some that nothing reads. kNever where there is
/// no price. They are added and compared as vectors.
struct PriceRows {
  size_t stride;
  size_t backends;
  const Picoseconds* prices;           ///< of steps, by the backend that runs them
  const Picoseconds* transition_to;    ///< [to][from]
  const Picoseconds* transition_from;  ///< [from][to]; kNever to none
};

/// Loops over them.
struct PriceRowLoops {
  /// rest[i] becomes the least that is to pay after backend i, over steps and who runs them: the transition, the price, and what `all_rest`
  /// has of where the step leads.
  void (*find_rest)(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* all_rest, Picoseconds* rest);
  /// The other way round, from a set that is reached at `reached` by the backend that ran last. Each step lowers what `all_reached` has of
  /// where it leads, and what `around` has of its row to what is paid before and after it. Leaves what IsNever where nothing leads.
  void (*pass_on)(const PriceRows& rows, std::span<const PriceStep> steps, const Picoseconds* reached, const Picoseconds* all_rest,
                  Picoseconds* all_reached, Picoseconds* around);
};
/// The fastest for this processor, of vectors of up to so many numbers. All compute the same.
PriceRowLoops LoopsFor(size_t stride, size_t most_lanes = kRowUnit);

/// Whether a sum has kNever in it, whatever was subtracted elsewhere.
inline bool IsNever(Picoseconds sum) { return sum > kNever / 2; }

}  // namespace collage
