#include "collage/measure/race.h"

#include <algorithm>
#include <cmath>
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

/// Of these, which have as many rounds.
size_t FastestOf(const std::vector<RaceResult>& results, const std::vector<size_t>& candidates) {
  const std::vector<double>& base = results[candidates.front()].rounds;
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](size_t a, size_t b) { return PairedRatio(results[a].rounds, base) < PairedRatio(results[b].rounds, base); });
}

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
    runs_per_turn_[i] = static_cast<int>(std::clamp(std::ceil(SecondsPerTurn() / std::max(fastest, kTick)), 1.0, double{kMostRunsOfATurn}));
  }

  [[nodiscard]] double SecondsPerTurn() const {
    const auto turns = static_cast<double>(contestants_.size() * LeastRounds());
    return std::min(options_.seconds_per_turn, options_.budget_seconds / turns);
  }

  [[nodiscard]] size_t LeastRounds() const { return options_.tells_apart ? FewestForInterval(options_.declared.confidence) : 1; }

  /// Lets those go who have lost. True when what is asked is known, or nobody is left to ask about.
  bool IsDecided(std::vector<size_t>& order) const {
    std::erase_if(order, [&](size_t i) { return results_[i].rounds.empty(); });
    if (order.size() < 2) return true;
    const size_t fastest = FastestOf(results_, order);
    const bool is_known = options_.is_answered ? options_.is_answered(results_) : IsFastestKnown(results_, options_.declared);
    std::erase_if(order, [&](size_t i) {
      return i != fastest && Compare(results_[i].rounds, results_[fastest].rounds, options_.declared) == Comparison::kWorse;
    });
    return is_known;
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

bool IsFastestKnown(const std::vector<RaceResult>& results, const Declared& declared, const std::function<bool(size_t, size_t)>& is_alike) {
  size_t rounds = 0;
  for (const RaceResult& result : results) rounds = std::max(rounds, result.rounds.size());
  std::vector<size_t> stayed;
  for (size_t i = 0; i < results.size(); ++i) {
    if (rounds > 0 && results[i].rounds.size() == rounds) stayed.push_back(i);
  }
  if (stayed.empty()) return true;
  const size_t fastest = FastestOf(results, stayed);
  return std::ranges::none_of(stayed, [&](size_t i) {
    const bool is_asked = i != fastest && !(is_alike && is_alike(i, fastest));
    return is_asked && MayBeFaster(results[i].rounds, results[fastest].rounds, declared);
  });
}

std::vector<RaceResult> Race(const std::vector<Contestant>& contestants, const RaceOptions& options, const Progress& progress) {
  return Runner(contestants, options).Run(progress);
}

}  // namespace collage
