#include "collage/cost/noise_floor.h"

#include <vector>

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
  options.threads = device.threads;
  options.budget_seconds = 0.2;
  options.seconds_per_turn = 0.003;
  options.least_rounds = 9;
  // One of two equal ones has not lost because something else ran.
  options.lost_ratio = 1e9;
  Progress quiet;
  quiet.stop_requested = progress.stop_requested;
  const std::vector<Contestant> pair = {{"a", work}, {"again", work}};
  const std::vector<RaceResult> results = Race(pair, options, quiet);
  const bool has_both = !results[0].rounds.empty() && !results[1].rounds.empty();
  return has_both ? PairedNoise(results[0], results[1]) : 0;
}

}  // namespace collage
