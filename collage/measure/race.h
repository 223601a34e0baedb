#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/cost/statistics.h"
#include "collage/support/progress.h"
#include "collage/support/result.h"

namespace collage {

/// Something timed end to end against others, by calling `run`.
struct Contestant {
  std::string name;
  std::function<Status()> run;
};

struct RaceOptions {
  /// Of the OpenMP team that the contestants use; they are pinned after the warm-up.
  int threads = 1;
  int warm_up = 2;
  /// The race ends here, but not before there are rounds enough for an interval at the declared confidence.
  double budget_seconds = 10;
  /// In each round every contestant runs about this long (at least once), so that microsecond programs are not lost in switches.
  double seconds_per_turn = 0.02;
  Declared declared;
  /// Whether it is asked who is faster. Else no round has to be run beyond the first.
  bool tells_apart = true;
};

/// Seconds per run of one contestant: the median of each of its turns, one entry a round (fewer when it has lost). Empty when its run
/// failed.
struct RaceResult {
  std::string name;
  std::vector<double> rounds;
  std::string failure;
};

/// Times all contestants in interleaved rounds, in an order that changes with each round: machines drift by more than what
/// separates good plans, and only what runs side by side can be compared. Who is worse than the fastest by Compare leaves the time to the
/// others. Ends when nobody who is left needs more, or the budget does; with what is there but not before the first round, when asked to
/// stop.
std::vector<RaceResult> Race(const std::vector<Contestant>& contestants, const RaceOptions& options, const Progress& progress);

}  // namespace collage
