#include "collage/cache/cache_maintenance.h"

#include <cstdio>

#include "collage/cache/cache_database.h"
#include "collage/cache/cache_rows.h"

namespace collage {
namespace {

/// A key's device is the fingerprint and, after a slash, in what context a price was taken.
std::string FingerprintOf(const std::string& device) { return device.substr(0, device.find('/')); }

std::string NameOf(const CacheEntry& entry) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(entry.key.function_hash));
  std::string name = TableOf(entry.key.fact).name + std::string(" ") + hash;
  for (const std::string* part : {&entry.key.backend, &entry.key.variant}) name += part->empty() ? "" : " " + *part;
  return name;
}

Status VisitRows(const CacheDatabase& database, const FactTable& table,
                 const std::function<Status(const CacheEntry&, const Status& checked)>& visit) {
  CacheQuery rows(database.get(), "SELECT " + table.Columns() + " FROM " + table.name + " ORDER BY " + table.Columns(/*only_key=*/true));
  int step = SQLITE_ROW;
  while ((step = rows.Step()) == SQLITE_ROW) {
    const CacheEntry entry = ReadEntry(rows, table);
    Status status = CheckColumns(rows, table);
    if (status) status = CheckEntry(entry);
    COLLAGE_TRY_STATUS(visit(entry, status));
  }
  return step == SQLITE_DONE ? Status{} : database.Failure();
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
  for (const FactTable& table : FactTables()) {
    const Status visited = VisitRows(database, table, [&](const CacheEntry& entry, const Status&) {
      ++statistics.entries;
      if (entry.key.fact == Fact::kKernel) {
        ++statistics.by_backend[entry.key.backend + " " + entry.key.backend_version];
      } else {
        ++statistics.by_fact[table.name];
      }
      ++statistics.by_device[FingerprintOf(entry.key.device)];
      ++statistics.by_threads[entry.key.threads];
      ++statistics.by_protocol[entry.protocol];
      statistics.samples += entry.measurement.samples.size();
      statistics.invalid += entry.measurement.invalid_reason.empty() ? 0 : 1;
      statistics.verified += entry.verified ? 1 : 0;
      return Status{};
    });
    COLLAGE_TRY_STATUS(visited);
  }
  return statistics;
}

Status ForEachEntry(const MeasurementCache& cache, const std::function<Status(const CacheEntry&)>& visit) {
  const CacheDatabase& database = cache.database();
  for (const FactTable& table : FactTables()) {
    COLLAGE_TRY_STATUS(VisitRows(database, table, [&](const CacheEntry& entry, const Status& checked) {
      return checked ? visit(entry) : Fail(checked.error().At(NameOf(entry)).At("cache " + database.path()));
    }));
  }
  return {};
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

/// Rows of all tables.
Result<int64_t> CountRows(const CacheDatabase& database) {
  int64_t count = 0;
  for (const FactTable& table : FactTables())
    count += COLLAGE_TRY(ReadInteger(database, std::string("SELECT count(*) FROM ") + table.name));
  return count;
}

}  // namespace

Result<ImportCounts> ImportEntries(MeasurementCache& cache, std::istream& lines, bool replace) {
  // All lines first: nobody waits for the lock while a slow pipe is read.
  const std::vector<CacheEntry> entries = COLLAGE_TRY(ReadEntries(lines));
  CacheDatabase& database = cache.database();
  CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(database));
  const int64_t before = COLLAGE_TRY(CountRows(database));
  ImportCounts counts;
  for (const CacheEntry& entry : entries) {
    const FactTable& table = TableOf(entry.key.fact);
    CacheQuery insert(database.get(), InsertText(table, replace ? "REPLACE" : "IGNORE"));
    BindEntry(insert, table, entry);
    if (insert.Step() != SQLITE_DONE) return database.Failure();
  }
  counts.added = static_cast<size_t>(COLLAGE_TRY(CountRows(database)) - before);
  (replace ? counts.replaced : counts.kept) = entries.size() - counts.added;
  COLLAGE_TRY_STATUS(transaction.Commit());
  return counts;
}

namespace {

/// Nothing where the filter asks for a part that facts of this kind do not have.
std::optional<std::string> WhereOf(const FactTable& table, const PruneFilter& filter) {
  std::string where = " WHERE 1";
  std::optional<std::string> reason;
  for (const FactColumn& column : table.columns) {
    if (column.part == EntryPart::kInvalidReason) reason = column.name;
  }
  if ((filter.backend && !table.Has(EntryPart::kBackend)) || (filter.backend_version && !table.Has(EntryPart::kBackendVersion)) ||
      (filter.invalid && !reason))
    return std::nullopt;
  if (filter.backend) where += " AND backend=?1";
  if (filter.backend_version) where += " AND backend_version=?2";
  if (filter.stored_before) where += " AND stored_at<?3";
  if (filter.invalid) where += " AND " + *reason + "<>''";
  if (filter.not_of_device) where += " AND device<>?4 AND substr(device,1,length(?4)+1)<>?4||'/'";
  return where;
}

}  // namespace

Result<size_t> Prune(MeasurementCache& cache, const PruneFilter& filter, bool dry_run) {
  CacheDatabase& database = cache.database();
  size_t count = 0;
  {
    CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(database));
    for (const FactTable& table : FactTables()) {
      const std::optional<std::string> where = WhereOf(table, filter);
      if (!where) continue;
      CacheQuery query(database.get(), (dry_run ? "SELECT count(*) FROM " : "DELETE FROM ") + std::string(table.name) + *where);
      if (filter.backend) query.Bind(1, *filter.backend);
      if (filter.backend_version) query.Bind(2, *filter.backend_version);
      if (filter.stored_before) query.Bind(3, *filter.stored_before);
      if (filter.not_of_device) query.Bind(4, *filter.not_of_device);
      if (query.Step() != (dry_run ? SQLITE_ROW : SQLITE_DONE)) return database.Failure();
      count += static_cast<size_t>(dry_run ? query.Integer(0) : sqlite3_changes(database.get()));
    }
    COLLAGE_TRY_STATUS(transaction.Commit());
  }
  if (dry_run) return count;
  COLLAGE_TRY_STATUS(database.Execute("VACUUM"));
  COLLAGE_TRY_STATUS(database.Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  return count;
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

}  // namespace

Result<std::vector<std::string>> ProblemsOf(const std::filesystem::path& path) {
  const std::unique_ptr<CacheDatabase> database = COLLAGE_TRY(CacheDatabase::Open(path, /*create=*/false));
  COLLAGE_TRY(database->CheckIsCache());
  std::vector<std::string> problems = PageProblems(*database);
  // A compile that was killed before its first transaction leaves an empty database, and an older version a table that is migrated by
  // whoever opens it next.
  for (const std::string& name : COLLAGE_TRY(database->Tables())) {
    const FactTable* table = FindFactTable(name);
    if (!table) continue;
    const Status visited = VisitRows(*database, *table, [&](const CacheEntry& entry, const Status& checked) {
      if (!checked) problems.push_back(checked.error().At(NameOf(entry)).message);
      return Status{};
    });
    if (!visited) problems.push_back(visited.error().message);
  }
  return problems;
}

}  // namespace collage
