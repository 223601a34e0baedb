#pragma once

// What a few samples tell, without assuming how they are distributed. All doubt of the project is stated at one declared confidence.

#include <optional>
#include <vector>

namespace collage {

/// What is declared once, and every decision follows: how sure a statement has to be, and which difference is worth having.
struct Declared {
  /// Of intervals, bounds and comparisons.
  double confidence = 0.95;
  /// As a share of a whole program: what is less is no reason to prefer one plan, nor to go on measuring.
  double smallest_difference = 0.01;
};

struct Interval {
  double low;
  double high;
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The p-th percentile (0 to 1) by linear interpolation; `samples` must not be empty.
double Percentile(std::vector<double> samples, double p);
double Median(std::vector<double> samples);

/// The confidence interval of the median from order statistics (Conover, Practical Nonparametric Statistics, 3.2), by the exact binomial
/// distribution. Nothing where so few samples cannot give this confidence (FewestForInterval).
std::optional<Interval> MedianInterval(std::vector<double> samples, double confidence);

/// The fewest samples of which it gives an interval: six at 95%.
size_t FewestForInterval(double confidence);

/// Half the width of that interval; of too few samples, of all that they are. `samples` must not be empty.
double MedianHalfWidth(const std::vector<double>& samples, double confidence = Declared().confidence);

/// The value below which the next sample falls with no more than 1 - `confidence`, if it comes from where these came (the one-sided
/// conformal bound: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005). Nothing where so few samples cannot tell
/// (fewer than 19 at 95%).
std::optional<double> NextIsAbove(std::vector<double> samples, double confidence);

/// Between which values the next sample falls, if all are drawn from one normal distribution (Student's prediction interval). Samples count
/// by their weights, which must be positive. Nothing where they weigh less than two equal ones together (Kish's effective number).
struct Weighted {
  double value;
  double weight;
};
std::optional<Interval> NextIsWithin(const std::vector<Weighted>& samples, double confidence);
/// The value at which half of the weight is reached; `samples` must not be empty.
double WeightedMedian(std::vector<Weighted> samples);

/// The two-sided quantile of Student's distribution: |t| stays below it with this confidence. `degrees` of freedom, at least 1, need
/// not be whole: those of weighted samples are not.
double StudentQuantile(double confidence, double degrees);

}  // namespace collage
