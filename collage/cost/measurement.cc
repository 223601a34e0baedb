#include "collage/cost/measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/cost/kernel_buffers.h"
#include "collage/runtime/parallel.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/check.h"
#include "collage/support/clock.h"

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

 private:
  std::vector<uint64_t> words_;
  int threads_;
};

}  // namespace

double Percentile(std::vector<double> samples, double p) {
  COLLAGE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const double at = p * static_cast<double>(samples.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (at - static_cast<double>(low)) * (samples[high] - samples[low]);
}

double PercentileHalfWidth(std::vector<double> samples, double p) {
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  const double spread = 1.96 * std::sqrt(n * p * (1 - p));
  const auto low = static_cast<size_t>(std::clamp(std::floor(n * p - spread), 0.0, n - 1));
  const auto high = static_cast<size_t>(std::clamp(std::ceil(n * p + spread), 0.0, n - 1));
  return (samples[high] - samples[low]) / 2;
}

Cost Measurement::ToCost(double percentile) const {
  if (!invalid_reason.empty() || samples.empty()) return Cost::Invalid();
  return Cost::Seconds(Percentile(samples, percentile));
}

Measurement MeasureKernel(Kernel& kernel, const Device& device, const MeasureOptions& options) {
  KernelBuffers buffers(kernel);
  CacheEvictor evictor(options.eviction_bytes, device.threads);
  Measurement measurement;
  constexpr size_t kEnoughForTheHopeless = 3;
  const double hopeless_seconds = options.rival_seconds.value_or(std::numeric_limits<double>::infinity()) * options.hopeless_ratio;
  double fastest = std::numeric_limits<double>::infinity();
  double spent = 0;
  std::optional<PinnedTeam> pinned;
  for (int run = 0; run < options.warm_up + options.most_samples; ++run) {
    if (run == options.warm_up) pinned.emplace(device.threads);
    if (options.eviction_bytes > 0 && run >= options.warm_up) {
      evictor.Evict();
      buffers.ReadInputs();
    }
    const Clock::time_point start = Clock::now();
    const Status status = buffers.Run(kernel);
    const double seconds = Clock::SecondsSince(start);
    if (!status) return {{}, status.error().message};
    spent += seconds;
    const bool is_slow = spent >= options.most_seconds;
    if (run < options.warm_up && !is_slow) {
      if (run + 1 == options.warm_up) spent = 0;
      continue;
    }
    measurement.samples.push_back(seconds);
    fastest = std::min(fastest, seconds);
    if (is_slow && measurement.samples.size() >= 2) break;
    if (fastest > hopeless_seconds && measurement.samples.size() >= kEnoughForTheHopeless) break;
    if (static_cast<int>(measurement.samples.size()) < options.least_samples) continue;
    const double price = Percentile(measurement.samples, options.percentile);
    if (spent >= options.budget_seconds || PercentileHalfWidth(measurement.samples, options.percentile) <= options.relative_width * price)
      break;
  }
  return measurement;
}

}  // namespace collage
