#include "collage/fleet/fleet_worker.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "collage/fleet/job_queue.h"
#include "collage/support/clock.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// A job that ends its worker, by taking the machine's memory, say, is no better on the next machine; but one may have ended otherwise.
constexpr int64_t kMostAttempts = 3;
// At first an answer often brings the next question.
constexpr std::chrono::milliseconds kShortestPause{5};
constexpr std::chrono::milliseconds kLongestPause{200};

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Result<Measurement> Measure(const QueuedJob& job, WorkerTimer& timer) {
  if (job.attempts > kMostAttempts) return Measurement{{}, "ended " + std::to_string(kMostAttempts) + " workers that were timing it"};
  const auto message = nlohmann::json::from_msgpack(job.message, /*strict=*/true, /*allow_exceptions=*/false);
  if (message.is_discarded()) return Measurement{{}, "its job cannot be read"};
  return timer.MeasureMessage(message);
}

}  // namespace

Result<size_t> ServeFleet(MeasurementCache& cache, WorkerTimer& timer, const FleetWorkerOptions& options) {
  JobQueue queue = COLLAGE_TRY(JobQueue::Open(cache));
  const std::string fingerprint = COLLAGE_TRY(queue.FingerprintHere());
  const int64_t worker = COLLAGE_TRY(queue.Register(fingerprint, options.threads, HostName(), options.backends));
  size_t finished = 0;
  std::chrono::milliseconds pause = kShortestPause;
  Clock::time_point idle_since = Clock::now();
  while (!options.stop || !options.stop()) {
    const std::optional<QueuedJob> job = COLLAGE_TRY(queue.Take(worker));
    if (!job) {
      if (Clock::SecondsSince(idle_since) >= options.most_idle_seconds) break;
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
      continue;
    }
    spdlog::debug("job {}: {} {}, attempt {}", job->number, job->key.backend, job->key.variant, job->attempts);
    COLLAGE_TRY_STATUS(queue.Finish(worker, *job, COLLAGE_TRY(Measure(*job, timer))));
    ++finished;
    pause = kShortestPause;
    idle_since = Clock::now();
  }
  return finished;
}

}  // namespace collage
