#include "collage/cache/cache_maintenance.h"

#include <cstdio>

#include "collage/cache/cache_database.h"

namespace collage {
namespace {

constexpr const char* kKeyColumns = "function_hash, backend, backend_version, variant, device, threads, protocol";

/// A key's device is the fingerprint and, after a slash, in what context a price was taken.
std::string FingerprintOf(const std::string& device) { return device.substr(0, device.find('/')); }

CacheEntry EntryOf(const CacheQuery& row) {
  CacheEntry entry;
  entry.key = {static_cast<uint64_t>(row.Integer(0)), row.Text(1), row.Text(2), row.Text(3), row.Text(4), static_cast<int>(row.Integer(5))};
  entry.protocol = row.Integer(6);
  entry.measurement = {row.Doubles(7), row.Text(8), row.Doubles(11)};
  entry.verified = row.Integer(9) == 1;
  entry.stored_at = row.Integer(10);
  return entry;
}

std::string NameOf(const CacheEntry& entry) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(entry.key.function_hash));
  return std::string("entry ") + hash + " " + entry.key.backend + " " + entry.key.variant;
}

constexpr int kAllColumns = 12;

/// What EntryOf would hide: SQLite keeps values of any type in any column.
Status CheckColumns(const CacheQuery& row, int columns) {
  constexpr const char* kNames[] = {"function_hash", "backend", "backend_version", "variant",  "device",    "threads",
                                    "protocol",      "samples", "invalid_reason",  "verified", "stored_at", "anchors"};
  constexpr int kTypes[] = {SQLITE_INTEGER, SQLITE_TEXT, SQLITE_TEXT, SQLITE_TEXT,    SQLITE_TEXT,    SQLITE_INTEGER,
                            SQLITE_INTEGER, SQLITE_BLOB, SQLITE_TEXT, SQLITE_INTEGER, SQLITE_INTEGER, SQLITE_BLOB};
  for (int column = 0; column < columns; ++column) {
    if (row.Type(column) != kTypes[column]) return Fail(std::string("field '") + kNames[column] + "': is of the wrong type");
  }
  if (row.Integer(5) != static_cast<int>(row.Integer(5))) return Fail("field 'threads': is too large");
  if (row.ByteCount(7) % sizeof(double) != 0)
    return Fail("field 'samples': has " + std::to_string(row.ByteCount(7)) + " bytes, no whole number of doubles");
  if (row.Integer(9) != 0 && row.Integer(9) != 1) return Fail("field 'verified': is neither 0 nor 1");
  return {};
}

Result<int64_t> ReadInteger(const CacheDatabase& database, const std::string& text) {
  CacheQuery query(database.get(), text);
  if (query.Step() != SQLITE_ROW) return database.Failure();
  return query.Integer(0);
}

}  // namespace

Result<CacheStatistics> StatisticsOf(const MeasurementCache& cache) {
  const CacheDatabase& database = cache.database();
  CacheStatistics statistics;
  statistics.schema = COLLAGE_TRY(database.SchemaVersion());
  statistics.file_bytes = static_cast<size_t>(COLLAGE_TRY(ReadInteger(database, "PRAGMA page_count"))) *
                          static_cast<size_t>(COLLAGE_TRY(ReadInteger(database, "PRAGMA page_size")));
  CacheQuery rows(database.get(),
                  "SELECT backend, backend_version, device, threads, protocol, length(samples)/8, invalid_reason<>'', verified"
                  " FROM measurement");
  int step = SQLITE_ROW;
  while ((step = rows.Step()) == SQLITE_ROW) {
    ++statistics.entries;
    const std::string backend = rows.Text(0);
    MeasurementKey key;
    key.backend = backend;
    ++(IsKernel(key) ? statistics.by_backend[backend + " " + rows.Text(1)] : statistics.by_fact[backend]);
    ++statistics.by_device[FingerprintOf(rows.Text(2))];
    ++statistics.by_threads[rows.Integer(3)];
    ++statistics.by_protocol[rows.Integer(4)];
    statistics.samples += static_cast<size_t>(rows.Integer(5));
    statistics.invalid += static_cast<size_t>(rows.Integer(6));
    statistics.verified += static_cast<size_t>(rows.Integer(7));
  }
  if (step != SQLITE_DONE) return database.Failure();
  return statistics;
}

Status ForEachEntry(const MeasurementCache& cache, const std::function<Status(const CacheEntry&)>& visit) {
  const CacheDatabase& database = cache.database();
  CacheQuery rows(database.get(), std::string("SELECT ") + kKeyColumns +
                                      ", samples, invalid_reason, verified, stored_at, anchors FROM measurement ORDER BY " + kKeyColumns);
  int step = SQLITE_ROW;
  while ((step = rows.Step()) == SQLITE_ROW) {
    const CacheEntry entry = EntryOf(rows);
    Status status = CheckColumns(rows, kAllColumns);
    if (status) status = CheckEntry(entry);
    if (!status) return Fail(status.error().At(NameOf(entry)).At("cache " + database.path()));
    COLLAGE_TRY_STATUS(visit(entry));
  }
  return step == SQLITE_DONE ? Status{} : database.Failure();
}

