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

/// Whether `a` may be faster than `b` by more than the smallest difference: where the interval reaches that far, or there are too few pairs
/// for one. Who need not fear that of anybody may be chosen, however little is known of the others' order (PAC best-arm identification,
/// Even-Dar et al., JMLR 2006).
bool MayBeFaster(const std::vector<double>& a, const std::vector<double>& b, const Declared& declared);

/// The median of a[i] / b[i]; there must be one pair.
double PairedRatio(const std::vector<double>& a, const std::vector<double>& b);

/// Best first, of times[i][r] of round r; who leaves a race early has fewer rounds. Of those that Compare calls worse than nobody who
/// stayed as long comes the fastest first, and with it whoever is slower by no more than the smallest difference, in the order of
/// `is_preferred`; then all others, by their ratio to the fastest. Who has no times is left out.
std::vector<size_t> BestFirst(const std::vector<std::vector<double>>& times, const Declared& declared,
                              const std::function<bool(size_t, size_t)>& is_preferred);

}  // namespace collage
