#include "collage/provider/regions.h"

#include <algorithm>

namespace collage::provider {

// A path never leads back to a smaller phase, and each change between what is taken and what is not leads to a larger one. So taken nodes
// of one phase, an even one, have nothing in between.
std::vector<std::vector<size_t>> Regions(const std::vector<bool>& taken, const std::vector<std::vector<size_t>>& producers) {
  std::vector<size_t> phases(taken.size());
  std::vector<std::vector<size_t>> regions;
  for (size_t node = 0; node < taken.size(); ++node) {
    size_t& phase = phases[node] = taken[node] ? 0 : 1;
    for (const size_t producer : producers[node]) phase = std::max(phase, phases[producer] + (taken[producer] == taken[node] ? 0 : 1));
    if (!taken[node]) continue;
    regions.resize(std::max(regions.size(), phase / 2 + 1));
    regions[phase / 2].push_back(node);
  }
  std::erase_if(regions, [](const auto& region) { return region.empty(); });
  return regions;
}

}  // namespace collage::provider
