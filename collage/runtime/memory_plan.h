#pragma once

#include <cstddef>
#include <vector>

namespace collage {

/// A buffer that must be kept from step `begin` to step `end`, both included.
struct LiveInterval {
  size_t bytes = 0;
  size_t begin = 0;
  size_t end = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  ///< one an interval, multiples of kBufferAlignment
  size_t bytes = 0;             ///< of the arena that holds them all
};

/// Places buffers into one arena so that those alive at the same step do not overlap: largest first, each into the tightest gap
/// among those already placed that live with it (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
/// Inference", 2020, greedy by size). Near-linear in the number of pairs that live together.
MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals);

}  // namespace collage
