#include "collage/cost/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
    k = static_cast<size_t>(static_cast<double>(n) / 2 -
                            StudentQuantile(confidence, static_cast<double>(n)) * std::sqrt(static_cast<double>(n)) / 2);
  if (k == 0) return std::nullopt;
  return Interval{samples[k - 1], samples[n - k]};
}

size_t FewestForInterval(double confidence) {
  // All of n samples lie on one side of the median with a chance of 2 to the power of 1 - n.
  return static_cast<size_t>(std::ceil(1 - std::log2(1 - confidence)));
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
  const double reach = StudentQuantile(confidence, count - 1) * std::sqrt(variance * (1 + 1 / count));
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

/// Up to here the continued fraction of BetaShare converges fast.
double MostForBetaShare(double a, double b) { return (a + 1) / (a + b + 2); }

/// The regularised incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22), evaluated from the front (Lentz, Applied
/// Optics 15, 1976) until a term changes nothing but the last bits.
double BetaShare(double a, double b, double x) {
  constexpr double kLastBits = 16 * std::numeric_limits<double>::epsilon();
  if (x <= 0) return 0;
  double numerator = 1;
  double denominator = 0;
  double fraction = 1;
  double change = 0;
  for (double m = 0; std::abs(change - 1) > kLastBits; ++m) {
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    const double even = (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2));
    for (const double term : {odd, even}) {
      denominator = 1 / (1 + term * denominator);
      numerator = 1 + term / numerator;
      change = numerator * denominator;
      fraction *= change;
    }
  }
  const double logarithm = a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  return std::exp(logarithm) / (a * fraction);
}

/// The chance that |t| stays below `t` (Abramowitz and Stegun, 26.7.1).
double ChanceWithin(double t, double degrees) {
  const double square = t * t;
  const double within = square / (degrees + square);
  if (within < MostForBetaShare(0.5, degrees / 2)) return BetaShare(0.5, degrees / 2, within);
  return 1 - BetaShare(degrees / 2, 0.5, degrees / (degrees + square));
}

}  // namespace

double StudentQuantile(double confidence, double degrees) {
  COLLAGE_CHECK(degrees >= 1);
  double low = 0;
  double high = 1;
  while (ChanceWithin(high, degrees) < confidence) high *= 2;
  constexpr double kPrecision = 1e-9;  // of the quantile; samples tell three digits of it at most
  while (high - low > kPrecision * high) {
    const double middle = (low + high) / 2;
    (ChanceWithin(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace collage
