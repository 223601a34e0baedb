#include "collage/measure/race.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "collage/cost/comparison.h"
#include "collage/cost/measurement.h"
#include "collage/cost/statistics.h"
#include "collage/measure/barrier_probe.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

// What takes no time at all ends too.
constexpr int kMostRunsOfATurn = 2000;

class Runner {
 public:
  Runner(const std::vector<Contestant>& contestants, const RaceOptions& options) : contestants_(contestants), options_(options) {
    for (const Contestant& contestant : contestants) results_.push_back({contestant.name, {}, {}});
    runs_per_turn_.assign(contestants.size(), 1);
  }

  std::vector<RaceResult> Run(const Progress& progress) {
    for (size_t i = 0; i < contestants_.size(); ++i) WarmUp(i);
    const PinnedTeam pinned(options_.threads);
    const Clock::time_point start = Clock::now();
    Progress waiting = progress;
    waiting.deadline = std::min(progress.deadline, Clock::After(options_.budget_seconds));
    std::vector<size_t> order(contestants_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::mt19937 random(1);
    // One round is run even when there is a request to stop: without it nobody would know which plan to take.
    for (size_t round = 0; round == 0 || !progress.ShouldStop(); ++round) {
      if (round >= LeastRounds() && (Clock::SecondsSince(start) > options_.budget_seconds || IsDecided(order))) break;
      BarrierProbe::OfProcess(options_.threads).AwaitCalm(options_.patience_seconds, waiting);
      std::shuffle(order.begin(), order.end(), random);
      for (size_t i : order) Turn(i);
      progress.Report({"timing end to end", round + 1, 0, std::to_string(contestants_.size()) + " plans"});
    }
    return std::move(results_);
  }

 private:
  bool RunOnce(size_t i) {
    const Status status = contestants_[i].run();
    if (!status) {
      results_[i].failure = status.error().message;
      results_[i].rounds.clear();
    }
    return status.has_value();
  }

  void WarmUp(size_t i) {
    double fastest = std::numeric_limits<double>::infinity();
    for (int run = 0; run < std::max(options_.warm_up, 1); ++run) {
      const Clock::time_point start = Clock::now();
      if (!RunOnce(i)) return;
      fastest = std::min(fastest, Clock::SecondsSince(start));
    }
    runs_per_turn_[i] = std::clamp(static_cast<int>(SecondsPerTurn() / std::max(fastest, kTick)), 1, kMostRunsOfATurn);
  }

  [[nodiscard]] double SecondsPerTurn() const {
    const auto turns = static_cast<double>(contestants_.size() * LeastRounds());
    return std::min(options_.seconds_per_turn, options_.budget_seconds / 2 / turns);
  }

  [[nodiscard]] size_t LeastRounds() const { return options_.tells_apart ? FewestForInterval(options_.declared.confidence) : 1; }

  /// Lets those go who have lost. True when nobody who is left needs more.
  bool IsDecided(std::vector<size_t>& order) const {
    std::erase_if(order, [&](size_t i) { return results_[i].rounds.empty(); });
    if (order.size() < 2) return true;
    const std::vector<double>& base = results_[order.front()].rounds;  // all that are left have as many
    const size_t fastest = *std::min_element(order.begin(), order.end(), [&](size_t a, size_t b) {
      return PairedRatio(results_[a].rounds, base) < PairedRatio(results_[b].rounds, base);
    });
    bool is_decided = true;
    std::erase_if(order, [&](size_t i) {
      if (i == fastest) return false;
      const Comparison verdict = Compare(results_[i].rounds, results_[fastest].rounds, options_.declared);
      is_decided = is_decided && verdict != Comparison::kNeedMore;
      return verdict == Comparison::kWorse;
    });
    return is_decided;
  }

  void Turn(size_t i) {
    if (!results_[i].failure.empty()) return;
    std::vector<double> samples;
    const int filling_caches = runs_per_turn_[i] / 2;
    for (int run = 0; run < runs_per_turn_[i]; ++run) {
      const Clock::time_point start = Clock::now();
      if (!RunOnce(i)) return;
      if (run >= filling_caches) samples.push_back(Clock::SecondsSince(start));
    }
    results_[i].rounds.push_back(Median(std::move(samples)));
  }

  const std::vector<Contestant>& contestants_;
  const RaceOptions& options_;
  std::vector<RaceResult> results_;
  std::vector<int> runs_per_turn_;
};

}  // namespace

std::vector<RaceResult> Race(const std::vector<Contestant>& contestants, const RaceOptions& options, const Progress& progress) {
  return Runner(contestants, options).Run(progress);
}

}  // namespace collage
