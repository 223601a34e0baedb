#pragma once

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

}  // namespace collage
