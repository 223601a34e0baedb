#include "collage/measure/measure_kernel.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "collage/cost/statistics.h"
#include "collage/measure/barrier_probe.h"
#include "collage/measure/kernel_buffers.h"
#include "collage/runtime/parallel.h"
#include "collage/runtime/pinned_team.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

class CacheEvictor {
 public:
  /// One for all kernels of a process: new pages for each would take longer than many a kernel's samples.
  static CacheEvictor& OfProcess() {
    static CacheEvictor evictor;
    return evictor;
  }

  // Each thread writes its share, as the kernels before would have filled the caches of every core.
  void Evict(size_t bytes, int threads) {
    const size_t count = bytes / sizeof(uint64_t);
    if (words_.size() < count) words_.resize(count, 1);
    ParallelFor(count, 1, threads, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; i += 8) ++words_[i];
    });
  }

 private:
  std::vector<uint64_t> words_;
};

/// About as long as a kernel that matters, within a core's own caches: its time is that of the cores and their clocks.
class Anchor {
 public:
  explicit Anchor(int threads) : words_(kWordsOfThread * static_cast<size_t>(threads), 1), threads_(threads) {}

  /// The kernel before may have left the team asleep, or its own threads spinning, and the caches full: behind a compiler of whole models
  /// the anchor took ten times as long, and its kernels seemed ten times as fast. So it runs once before it is timed.
  double TimedRun() {
    Run();
    const Clock::time_point start = Clock::now();
    Run();
    return std::max(Clock::SecondsSince(start), kTick);
  }

 private:
  /// 8 KiB, which stay in the first-level cache also where others run on the same core: of 32 KiB a run took now 8 us and now 12.5, for
  /// milliseconds each, while kernels beside it did not waver.
  static constexpr size_t kWordsOfThread = size_t{1} << 11;

  void Run() {
    ParallelFor(words_.size(), kWordsOfThread, threads_, [&](size_t begin, size_t end) {
      constexpr int kPasses = 32;  // some 8 us
      for (int pass = 0; pass < kPasses; ++pass) {
        for (size_t i = begin; i < end; ++i) words_[i] = words_[i] * 0.999f + 0.001f;
      }
    });
  }

  std::vector<float> words_;
  int threads_;
};

/// Takes samples until they tell enough; `take` gives one, and what it took in all. Errors of the kernel become the reason.
Measurement Sampled(const MeasureOptions& options, const std::function<Result<DeviceTimes>(int run)>& take) {
  Measurement measurement;
  const size_t least_samples = FewestForInterval(Declared().confidence);
  double spent = 0;  // also between the runs of the kernel: of one of microseconds that is most
  for (int run = 0; run < options.warm_up + options.most_samples; ++run) {
    const Clock::time_point start = Clock::now();
    const Result<DeviceTimes> times = take(run);
    if (!times) return {{}, times.error().message};
    spent += Clock::SecondsSince(start);
    const bool is_slow = spent >= options.most_seconds;
    if (run < options.warm_up && !is_slow) {
      if (run + 1 == options.warm_up) spent = 0;
      continue;
    }
    measurement.samples.push_back(std::max(times->seconds, kTick));
    measurement.anchors.push_back(std::max(*times->anchor_seconds, kTick));
    if (is_slow && measurement.samples.size() >= 2) break;
    if (measurement.samples.size() < least_samples) continue;
    const bool is_tight = MedianHalfWidth(measurement.samples) <= options.relative_width * Median(measurement.samples);
    if (spent >= options.budget_seconds || is_tight) break;
  }
  return measurement;
}

/// Beside an anchor by all threads of the host.
Measurement MeasureByHost(Kernel& kernel, KernelBuffers& buffers, const Device& device, const MeasureOptions& options) {
  Anchor anchor(device.threads);
  std::optional<PinnedTeam> pinned;
  return Sampled(options, [&](int run) -> Result<DeviceTimes> {
    if (run == options.warm_up) pinned.emplace(device.threads);
    const double anchor_seconds = anchor.TimedRun();
    if (run >= options.warm_up && options.eviction_bytes > 0) {
      CacheEvictor::OfProcess().Evict(options.eviction_bytes, device.threads);
      buffers.ReadInputs(device.threads);
    }
    return DeviceTimes{COLLAGE_TRY(buffers.TimedRun(kernel)).seconds, anchor_seconds};
  });
}

}  // namespace

Measurement MeasureKernel(Kernel& kernel, std::span<const Tensor> inputs, const Device& device, const MeasureOptions& options) {
  KernelBuffers buffers(kernel, inputs);
  if (kernel.context()) {
    const Result<DeviceTimes> first = buffers.TimedRun(kernel);
    if (!first) return {{}, first.error().message};
    // A device with a clock and an anchor of its own does not care how busy the host is.
    if (first->anchor_seconds) return Sampled(options, [&](int) { return buffers.TimedRun(kernel); });
  }
  return BarrierProbe::OfProcess(device.threads).Calmly(options.patience_seconds, [&] {
    return MeasureByHost(kernel, buffers, device, options);
  });
}

}  // namespace collage
