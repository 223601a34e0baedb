#include "collage/cost/noise_floor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collage/cost/measurement.h"
#include "collage/cost/race.h"
#include "collage/runtime/parallel.h"

namespace collage {

double MeasureNoiseFloor(const Device& device, const Progress& progress) {
  // About as long as a kernel that matters, within a core's own caches.
  constexpr size_t kWords = size_t{1} << 15;
  constexpr int kPasses = 8;
  std::vector<float> words(kWords, 1);
  const auto work = [&]() -> Status {
    for (int pass = 0; pass < kPasses; ++pass) {
      ParallelFor(words.size(), 1, device.threads, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) words[i] = words[i] * 0.999f + 0.001f;
      });
    }
    return {};
  };
  RaceOptions options;
  options.budget_seconds = 0.2;
  options.seconds_per_turn = 0.003;
  options.least_rounds = 9;
  // One of two equal ones has not lost because something else ran.
  options.lost_ratio = 1e9;
  Progress quiet;
  quiet.stop_requested = progress.stop_requested;
  const std::vector<Contestant> pair = {{"a", work}, {"again", work}};
  const std::vector<RaceResult> results = Race(pair, options, quiet);
  std::vector<double> apart;
  for (size_t round = 0; round < std::min(results[0].rounds.size(), results[1].rounds.size()); ++round)
    apart.push_back(std::abs(results[0].rounds[round] / results[1].rounds[round] - 1));
  constexpr double kHigh = 0.9;
  return apart.empty() ? 0 : Percentile(std::move(apart), kHigh);
}

}  // namespace collage
