#include "collage/fleet/job_queue.h"

#include <unistd.h>

#include <ctime>

#include "collage/cache/cache_rows.h"
#include "collage/fleet/machine_type.h"
#include "collage/runtime/device.h"
#include "collage/support/log.h"

namespace collage {
namespace {

/// Of the advisory locks of workers; any number that nobody else uses in this database.
constexpr const char* kWorkerLocks = "1668246636";

constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS worker(number INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, device TEXT NOT NULL, threads BIGINT NOT "
    "NULL,"
    " host TEXT NOT NULL, process BIGINT NOT NULL, started_at BIGINT NOT NULL, taken BIGINT NOT NULL DEFAULT 0, finished BIGINT NOT NULL"
    " DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS worker_backend(worker INTEGER NOT NULL REFERENCES worker ON DELETE CASCADE, backend TEXT NOT NULL,"
    " backend_version TEXT NOT NULL, PRIMARY KEY(worker, backend));";

/// Workers whose connections last.
std::string Living() {
  return std::string("(SELECT objid::bigint FROM pg_locks WHERE locktype='advisory' AND objsubid=2 AND granted AND classid=") +
         kWorkerLocks + " AND database=(SELECT oid FROM pg_database WHERE datname=current_database()))";
}

std::string IsFree() { return "(worker IS NULL OR worker NOT IN " + Living() + ")"; }

/// "1,2,3": our own numbers, so nothing has to be bound.
std::string List(std::span<const int64_t> numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

const FactTable& Kernels() { return TableOf(Fact::kKernel); }

int KeyCount() {
  int count = 0;
  for (const FactColumn& column : Kernels().columns) count += IsOfKey(column.part) ? 1 : 0;
  return count;
}

/// A job's key has the columns of a kernel's.
std::string JobTable() {
  return "CREATE TABLE IF NOT EXISTS job AS SELECT " + Kernels().Columns(/*only_key=*/true) + " FROM kernel WITH NO DATA";
}

}  // namespace

Result<JobQueue> JobQueue::Open(MeasurementCache& cache) {
  CacheDatabase& database = cache.database();
  if (!IsCacheUrl(database.name())) return Fail("cache " + database.name() + ": is a file; a fleet needs the URL of a PostgreSQL database");
  JobQueue queue(cache);
  constexpr const char* kIsThere = "SELECT count(*) FROM pg_tables WHERE schemaname='collage' AND tablename='job'";
  if (COLLAGE_TRY(database.ReadInteger(kIsThere)) > 0) return queue;
  CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(database));
  // Another process may have done it while this one waited for the lock.
  if (COLLAGE_TRY(database.ReadInteger(kIsThere)) > 0) return queue;
  COLLAGE_TRY_STATUS(database.Execute(kMachineTables));
  COLLAGE_TRY_STATUS(database.Execute(kTables));
  COLLAGE_TRY_STATUS(database.Execute(JobTable()));
  COLLAGE_TRY_STATUS(database.Execute(
      "ALTER TABLE job ADD COLUMN number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ADD COLUMN message BYTEA NOT NULL,"
      " ADD COLUMN worker BIGINT, ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0, ADD UNIQUE(" +
      Kernels().Columns(/*only_key=*/true) + ")"));
  COLLAGE_TRY_STATUS(transaction.Commit());
  return queue;
}

Result<std::vector<int64_t>> JobQueue::Put(std::span<const QueuedJob> jobs) {
  const std::string key = Kernels().Columns(/*only_key=*/true);
  std::string parameters;
  for (int i = 1; i <= KeyCount() + 1; ++i) parameters += (i == 1 ? "$" : ", $") + std::to_string(i);
  // A conflict changes nothing, but only a changed row is given back.
  const std::string text = "INSERT INTO job(" + key + ", message) VALUES(" + parameters + ") ON CONFLICT(" + key +
                           ") DO UPDATE SET device=excluded.device RETURNING number";
  std::vector<int64_t> numbers;
  for (const QueuedJob& job : jobs) {
    const auto query = database().Prepare(text);
    BindKey(*query, Kernels(), {job.key});
    query->BindBytes(KeyCount() + 1, job.message);
    COLLAGE_TRY_STATUS(query->Run());
    numbers.push_back(query->Integer(0));
  }
  return numbers;
}

Result<std::vector<int64_t>> JobQueue::Numbers(const std::string& text, std::span<const int64_t> numbers) {
  std::vector<int64_t> found;
  if (numbers.empty()) return found;
  const auto query = database().Prepare(text);
  while (COLLAGE_TRY(query->Next())) found.push_back(query->Integer(0));
  return found;
}

Result<std::vector<int64_t>> JobQueue::StillOpen(std::span<const int64_t> numbers) {
  return Numbers("SELECT number FROM job WHERE number IN (" + List(numbers) + ")", numbers);
}

Result<std::vector<int64_t>> JobQueue::Withdraw(std::span<const int64_t> numbers) {
  return Numbers("DELETE FROM job WHERE number IN (" + List(numbers) + ") AND " + IsFree() + " RETURNING number", numbers);
}

Result<std::string> JobQueue::FingerprintHere() {
  const std::string fingerprint = Fingerprint(Device());
  static const Calibration calibration = Calibrate();
  std::string here = COLLAGE_TRY(MachineType(database(), fingerprint, calibration));
  if (here != fingerprint)
    spdlog::warn("this machine takes other times than the first one with such a processor; its prices are kept apart, under {}", here);
  return here;
}

Result<JobQueue::Workers> JobQueue::WorkersOf(const std::string& fingerprint, int threads) {
  const auto query = database().Prepare(
      "SELECT w.number, b.backend, b.backend_version FROM worker w JOIN worker_backend b ON b.worker=w.number WHERE w.device=$1 AND"
      " w.threads>=$2 AND w.number IN " +
      Living() + " ORDER BY 1");
  query->Bind(1, fingerprint);
  query->Bind(2, static_cast<int64_t>(threads));
  Workers workers;
  int64_t last = 0;
  while (COLLAGE_TRY(query->Next())) {
    if (std::exchange(last, query->Integer(0)) != query->Integer(0)) ++workers.count;
    workers.backends.emplace_back(query->Text(1), query->Text(2));
  }
  return workers;
}

Result<int64_t> JobQueue::Register(const std::string& fingerprint, int threads, const std::string& host,
                                   std::span<const std::pair<std::string, std::string>> backends) {
  const auto query =
      database().Prepare("INSERT INTO worker(device, threads, host, process, started_at) VALUES($1, $2, $3, $4, $5) RETURNING number");
  query->Bind(1, fingerprint);
  query->Bind(2, static_cast<int64_t>(threads));
  query->Bind(3, host);
  query->Bind(4, static_cast<int64_t>(::getpid()));
  query->Bind(5, static_cast<int64_t>(std::time(nullptr)));
  COLLAGE_TRY_STATUS(query->Run());
  const int64_t worker = query->Integer(0);
  for (const auto& [backend, version] : backends) {
    const auto insert = database().Prepare("INSERT INTO worker_backend VALUES($1, $2, $3)");
    insert->Bind(1, worker);
    insert->Bind(2, backend);
    insert->Bind(3, version);
    COLLAGE_TRY_STATUS(insert->Run());
  }
  COLLAGE_TRY_STATUS(database().Execute(std::string("SELECT pg_advisory_lock(") + kWorkerLocks + ", " + std::to_string(worker) + ")"));
  return worker;
}

Result<std::optional<QueuedJob>> JobQueue::Take(int64_t worker) {
  // A key's device is the fingerprint and, after a slash, in what context a price was taken.
  const auto query = database().Prepare(
      "UPDATE job SET worker=$1, attempts=attempts+1 WHERE number=(SELECT j.number FROM job j JOIN worker w ON w.number=$1 JOIN"
      " worker_backend b ON b.worker=w.number AND b.backend=j.backend AND b.backend_version=j.backend_version WHERE"
      " split_part(j.device, '/', 1)=w.device AND j.threads<=w.threads AND (j.worker IS NULL OR j.worker NOT IN " +
      Living() + ") ORDER BY j.number LIMIT 1 FOR UPDATE OF j SKIP LOCKED) RETURNING " + Kernels().Columns(/*only_key=*/true) +
      ", number, message, attempts");
  query->Bind(1, worker);
  if (!COLLAGE_TRY(query->Next())) return std::nullopt;
  QueuedJob job;
  job.key = ReadKey(*query, Kernels()).key;
  job.number = query->Integer(KeyCount());
  job.message = query->Text(KeyCount() + 1);
  job.attempts = query->Integer(KeyCount() + 2);
  COLLAGE_TRY_STATUS(database().Execute("UPDATE worker SET taken=taken+1 WHERE number=" + std::to_string(worker)));
  return job;
}

Status JobQueue::Finish(int64_t worker, const QueuedJob& job, const Measurement& measurement) {
  COLLAGE_TRY_STATUS(database().Execute("BEGIN"));
  const auto finish = [&]() -> Status {
    const auto remove = database().Prepare("DELETE FROM job WHERE number=$1 AND worker=$2");
    remove->Bind(1, job.number);
    remove->Bind(2, worker);
    COLLAGE_TRY_STATUS(remove->Run());
    if (remove->ChangedRows() == 0) return {};
    COLLAGE_TRY_STATUS(cache_->Store(job.key, measurement));
    return database().Execute("UPDATE worker SET finished=finished+1 WHERE number=" + std::to_string(worker));
  };
  const Status finished = finish();
  COLLAGE_TRY_STATUS(database().Execute(finished ? "COMMIT" : "ROLLBACK"));
  return finished;
}

}  // namespace collage
