#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/cost/cost.h"
#include "collage/cost/statistics.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage {

/// Changes whenever measuring changes, so that cached prices of an older way are not mixed with new ones.
inline constexpr int kMeasurementProtocol = 4;

struct MeasureOptions {
  int warm_up = 2;
  int least_samples = 7;
  int most_samples = 200;
  /// Sampling ends when this much time was spent inside the kernel and least_samples are there.
  double budget_seconds = 0.04;
  /// Slow kernels (a fallback on the reference) get fewer than least_samples: when this much time was spent, two are enough.
  double most_seconds = 0.5;
  /// Sampling ends early when the confidence interval of the percentile is narrower than this share of it.
  double relative_width = 0.02;
  /// Which percentile of the samples is the price; a little above the median would also be sound, the mean is not.
  double percentile = 0.5;
  /// Seconds that a rival for the same work takes, where known. Who is this many times slower need not be timed well.
  std::optional<double> rival_seconds;
  double hopeless_ratio = 2;
  /// Who comes this near to that rival, either way, is timed again beside it.
  double close_ratio = 1.25;
  /// Bytes of other data written between runs, by all threads together, so that weights are as cold as in the network: there, as much
  /// as the weights of the whole model lies between two uses. Zero leaves them warm.
  size_t eviction_bytes = size_t{4} << 20;
};

/// What came of pricing one (function, variant): samples in seconds, or the reason why it is Invalid.
struct Measurement {
  std::vector<double> samples;
  std::string invalid_reason;

  [[nodiscard]] Cost ToCost(double percentile) const;
  /// What the percentile is not below, with 95% confidence. Where the machine was disturbed for most samples that is what the others say.
  [[nodiscard]] Cost ToLeastCost(double percentile) const;
};

/// The 95% confidence interval of a percentile, from order statistics (the binomial interval of Conover, Practical Nonparametric
/// Statistics, 3.2), without assuming a distribution; `samples` must not be empty.
std::pair<double, double> PercentileInterval(std::vector<double> samples, double p);
/// Half the width of that interval.
double PercentileHalfWidth(const std::vector<double>& samples, double p);

/// Times Kernel::Run on buffers filled with random data. Before each sample, caches are evicted and the inputs are read again, as
/// their producer would have left them. Errors of the kernel become the reason.
Measurement MeasureKernel(Kernel& kernel, const Device& device, const MeasureOptions& options);

/// The same beside the rival, turn by turn, because the machine drifts by more than what separates the two. The samples are those of
/// `kernel`, each as it would have been when the rival's price (`options.rival_seconds`) was taken. Errors of the rival become the
/// reason too.
Measurement MeasureBesideRival(Kernel& kernel, Kernel& rival, const Device& device, const MeasureOptions& options);

/// Whether a price is so near to the rival's that the two must be timed side by side.
[[nodiscard]] bool IsClose(const Measurement& measurement, const MeasureOptions& options);

}  // namespace collage
