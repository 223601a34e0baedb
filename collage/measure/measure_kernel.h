#pragma once

#include <cstddef>
#include <span>

#include "collage/cost/measurement.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage {

struct MeasureOptions {
  int warm_up = 2;
  int most_samples = 200;
  /// Sampling ends when this much time was spent and the samples are enough for an interval.
  double budget_seconds = 0.04;
  /// Slow kernels (a fallback on the reference) get fewer: when this much time was spent, two are enough.
  double most_seconds = 0.5;
  /// Sampling ends early when half of the median's confidence interval is narrower than this share of it. At 0.02 samples take twice as
  /// long, for kernels that are 0.06% cheaper (docs/design/measuring.md).
  double relative_width = 0.05;
  /// Bytes of other data written between runs, by all threads together, so that weights are as cold as in the network: there, as much
  /// as the weights of the whole model lies between two uses. Zero leaves them warm.
  size_t eviction_bytes = size_t{4} << 20;
  /// What a process waits in all for others on its processors.
  double patience_seconds = 15;
};

/// Times Kernel::Run on these inputs (row-major; SuitableInputs), in turn with the anchor: a fixed amount of work by all threads, which
/// says how fast the machine is at that moment. Before each sample, caches are evicted and the inputs are read again, as their producer
/// would have left them. Errors of the kernel become the reason.
Measurement MeasureKernel(Kernel& kernel, std::span<const Tensor> inputs, const Device& device, const MeasureOptions& options);

}  // namespace collage
