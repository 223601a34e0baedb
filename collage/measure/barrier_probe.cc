#include "collage/measure/barrier_probe.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "collage/cost/statistics.h"
#include "collage/runtime/parallel.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// The team's threads may be asleep at first.
constexpr int kWarmUp = 2;
constexpr int kRegions = 9;
// A region takes some microseconds, of large teams tens of them; one of a team whose threads take turns takes as long as libgomp spins.
constexpr double kMostSeconds = 100e-6;
constexpr double kMostSecondsOfAThread = 2e-6;

void RunEmptyRegion(int threads) {
  ParallelFor(static_cast<size_t>(threads), 1, threads, [](size_t, size_t) {});
}

}  // namespace

BarrierProbe& BarrierProbe::OfProcess(int threads) {
  static std::map<int, BarrierProbe> probes;
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  return probes.try_emplace(threads, threads, Machine{[threads] { RunEmptyRegion(threads); }, pause}).first->second;
}

bool BarrierProbe::IsCalm() {
  const PinnedTeam pinned(threads_);
  std::vector<double> seconds;
  for (int region = 0; region < kWarmUp + kRegions; ++region) {
    const Clock::time_point start = Clock::now();
    machine_.region();
    if (region >= kWarmUp) seconds.push_back(Clock::SecondsSince(start));
  }
  return Percentile(std::move(seconds), 0.5) <= kMostSeconds + kMostSecondsOfAThread * threads_;
}

void BarrierProbe::AwaitCalm(double patience, const Progress& progress) {
  if (!HasPatience(patience)) return;
  const Clock::time_point start = Clock::now();
  while (!IsCalm()) {
    machine_.pause();
    if (progress.ShouldStop()) break;
    if (waited_ + Clock::SecondsSince(start) < patience) continue;
    spdlog::warn("something else has been using the processors for {:.1f} s; prices may be worse than they should be", patience);
    waited_ = patience;
    return;
  }
  waited_ += Clock::SecondsSince(start);
}

}  // namespace collage
