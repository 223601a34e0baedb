#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/cost/statistics.h"
#include "collage/measure/measure_kernel.h"
#include "collage/support/progress.h"
#include "collage/support/result.h"

namespace collage {

/// Seconds per run of one contestant: the median of the second half of each of its turns, one entry a round (fewer when it has lost). Empty
/// when its run failed.
struct RaceResult {
  std::string name;
  std::vector<double> rounds;
  std::string failure;
};

/// Something timed end to end against others, by calling `run`.
struct Contestant {
  std::string name;
  std::function<Status()> run;
};

/// For so long runs of a program fill caches, and do not count: after the runs of others it took 60 ms until one of 17 MB of weights, 5.0
/// ms at first, took 3.5 ms again (docs/measured.md).
inline constexpr double kSecondsFillingCaches = 0.06;

struct RaceOptions {
  /// Of the OpenMP team that the contestants use; they are pinned after the warm-up.
  int threads = 1;
  int warm_up = 2;
  /// The race ends here, and so does waiting for others who use the processors, but not before there are rounds enough for an interval at
  /// the declared confidence.
  double budget_seconds = 10;
  double patience_seconds = MeasureOptions().patience_seconds;  ///< for these others, with what the process has waited before
  /// In each round every contestant runs at least so long, or as long as the budget allows in the fewest rounds that can tell, and at least
  /// once. The first half of its runs fill caches: a single run of a program of 60 ms counted with what others had left in them.
  double seconds_per_turn = 2 * kSecondsFillingCaches;
  Declared declared;
  /// Whether it is asked who is faster. Else no round has to be run beyond the first.
  bool tells_apart = true;
  /// Whether these results answer what is asked, where that is something else than who of all is fastest.
  std::function<bool(const std::vector<RaceResult>&)> is_answered = {};
};

/// Whether nobody who stayed may be faster than the fastest of them by more than the smallest difference, but whoever `is_alike` says to be
/// as good, which may be empty.
bool IsFastestKnown(const std::vector<RaceResult>& results, const Declared& declared,
                    const std::function<bool(size_t, size_t)>& is_alike = {});

/// Times all contestants in interleaved rounds, in an order that changes with each round: machines drift by more than what
/// separates good plans, and only what runs side by side can be compared. Who is worse than the fastest by Compare leaves the time to the
/// others. Ends when nobody who is left may be faster by more than the smallest difference, or the budget does; with what is there but not
/// before the first round, when asked to stop.
std::vector<RaceResult> Race(const std::vector<Contestant>& contestants, const RaceOptions& options, const Progress& progress);

}  // namespace collage
