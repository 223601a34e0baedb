#include "collage/backend/xsmm/fused_rows.h"

#include <algorithm>

#include "collage/backend/xsmm/tiling.h"

namespace collage::xsmm {

RowSpan RowsRead(const RowWindow& window, const RowSpan& results) {
  if (results.Count() <= 0) return {};
  const int64_t first = results.first * window.stride - window.pad_begin;
  const int64_t last = (results.last - 1) * window.stride - window.pad_begin + (window.kernel - 1) * window.dilation + 1;
  const int64_t clamped = std::clamp<int64_t>(first, 0, window.data_rows);
  return {clamped, std::clamp(last, clamped, window.data_rows)};
}

std::vector<RowStep> CutIntoSteps(std::span<const RowWindow> windows, const RowSpan& band, int64_t rows) {
  std::vector<RowStep> steps;
  std::vector<int64_t> computed(windows.size(), 0);  // rows up to which each is done, or which no step will need any more
  for (const auto& [first, count] : CutEvenly(band.Count(), rows, 1)) {
    RowStep step(windows.size());
    step.back() = {band.first + first, band.first + first + count};
    for (size_t i = windows.size() - 1; i > 0; --i) {
      const RowSpan read = RowsRead(windows[i], step[i]);
      const int64_t begin = std::max(read.first, computed[i - 1]);
      step[i - 1] = {begin, std::max(begin, read.last)};
      computed[i - 1] = std::max(computed[i - 1], read.last);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<int64_t> RowsKept(std::span<const RowWindow> windows, std::span<const RowStep> steps) {
  std::vector<int64_t> kept(windows.size() - 1, 1);
  for (const RowStep& step : steps) {
    for (size_t i = 1; i < windows.size(); ++i) kept[i - 1] = std::max(kept[i - 1], RowsRead(windows[i], step[i]).Count());
  }
  return kept;
}

}  // namespace collage::xsmm