namespace {

Result<std::vector<CacheEntry>> ReadEntries(std::istream& lines) {
  std::vector<CacheEntry> entries;
  for (std::string line; std::getline(lines, line);) {
    Result<CacheEntry> entry = EntryFromJsonLine(line);
    if (!entry) return Fail(entry.error().At("line " + std::to_string(entries.size() + 1)));
    entries.push_back(std::move(*entry));
  }
  if (lines.bad()) return Fail("cannot be read to its end");
  return entries;
}

void BindEntry(CacheQuery& query, const CacheEntry& entry) {
  query.Bind(1, static_cast<int64_t>(entry.key.function_hash));
  query.Bind(2, entry.key.backend);
  query.Bind(3, entry.key.backend_version);
  query.Bind(4, entry.key.variant);
  query.Bind(5, entry.key.device);
  query.Bind(6, int64_t{entry.key.threads});
  query.Bind(7, entry.protocol);
  query.Bind(8, entry.measurement.samples);
  query.Bind(9, entry.measurement.invalid_reason);
  query.Bind(10, int64_t{entry.verified});
  query.Bind(11, entry.stored_at);
  query.Bind(12, entry.measurement.anchors);
}

}  // namespace

Result<ImportCounts> ImportEntries(MeasurementCache& cache, std::istream& lines, bool replace) {
  // All lines first: nobody waits for the lock while a slow pipe is read.
  const std::vector<CacheEntry> entries = COLLAGE_TRY(ReadEntries(lines));
  CacheDatabase& database = cache.database();
  CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(database));
  const int64_t before = COLLAGE_TRY(ReadInteger(database, "SELECT count(*) FROM measurement"));
  ImportCounts counts;
  {
    CacheQuery insert(database.get(),
                      std::string("INSERT OR ") + (replace ? "REPLACE" : "IGNORE") + " INTO measurement(" + kKeyColumns +
                          ", samples, invalid_reason, verified, stored_at, anchors) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)");
    for (const CacheEntry& entry : entries) {
      BindEntry(insert, entry);
      if (insert.Step() != SQLITE_DONE) return database.Failure();
      insert.Reset();
    }
  }
  counts.added = static_cast<size_t>(COLLAGE_TRY(ReadInteger(database, "SELECT count(*) FROM measurement")) - before);
  (replace ? counts.replaced : counts.kept) = entries.size() - counts.added;
  COLLAGE_TRY_STATUS(transaction.Commit());
  return counts;
}

Result<size_t> Prune(MeasurementCache& cache, const PruneFilter& filter, bool dry_run) {
  CacheDatabase& database = cache.database();
  std::string where = " WHERE 1";
  if (filter.backend) where += " AND backend=?1";
  if (filter.backend_version) where += " AND backend_version=?2";
  if (filter.stored_before) where += " AND stored_at<?3";
  if (filter.invalid) where += " AND invalid_reason<>''";
  if (filter.not_of_device) where += " AND device<>?4 AND substr(device,1,length(?4)+1)<>?4||'/'";
  CacheQuery query(database.get(), (dry_run ? "SELECT count(*) FROM measurement" : "DELETE FROM measurement") + where);
  if (filter.backend) query.Bind(1, *filter.backend);
  if (filter.backend_version) query.Bind(2, *filter.backend_version);
  if (filter.stored_before) query.Bind(3, *filter.stored_before);
  if (filter.not_of_device) query.Bind(4, *filter.not_of_device);
  const int step = query.Step();
  if (dry_run) return step == SQLITE_ROW ? Result<size_t>(static_cast<size_t>(query.Integer(0))) : database.Failure();
  if (step != SQLITE_DONE) return database.Failure();
  const auto removed = static_cast<size_t>(sqlite3_changes(database.get()));
  query.Reset();
  COLLAGE_TRY_STATUS(database.Execute("VACUUM"));
  COLLAGE_TRY_STATUS(database.Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  return removed;
}

namespace {

/// What SQLite finds wrong with pages and indices.
std::vector<std::string> PageProblems(const CacheDatabase& database) {
  std::vector<std::string> problems;
  CacheQuery check(database.get(), "PRAGMA integrity_check");
  int step = SQLITE_ROW;
  while ((step = check.Step()) == SQLITE_ROW) {
    if (check.Text(0) != "ok") problems.push_back(check.Text(0));
  }
  if (step != SQLITE_DONE) problems.emplace_back(sqlite3_errmsg(database.get()));
  return problems;
}

void AddEntryProblems(const CacheDatabase& database, int version, std::vector<std::string>& problems) {
  CacheQuery rows(database.get(), std::string("SELECT ") + kKeyColumns + ", samples, invalid_reason, verified, " +
                                      (version < 2 ? "0" : "stored_at") + (version < 3 ? ", x''" : ", anchors") +
                                      " FROM measurement ORDER BY " + kKeyColumns);
  int step = SQLITE_ROW;
  while ((step = rows.Step()) == SQLITE_ROW) {
    const CacheEntry entry = EntryOf(rows);
    Status status = CheckColumns(rows, kAllColumns);
    if (status) status = CheckEntry(entry);
    if (!status) problems.push_back(status.error().At(NameOf(entry)).message);
  }
  if (step != SQLITE_DONE) problems.emplace_back(sqlite3_errmsg(database.get()));
}

}  // namespace

Result<std::vector<std::string>> ProblemsOf(const std::filesystem::path& path) {
  const std::unique_ptr<CacheDatabase> database = COLLAGE_TRY(CacheDatabase::Open(path, /*create=*/false));
  const int version = COLLAGE_TRY(database->CheckIsCache());
  std::vector<std::string> problems = PageProblems(*database);
  // A compile that was killed before its first transaction leaves an empty database.
  if (const std::vector<std::string> tables = COLLAGE_TRY(database->Tables()); tables.empty()) return problems;
  AddEntryProblems(*database, version, problems);
  return problems;
}

}  // namespace collage
