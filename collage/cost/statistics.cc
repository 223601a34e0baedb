#include "collage/cost/statistics.h"

#include <algorithm>
#include <cmath>

#include "collage/support/check.h"

namespace collage {

double Percentile(std::vector<double> samples, double p) {
  COLLAGE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const double at = p * static_cast<double>(samples.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (at - static_cast<double>(low)) * (samples[high] - samples[low]);
}

double Median(std::vector<double> samples) { return Percentile(std::move(samples), 0.5); }

std::optional<Interval> MedianInterval(std::vector<double> samples, double confidence) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  // The median lies outside of the k-th least and the k-th greatest sample with twice the chance that fewer than k of n coins show heads.
  const double most_outside = (1 - confidence) / 2;
  double chance = std::pow(0.5, static_cast<double>(n));
  double fewer = 0;
  size_t k = 0;
  while (k < n && fewer + chance <= most_outside) {
    fewer += chance;
    chance *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  // Of so many samples that the chance underflows, the binomial distribution is normal.
  if (n > 1000)
    k = static_cast<size_t>(static_cast<double>(n) / 2 - StudentQuantile(confidence, n) * std::sqrt(static_cast<double>(n)) / 2);
  if (k == 0) return std::nullopt;
  return Interval{samples[k - 1], samples[n - k]};
}

double MedianHalfWidth(const std::vector<double>& samples, double confidence) {
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  const Interval interval = MedianInterval(samples, confidence).value_or(Interval{*least, *most});
  return (interval.high - interval.low) / 2;
}

std::optional<double> NextIsAbove(std::vector<double> samples, double confidence) {
  const auto rank = static_cast<size_t>((1 - confidence) * static_cast<double>(samples.size() + 1) + 1e-9);  // 0.05 is a little less
  if (rank == 0) return std::nullopt;
  std::nth_element(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(rank - 1), samples.end());
  return samples[rank - 1];
}

std::optional<Interval> NextIsWithin(const std::vector<Weighted>& samples, double confidence) {
  double sum = 0;
  double squares = 0;
  double mean = 0;
  for (const Weighted& sample : samples) {
    sum += sample.weight;
    squares += sample.weight * sample.weight;
    mean += sample.weight * sample.value;
  }
  const double count = squares > 0 ? sum * sum / squares : 0;
  if (count < 2) return std::nullopt;
  mean /= sum;
  double variance = 0;
  for (const Weighted& sample : samples) variance += sample.weight / sum * (sample.value - mean) * (sample.value - mean);
  variance *= count / (count - 1);
  const double reach = StudentQuantile(confidence, static_cast<size_t>(count - 1)) * std::sqrt(variance * (1 + 1 / count));
  return Interval{mean - reach, mean + reach};
}

double WeightedMedian(std::vector<Weighted> samples) {
  COLLAGE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double sum = 0;
  for (const Weighted& sample : samples) sum += sample.weight;
  double below = 0;
  for (const Weighted& sample : samples) {
    if (2 * (below += sample.weight) >= sum) return sample.value;
  }
  return samples.back().value;
}

namespace {

/// The chance that |t| stays below `t`: closed forms for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double ChanceWithin(double t, size_t degrees) {
  const auto n = static_cast<double>(degrees);
  const double angle = std::atan(t / std::sqrt(n));
  const double cosine = std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? cosine : 1;
  double sum = degrees == 1 ? 0 : term;
  for (size_t i = is_odd ? 3 : 2; i + 1 < degrees; i += 2) {
    term *= cosine * cosine * static_cast<double>(i - 1) / static_cast<double>(i);
    sum += term;
  }
  if (!is_odd) return std::sin(angle) * sum;
  return 2 / std::acos(-1.0) * (angle + std::sin(angle) * sum);
}

}  // namespace

double StudentQuantile(double confidence, size_t degrees) {
  COLLAGE_CHECK(degrees > 0);
  constexpr size_t kLikeNormal = 1000;  // from there on the quantile no longer changes in its third digit
  degrees = std::min(degrees, kLikeNormal);
  double low = 0;
  double high = 1;
  while (ChanceWithin(high, degrees) < confidence) high *= 2;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (ChanceWithin(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace collage
