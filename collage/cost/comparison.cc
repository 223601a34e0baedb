#include "collage/cost/comparison.h"

#include <algorithm>
#include <iterator>

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

bool MayBeFaster(const std::vector<double>& a, const std::vector<double>& b, const Declared& declared) {
  const std::optional<Interval> interval = MedianInterval(Ratios(a, b), declared.confidence);
  return !interval || interval->low < 1 - declared.smallest_difference;
}

double PairedRatio(const std::vector<double>& a, const std::vector<double>& b) { return Median(Ratios(a, b)); }

std::vector<size_t> BestFirst(const std::vector<std::vector<double>>& times, const Declared& declared,
                              const std::function<bool(size_t, size_t)>& is_preferred) {
  std::vector<size_t> order;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!times[i].empty()) order.push_back(i);
  }
  if (order.empty()) return order;
  // Who left has lost to somebody who stayed, however it looks beside one that lost later. All may have lost where they do in a circle.
  const auto has_lost = [&](size_t i) {
    return std::any_of(order.begin(), order.end(), [&](size_t other) {
      return times[other].size() >= times[i].size() && Compare(times[i], times[other], declared) == Comparison::kWorse;
    });
  };
  std::vector<size_t> unbeaten;
  std::copy_if(order.begin(), order.end(), std::back_inserter(unbeaten), [&](size_t i) { return !has_lost(i); });
  if (unbeaten.empty()) unbeaten = order;
  const auto fastest_beside = [&](size_t base) {
    return *std::min_element(unbeaten.begin(), unbeaten.end(),
                             [&](size_t a, size_t b) { return PairedRatio(times[a], times[base]) < PairedRatio(times[b], times[base]); });
  };
  const size_t fastest = fastest_beside(
      *std::max_element(unbeaten.begin(), unbeaten.end(), [&](size_t a, size_t b) { return times[a].size() < times[b].size(); }));
  const auto slowness = [&](size_t i) { return PairedRatio(times[i], times[fastest]); };
  const auto ties = [&](size_t i) {
    return slowness(i) <= 1 + declared.smallest_difference && std::find(unbeaten.begin(), unbeaten.end(), i) != unbeaten.end();
  };
  const auto tied = std::stable_partition(order.begin(), order.end(), ties);
  std::stable_sort(order.begin(), tied, is_preferred);
  std::stable_sort(tied, order.end(), [&](size_t a, size_t b) { return slowness(a) < slowness(b); });
  return order;
}

}  // namespace collage
