#include "collage/backend/xsmm/tiling.h"

#include <algorithm>

namespace collage::xsmm {

std::vector<std::pair<int64_t, int64_t>> CutEvenly(int64_t count, int64_t most, int64_t unit) {
  const int64_t units = (count + unit - 1) / unit;
  const int64_t units_of_most = std::max<int64_t>(most / unit, 1);
  const int64_t parts = (units + units_of_most - 1) / units_of_most;
  std::vector<std::pair<int64_t, int64_t>> cuts;
  for (int64_t part = 0; part < parts; ++part) {
    // The larger parts come first, so that what is no whole unit falls to a smaller one.
    const int64_t begin = (units * part + parts - 1) / parts * unit;
    const int64_t end = std::min((units * (part + 1) + parts - 1) / parts * unit, count);
    cuts.emplace_back(begin, end - begin);
  }
  return cuts;
}

}  // namespace collage::xsmm
