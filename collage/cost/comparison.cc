#include "collage/cost/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage {
namespace {

// Of the polish, in logarithms: a thousandth of the smallest difference that anybody declares.
constexpr double kSettled = 1e-5;
// It settles within some ten; medians that take turns for ever have to end as well.
constexpr int kMostSweeps = 100;

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

std::vector<double> RelativeTimes(const std::vector<std::vector<double>>& times) {
  size_t rounds = 0;
  for (const std::vector<double>& row : times) rounds = std::max(rounds, row.size());
  std::vector<double> own(times.size(), 0);
  std::vector<double> of_round(rounds);
  double change = std::numeric_limits<double>::infinity();
  for (int sweep = 0; sweep < kMostSweeps && change > kSettled; ++sweep) {
    for (size_t round = 0; round < rounds; ++round) {
      std::vector<double> left;
      for (size_t i = 0; i < times.size(); ++i) {
        if (round < times[i].size()) left.push_back(std::log(times[i][round]) - own[i]);
      }
      of_round[round] = Median(std::move(left));
    }
    change = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i].empty()) continue;
      std::vector<double> left;
      for (size_t round = 0; round < times[i].size(); ++round) left.push_back(std::log(times[i][round]) - of_round[round]);
      const double median = Median(std::move(left));
      change = std::max(change, std::abs(median - own[i]));
      own[i] = median;
    }
  }
  for (size_t i = 0; i < times.size(); ++i) own[i] = times[i].empty() ? std::numeric_limits<double>::infinity() : std::exp(own[i]);
  return own;
}

std::vector<size_t> BestFirst(const std::vector<std::vector<double>>& times, const Declared& declared,
                              const std::function<bool(size_t, size_t)>& is_preferred) {
  const std::vector<double> relative = RelativeTimes(times);
  std::vector<size_t> order;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!times[i].empty()) order.push_back(i);
  }
  if (order.empty()) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return relative[a] < relative[b]; });
  const size_t fastest = order.front();
  const auto tied = std::stable_partition(order.begin(), order.end(), [&](size_t i) {
    return relative[i] <= (1 + declared.smallest_difference) * relative[fastest] &&
           Compare(times[i], times[fastest], declared) != Comparison::kWorse;
  });
  std::stable_sort(order.begin(), tied, is_preferred);
  return order;
}

}  // namespace collage
