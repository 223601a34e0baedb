#include "collage/cache/cache_maintenance.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <variant>

#include "collage/cache/cache_database.h"
#include "collage/cache/cache_rows.h"

namespace collage {
namespace {

/// A key's device is the fingerprint and, after a slash, in what context a price was taken.
std::string FingerprintOf(const std::string& device) { return device.substr(0, device.find('/')); }

/// Of a damaged row a text may be any bytes, line ends among them.
std::string InOneLine(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

std::string NameOf(const CacheEntry& entry) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(entry.key.function_hash));
  std::string name = TableOf(entry.key.fact).name + std::string(" ") + hash;
  for (const std::string* part : {&entry.key.backend, &entry.key.variant}) name += part->empty() ? "" : " " + InOneLine(*part);
  return name;
}

Status VisitRows(CacheDatabase& database, const FactTable& table,
                 const std::function<Status(const CacheEntry&, const Status& checked)>& visit) {
  const auto rows = database.Prepare("SELECT " + table.Columns() + " FROM " + table.name + " ORDER BY " + table.Columns(/*only_key=*/true));
  while (COLLAGE_TRY(rows->Next())) {
    const CacheEntry entry = ReadEntry(*rows, table);
    Status status = CheckColumns(*rows, table);
    if (status) status = CheckEntry(entry);
    COLLAGE_TRY_STATUS(visit(entry, status));
  }
  return {};
}

}  // namespace

Result<CacheStatistics> StatisticsOf(const MeasurementCache& cache) {
  CacheDatabase& database = cache.database();
  CacheStatistics statistics;
  statistics.schema = COLLAGE_TRY(database.SchemaVersion());
  statistics.bytes = COLLAGE_TRY(database.ByteCount());
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
  CacheDatabase& database = cache.database();
  for (const FactTable& table : FactTables()) {
    COLLAGE_TRY_STATUS(VisitRows(database, table, [&](const CacheEntry& entry, const Status& checked) {
      return checked ? visit(entry) : Fail(checked.error().At(NameOf(entry)).At("cache " + database.name()));
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
Result<int64_t> CountRows(CacheDatabase& database) {
  int64_t count = 0;
  for (const FactTable& table : FactTables()) count += COLLAGE_TRY(database.ReadInteger(std::string("SELECT count(*) FROM ") + table.name));
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
    const auto insert = database.Prepare(InsertText(table, replace ? SameKey::kReplace : SameKey::kKeep));
    BindEntry(*insert, table, entry);
    COLLAGE_TRY_STATUS(insert->Run());
  }
  counts.added = static_cast<size_t>(COLLAGE_TRY(CountRows(database)) - before);
  (replace ? counts.replaced : counts.kept) = entries.size() - counts.added;
  COLLAGE_TRY_STATUS(transaction.Commit());
  return counts;
}

namespace {

using Value = std::variant<std::string, int64_t>;

/// A condition and its parameters.
struct Where {
  std::string text;
  std::vector<Value> parameters;
  /// "@" in the text stands for the parameter.
  void And(const std::string& condition, Value value) {
    parameters.push_back(std::move(value));
    text += " AND ";
    for (const char c : condition) text += c == '@' ? "$" + std::to_string(parameters.size()) : std::string(1, c);
  }
};

/// Nothing where the filter asks for a part that facts of this kind do not have.
std::optional<Where> WhereOf(const FactTable& table, const PruneFilter& filter) {
  std::optional<std::string> reason;
  for (const FactColumn& column : table.columns) {
    if (column.part == EntryPart::kInvalidReason) reason = column.name;
  }
  if ((filter.backend && !table.Has(EntryPart::kBackend)) || (filter.backend_version && !table.Has(EntryPart::kBackendVersion)) ||
      (filter.invalid && !reason))
    return std::nullopt;
  Where where{" WHERE true", {}};
  if (filter.backend) where.And("backend=@", *filter.backend);
  if (filter.backend_version) where.And("backend_version=@", *filter.backend_version);
  if (filter.stored_before) where.And("stored_at<@", *filter.stored_before);
  if (filter.invalid) where.And(*reason + "<>@", std::string());
  if (filter.not_of_device)
    where.And("device<>@ AND substr(device,1,length(@)+1)<>@||'/' AND substr(device,1,length(@)+1)<>@||'#'", *filter.not_of_device);
  return where;
}

}  // namespace

Result<size_t> Prune(MeasurementCache& cache, const PruneFilter& filter, bool dry_run) {
  CacheDatabase& database = cache.database();
  size_t count = 0;
  {
    CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(database));
    for (const FactTable& table : FactTables()) {
      const std::optional<Where> where = WhereOf(table, filter);
      if (!where) continue;
      const auto query = database.Prepare((dry_run ? "SELECT count(*) FROM " : "DELETE FROM ") + std::string(table.name) + where->text);
      for (size_t i = 0; i < where->parameters.size(); ++i)
        std::visit([&](const auto& value) { query->Bind(static_cast<int>(i + 1), value); }, where->parameters[i]);
      COLLAGE_TRY_STATUS(query->Run());
      count += dry_run ? static_cast<size_t>(query->Integer(0)) : query->ChangedRows();
    }
    COLLAGE_TRY_STATUS(transaction.Commit());
  }
  if (dry_run) return count;
  COLLAGE_TRY_STATUS(database.Compact());
  return count;
}

Result<std::vector<std::string>> ProblemsOf(const std::string& name) {
  const std::unique_ptr<CacheDatabase> database = COLLAGE_TRY(OpenCacheDatabase(name, /*create=*/false));
  COLLAGE_TRY(database->CheckIsCache());
  std::vector<std::string> problems = database->StorageProblems();
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
