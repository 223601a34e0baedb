#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "collage/cost/statistics.h"

namespace collage {

enum class Comparison { kBetter, kWorse, kTie, kNeedMore };

/// How `a` compares to `b`, of times that were taken in turn: a[i] and b[i] at the same moment. The interval of the median of a[i] / b[i]
/// at the declared confidence decides: a tie is where it lies within the smallest difference, better or worse where it excludes equality.
/// The one comparison: of kernels, schedules, plans and whole compiles.
Comparison Compare(const std::vector<double>& a, const std::vector<double>& b, const Declared& declared);

/// The median of a[i] / b[i]; there must be one pair.
double PairedRatio(const std::vector<double>& a, const std::vector<double>& b);

/// How slow each is beside all others, as a factor of which only ratios mean something; infinite for who has no times. times[i][r] is of
/// the round r; who leaves early has fewer. A time is its contestant's factor by its round's, fitted by medians in turn (median polish:
/// Tukey, Exploratory Data Analysis, 1977). So slow rounds are held against nobody who has not seen the fast ones.
std::vector<double> RelativeTimes(const std::vector<std::vector<double>>& times);

/// Best first: the fastest and those which are slower by no more than the smallest difference, unless Compare tells them apart, in the
/// order of `is_preferred`; then the others by their relative time. Who has no times is left out.
std::vector<size_t> BestFirst(const std::vector<std::vector<double>>& times, const Declared& declared,
                              const std::function<bool(size_t, size_t)>& is_preferred);

}  // namespace collage
