#pragma once

#include <bit>
#include <cstdint>

#include "collage/cost/cost.h"

namespace collage {

/// Whole picoseconds that may be negative, as a relaxation computes with.
using Picoseconds = int64_t;
constexpr Picoseconds kNever = Picoseconds{1} << 60;
inline Picoseconds ToPicoseconds(Cost cost) { return cost.IsKnown() ? std::bit_cast<int64_t>(cost) : kNever; }
inline Cost ToCost(Picoseconds price) { return price >= kNever ? Cost::Invalid() : std::bit_cast<Cost>(price); }

}  // namespace collage
