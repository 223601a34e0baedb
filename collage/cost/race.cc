#include "collage/cost/race.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "collage/cost/barrier_probe.h"
#include "collage/cost/measurement.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/check.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

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
    std::vector<size_t> order(contestants_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::mt19937 random(1);
    // One round is run even when there is a request to stop: without it nobody would know which plan to take.
    for (int round = 0; round < options_.most_rounds && (round == 0 || !progress.ShouldStop()); ++round) {
      if (round >= options_.least_rounds && IsEnough(round, Clock::SecondsSince(start))) break;
      if (round == options_.least_rounds) DropLosers(order);
      BarrierProbe::OfProcess(options_.threads).AwaitCalm(progress);
      std::shuffle(order.begin(), order.end(), random);
      for (size_t i : order) Turn(i);
      progress.Report({"timing end to end", static_cast<size_t>(round + 1), 0, std::to_string(contestants_.size()) + " plans"});
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
    double fastest = 1e9;
    for (int run = 0; run < std::max(options_.warm_up, 1); ++run) {
      const Clock::time_point start = Clock::now();
      if (!RunOnce(i)) return;
      fastest = std::min(fastest, Clock::SecondsSince(start));
    }
    runs_per_turn_[i] = std::clamp(static_cast<int>(options_.seconds_per_turn / std::max(fastest, 1e-9)), 1, 2000);
  }

  [[nodiscard]] bool IsEnough(int round, double seconds) const {
    if (seconds <= options_.budget_seconds) return false;
    if (!options_.equal_pair || seconds > options_.most_seconds) return true;
    const RaceResult& a = results_[options_.equal_pair->first];
    const RaceResult& again = results_[options_.equal_pair->second];
    const bool both_still_run = std::min(a.rounds.size(), again.rounds.size()) == static_cast<size_t>(round);
    return !both_still_run || PairedNoise(a, again) <= options_.aim_noise;
  }

  void DropLosers(std::vector<size_t>& order) const {
    double fastest = std::numeric_limits<double>::infinity();
    for (const RaceResult& result : results_) {
      if (!result.rounds.empty()) fastest = std::min(fastest, Percentile(result.rounds, 0.5));
    }
    std::erase_if(
        order, [&](size_t i) { return results_[i].rounds.empty() || Percentile(results_[i].rounds, 0.5) > options_.lost_ratio * fastest; });
  }

  void Turn(size_t i) {
    if (!results_[i].failure.empty()) return;
    std::vector<double> samples;
    for (int run = 0; run < runs_per_turn_[i]; ++run) {
      const Clock::time_point start = Clock::now();
      if (!RunOnce(i)) return;
      samples.push_back(Clock::SecondsSince(start));
    }
    results_[i].rounds.push_back(Percentile(std::move(samples), 0.5));
  }

  const std::vector<Contestant>& contestants_;
  const RaceOptions& options_;
  std::vector<RaceResult> results_;
  std::vector<int> runs_per_turn_;
};

std::vector<double> RoundRatios(const RaceResult& a, const RaceResult& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.rounds.size(), b.rounds.size()); ++i) ratios.push_back(a.rounds[i] / b.rounds[i]);
  return ratios;
}

}  // namespace

std::vector<RaceResult> Race(const std::vector<Contestant>& contestants, const RaceOptions& options, const Progress& progress) {
  return Runner(contestants, options).Run(progress);
}

double PairedRatio(const RaceResult& a, const RaceResult& b) { return Percentile(RoundRatios(a, b), 0.5); }

double PairedNoise(const RaceResult& a, const RaceResult& again) {
  std::vector<double> ratios = RoundRatios(a, again);
  COLLAGE_CHECK(!ratios.empty());
  for (double& ratio : ratios) ratio = std::abs(ratio - 1);
  return Percentile(ratios, 0.9) / std::sqrt(static_cast<double>(ratios.size()));
}

}  // namespace collage
