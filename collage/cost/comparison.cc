#include "collage/cost/comparison.h"

#include <algorithm>

namespace collage {
namespace {

std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return ratios;
}

}  // namespace

Comparison Compare(const std::vector<double>& a, const std::vector<double>& b, const Declared& declared) {
  const std::optional<Interval> interval = MedianInterval(Ratios(a, b), declared.confidence);
  if (!interval) return Comparison::kNeedMore;
  if (interval->low >= 1 - declared.smallest_difference && interval->high <= 1 + declared.smallest_difference) return Comparison::kTie;
  if (interval->high < 1) return Comparison::kBetter;
  return interval->low > 1 ? Comparison::kWorse : Comparison::kNeedMore;
}

double PairedRatio(const std::vector<double>& a, const std::vector<double>& b) { return Median(Ratios(a, b)); }

}  // namespace collage
