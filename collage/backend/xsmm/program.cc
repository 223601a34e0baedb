#include "collage/backend/xsmm/program.h"

#include <algorithm>
#include <cstdint>

namespace collage::xsmm {

size_t PiecesWorth(double operations, size_t parts, int threads) {
  // None so small that waking the team (0.5 to 3 us) would cost more than it saves.
  constexpr double kLeastOperations = 1 << 18;
  const auto worth = static_cast<size_t>(operations / kLeastOperations);
  return std::clamp<size_t>(worth, 1, std::min(parts, static_cast<size_t>(std::max(threads, 1))));
}

size_t WholeLines(int64_t elements) {
  constexpr size_t kLine = 64 / sizeof(float);
  return (static_cast<size_t>(elements) + kLine - 1) / kLine * kLine;
}

}  // namespace collage::xsmm
