#pragma once

// What compiles want to know and workers find out, in the PostgreSQL database in which the prices lie too.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/cache/cache.h"
#include "collage/cache/cache_database.h"
#include "collage/support/result.h"

namespace collage {

/// A kernel to be timed alone.
struct QueuedJob {
  int64_t number = 0;    ///< in the order in which jobs were put
  MeasurementKey key;    ///< of its price: a worker of that device that has the backend in that version takes it
  std::string message;   ///< as the measuring process takes it, in MessagePack (measure/worker_messages.h)
  int64_t attempts = 0;  ///< workers that have taken it, this one included
};

/// Jobs in the tables `job`, `worker` and `worker_backend` of the cache's schema. A worker that lives holds an advisory lock, which the
/// server lets go when its connection ends, in whatever way. A job is free while no living worker has taken it, so nobody has to notice a
/// death, and no time is declared after which a worker is given up. Rejected: a row lock held while measuring, which would keep a
/// transaction open for minutes, and would not tell who has died of a job.
class JobQueue {
 public:
  /// Makes the tables where they are missing. Errors where the cache is no server's. It must outlive the queue.
  static Result<JobQueue> Open(MeasurementCache& cache);

  /// Puts jobs that are not there yet; gives the number of each.
  Result<std::vector<int64_t>> Put(std::span<const QueuedJob> jobs);
  /// Those of these numbers that are not done.
  Result<std::vector<int64_t>> StillOpen(std::span<const int64_t> numbers);
  /// Removes those of these that no living worker has taken, and gives their numbers.
  Result<std::vector<int64_t>> Withdraw(std::span<const int64_t> numbers);
  /// The fingerprint under which prices of this machine are kept (MachineType); says so where it is not the processor's own.
  Result<std::string> FingerprintHere();
  /// Living workers of this fingerprint that may run so many threads, by what they have: (backend, version).
  struct Workers {
    size_t count = 0;
    std::vector<std::pair<std::string, std::string>> backends;
  };
  Result<Workers> WorkersOf(const std::string& fingerprint, int threads);

  /// A worker, from now on until the connection ends; gives its number.
  Result<int64_t> Register(const std::string& fingerprint, int threads, const std::string& host,
                           std::span<const std::pair<std::string, std::string>> backends);
  /// Takes the first free job that suits the worker; nothing: there is none.
  Result<std::optional<QueuedJob>> Take(int64_t worker);
  /// Stores the price and removes the job, both or none. Nothing happens where the job is not the worker's any more.
  Status Finish(int64_t worker, const QueuedJob& job, const Measurement& measurement);

 private:
  explicit JobQueue(MeasurementCache& cache) : cache_(&cache) {}
  [[nodiscard]] CacheDatabase& database() const { return cache_->database(); }
  Result<std::vector<int64_t>> Numbers(const std::string& text, std::span<const int64_t> numbers);

  MeasurementCache* cache_;
};

}  // namespace collage
