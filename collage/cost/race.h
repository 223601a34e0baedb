#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  int least_rounds = 5;
  int most_rounds = 400;
  double budget_seconds = 10;
  /// In each round every contestant runs about this long (at least once), so that microsecond programs are not lost in switches.
  double seconds_per_turn = 0.02;
  /// Two contestants that are the same program (an A/A pair): racing goes on beyond the budget, for at most `most_seconds`, until what
  /// they differ by is below `aim_noise`.
  std::optional<std::pair<size_t, size_t>> equal_pair = {};
  double aim_noise = 0.01;
  double most_seconds = 30;
  /// Who takes more than this many times the fastest one's time after least_rounds has lost, and leaves the time to the others.
  double lost_ratio = 1.25;
};

/// Seconds per run of one contestant: the median of each of its turns, one entry a round (fewer when it has lost). Empty when its run
/// failed.
struct RaceResult {
  std::string name;
  std::vector<double> rounds;
  std::string failure;
};

/// Times all contestants in interleaved rounds, in an order that changes with each round: machines drift by more than what
/// separates good plans, and only what runs side by side can be compared. Ends early, with what is there but not before
/// the first round, when asked to stop.
std::vector<RaceResult> Race(const std::vector<Contestant>& contestants, const RaceOptions& options, const Progress& progress);

/// Median over the rounds of time(a) / time(b), pairing the turns of one round.
double PairedRatio(const RaceResult& a, const RaceResult& b);

/// How far two equal contestants are apart by chance: the 90th percentile of |ratio of a round - 1| of an A/A pair, divided by the
/// square root of the number of rounds (the spread of a median shrinks so).
double PairedNoise(const RaceResult& a, const RaceResult& again);

}  // namespace collage
