#include "collage/fleet/fleet.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "collage/measure/worker_messages.h"

namespace collage {
namespace {

// Much less than a kernel takes to be compiled and timed.
constexpr std::chrono::milliseconds kBetweenAnswers{10};
// Workers come and go; whoever waits for a dead one loses no more than this.
constexpr double kSecondsBetweenLooks = 0.5;

std::string MessageOf(const KernelJob& job) {
  const std::vector<uint8_t> bytes = nlohmann::json::to_msgpack(ToMessage(job));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<Fleet> Fleet::Of(MeasurementCache& cache, const Device& device) {
  JobQueue queue = COLLAGE_TRY(JobQueue::Open(cache));
  return Fleet(cache, queue, COLLAGE_TRY(queue.FingerprintHere()), device.threads);
}

Status Fleet::Look() {
  if (looked_ && Clock::SecondsSince(*looked_) < kSecondsBetweenLooks) return {};
  looked_ = Clock::now();
  workers_ = COLLAGE_TRY(queue_.WorkersOf(fingerprint_, threads_));
  return {};
}

bool Fleet::CanTime(const MeasurementKey& key) const {
  return std::find(workers_.backends.begin(), workers_.backends.end(), std::pair(key.backend, key.backend_version)) !=
         workers_.backends.end();
}

Result<size_t> Fleet::AtOnce() {
  COLLAGE_TRY_STATUS(Look());
  // One in work and one that waits, for each.
  return 2 * workers_.count;
}

Result<std::vector<std::optional<Measurement>>> Fleet::Measure(std::span<const Wanted> wanted, const std::function<bool()>& stop) {
  COLLAGE_TRY_STATUS(Look());
  std::vector<QueuedJob> jobs;
  for (const Wanted& one : wanted) {
    if (CanTime(one.key)) jobs.push_back({0, one.key, MessageOf(one.job)});
  }
  const std::vector<int64_t> numbers = COLLAGE_TRY(queue_.Put(jobs));
  std::vector<int64_t> open = numbers;
  while (!(open = COLLAGE_TRY(queue_.StillOpen(open))).empty()) {
    COLLAGE_TRY_STATUS(Look());
    const bool is_stopped = stop && stop();
    std::vector<int64_t> given_up;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (is_stopped || !CanTime(jobs[i].key)) given_up.push_back(numbers[i]);
    }
    COLLAGE_TRY(queue_.Withdraw(given_up));
    std::this_thread::sleep_for(kBetweenAnswers);
  }
  std::vector<std::optional<Measurement>> found;
  for (const Wanted& one : wanted) found.push_back(COLLAGE_TRY(cache_->Find(one.key)));
  return found;
}

}  // namespace collage
