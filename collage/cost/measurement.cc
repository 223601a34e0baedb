#include "collage/cost/measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/cost/barrier_probe.h"
#include "collage/cost/kernel_buffers.h"
#include "collage/runtime/parallel.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/check.h"

namespace collage {
namespace {

class CacheEvictor {
 public:
  CacheEvictor(size_t bytes, int threads) : words_(bytes / sizeof(uint64_t), 1), threads_(threads) {}

  // Each thread writes its share, as the kernels before would have filled the caches of every core.
  void Evict() {
    ParallelFor(words_.size(), 1, threads_, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; i += 8) ++words_[i];
    });
  }

  [[nodiscard]] bool evicts() const { return !words_.empty(); }

 private:
  std::vector<uint64_t> words_;
  int threads_;
};

/// A kernel with its buffers.
class TimedKernel {
 public:
  TimedKernel(Kernel& kernel, CacheEvictor& evictor) : kernel_(kernel), buffers_(kernel), evictor_(evictor) {}

  /// Seconds.
  Result<double> Run() { return buffers_.TimedRun(kernel_); }

  /// Seconds, with caches as the kernels before it would have left them.
  Result<double> RunCold() {
    if (evictor_.evicts()) {
      evictor_.Evict();
      buffers_.ReadInputs();
    }
    return Run();
  }

 private:
  Kernel& kernel_;
  KernelBuffers buffers_;
  CacheEvictor& evictor_;
};

}  // namespace

std::pair<double, double> PercentileInterval(std::vector<double> samples, double p) {
  COLLAGE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  const double spread = 1.96 * std::sqrt(n * p * (1 - p));
  const auto low = static_cast<size_t>(std::clamp(std::floor(n * p - spread), 0.0, n - 1));
  const auto high = static_cast<size_t>(std::clamp(std::ceil(n * p + spread), 0.0, n - 1));
  return {samples[low], samples[high]};
}

double PercentileHalfWidth(const std::vector<double>& samples, double p) {
  const auto [low, high] = PercentileInterval(samples, p);
  return (high - low) / 2;
}

namespace {

bool IsTight(const std::vector<double>& samples, const MeasureOptions& options) {
  return PercentileHalfWidth(samples, options.percentile) <= options.relative_width * Percentile(samples, options.percentile);
}

}  // namespace

Cost Measurement::ToCost(double percentile) const {
  if (!invalid_reason.empty() || samples.empty()) return Cost::Invalid();
  return Cost::Seconds(Percentile(samples, percentile));
}

Cost Measurement::ToLeastCost(double percentile) const {
  if (!invalid_reason.empty() || samples.empty()) return Cost::Invalid();
  return Cost::Seconds(PercentileInterval(samples, percentile).first);
}

namespace {

Measurement MeasureOnce(Kernel& kernel, const Device& device, const MeasureOptions& options) {
  CacheEvictor evictor(options.eviction_bytes, device.threads);
  TimedKernel timed(kernel, evictor);
  Measurement measurement;
  constexpr size_t kEnoughForTheHopeless = 3;
  const double hopeless_seconds = options.rival_seconds.value_or(std::numeric_limits<double>::infinity()) * options.hopeless_ratio;
  double fastest = std::numeric_limits<double>::infinity();
  double spent = 0;
  std::optional<PinnedTeam> pinned;
  for (int run = 0; run < options.warm_up + options.most_samples; ++run) {
    if (run == options.warm_up) pinned.emplace(device.threads);
    const Result<double> seconds = run < options.warm_up ? timed.Run() : timed.RunCold();
    if (!seconds) return {{}, seconds.error().message};
    spent += *seconds;
    const bool is_slow = spent >= options.most_seconds;
    if (run < options.warm_up && !is_slow) {
      if (run + 1 == options.warm_up) spent = 0;
      continue;
    }
    measurement.samples.push_back(*seconds);
    fastest = std::min(fastest, *seconds);
    if (is_slow && measurement.samples.size() >= 2) break;
    if (fastest > hopeless_seconds && measurement.samples.size() >= kEnoughForTheHopeless) break;
    if (static_cast<int>(measurement.samples.size()) < options.least_samples) continue;
    if (spent >= options.budget_seconds || IsTight(measurement.samples, options)) break;
  }
  return measurement;
}

Measurement MeasureOnceBesideRival(Kernel& kernel, Kernel& rival, const Device& device, const MeasureOptions& options) {
  CacheEvictor evictor(options.eviction_bytes, device.threads);
  TimedKernel first(kernel, evictor);
  TimedKernel second(rival, evictor);
  for (int run = 0; run < options.warm_up; ++run) {
    for (TimedKernel* timed : {&first, &second}) {
      if (const Result<double> seconds = timed->Run(); !seconds) return {{}, seconds.error().message};
    }
  }
  const PinnedTeam pinned(device.threads);
  std::vector<double> ratios;
  double spent = 0;
  while (static_cast<int>(ratios.size()) < options.most_samples) {
    const bool is_swapped = ratios.size() % 2 == 1;
    const Result<double> one = (is_swapped ? second : first).RunCold();
    const Result<double> two = (is_swapped ? first : second).RunCold();
    if (!one || !two) return {{}, (one ? two : one).error().message};
    constexpr double kTick = 1e-9;  // what the clock cannot tell from nothing
    ratios.push_back(std::max(is_swapped ? *two : *one, kTick) / std::max(is_swapped ? *one : *two, kTick));
    spent += std::min(*one, *two);
    if (static_cast<int>(ratios.size()) < options.least_samples && spent < options.most_seconds) continue;
    if (spent >= options.budget_seconds || IsTight(ratios, options)) break;
  }
  for (double& ratio : ratios) ratio *= *options.rival_seconds;
  return {std::move(ratios), {}};
}

}  // namespace

Measurement MeasureKernel(Kernel& kernel, const Device& device, const MeasureOptions& options) {
  return BarrierProbe::OfProcess(device.threads).Calmly([&] { return MeasureOnce(kernel, device, options); });
}

Measurement MeasureBesideRival(Kernel& kernel, Kernel& rival, const Device& device, const MeasureOptions& options) {
  COLLAGE_CHECK(options.rival_seconds.has_value());
  return BarrierProbe::OfProcess(device.threads).Calmly([&] { return MeasureOnceBesideRival(kernel, rival, device, options); });
}

bool IsClose(const Measurement& measurement, const MeasureOptions& options) {
  const Cost cost = measurement.ToCost(options.percentile);
  if (!options.rival_seconds || !cost.IsKnown()) return false;
  const double ratio = cost.ToSeconds() / *options.rival_seconds;
  return ratio <= options.close_ratio && ratio >= 1 / options.close_ratio;
}

}  // namespace collage
