#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/cache/cache.h"
#include "collage/fleet/job_queue.h"
#include "collage/measure/kernel_timer.h"
#include "collage/support/clock.h"

namespace collage {

/// Machines like this one that time kernels for it, as a compile sees them: behind the cache of a server, `collage worker` elsewhere.
class Fleet {
 public:
  /// `cache` must outlive it.
  static Result<Fleet> Of(MeasurementCache& cache, const Device& device);

  /// Of this machine and of its workers, in keys of prices.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

  /// How many kernels it may well be asked for at once: as many as keep every worker busy while answers are read. Zero: no worker lives.
  Result<size_t> AtOnce();

  struct Wanted {
    MeasurementKey key;
    KernelJob job;
  };
  /// Prices that are then in the cache, in the order of what is wanted. Nothing for those that no living worker can time: they are for
  /// whoever asks. What no worker has begun when `stop` says so is nobody's any more, and nothing as well.
  Result<std::vector<std::optional<Measurement>>> Measure(std::span<const Wanted> wanted, const std::function<bool()>& stop = {});

 private:
  Fleet(MeasurementCache& cache, JobQueue queue, std::string fingerprint, int threads)
      : cache_(&cache), queue_(queue), fingerprint_(std::move(fingerprint)), threads_(threads) {}
  Status Look();
  [[nodiscard]] bool CanTime(const MeasurementKey& key) const;

  MeasurementCache* cache_;
  JobQueue queue_;
  std::string fingerprint_;
  int threads_;
  JobQueue::Workers workers_;
  std::optional<Clock::time_point> looked_;
};

}  // namespace collage
