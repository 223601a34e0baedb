#include "collage/cache/cache.h"

#include <ctime>
#include <utility>

#include "collage/cache/cache_database.h"
#include "collage/cache/cache_rows.h"

namespace collage {
MeasurementCache::MeasurementCache(std::unique_ptr<CacheDatabase> database) : database_(std::move(database)) {}
MeasurementCache::MeasurementCache(MeasurementCache&&) noexcept = default;
MeasurementCache& MeasurementCache::operator=(MeasurementCache&&) noexcept = default;
MeasurementCache::~MeasurementCache() = default;

Result<MeasurementCache> MeasurementCache::Open(const std::filesystem::path& path, Missing missing) {
  std::unique_ptr<CacheDatabase> database = COLLAGE_TRY(CacheDatabase::Open(path, missing == Missing::kCreate));
  COLLAGE_TRY_STATUS(database->PrepareSchema());
  return MeasurementCache(std::move(database));
}

Result<std::optional<Measurement>> MeasurementCache::Find(const MeasurementKey& key) const {
  const FactTable& table = TableOf(key.fact);
  CacheQuery query(database_->get(), "SELECT " + table.Columns() + " FROM " + table.name + table.WhereKey());
  BindKey(query, table, {key});
  const int step = query.Step();
  if (step == SQLITE_DONE) return std::optional<Measurement>();
  if (step != SQLITE_ROW) return database_->Failure();
  return std::optional(ReadEntry(query, table).measurement);
}

Status MeasurementCache::Store(const MeasurementKey& key, const Measurement& measurement) {
  const FactTable& table = TableOf(key.fact);
  CacheEntry entry{key, kMeasurementProtocol, measurement};
  entry.stored_at = std::time(nullptr);
  CacheQuery query(database_->get(), InsertText(table, "REPLACE"));
  BindEntry(query, table, entry);
  return query.Step() == SQLITE_DONE ? Status{} : database_->Failure();
}

Result<bool> MeasurementCache::IsVerified(const MeasurementKey& key) const {
  const FactTable& table = TableOf(Fact::kKernel);
  CacheQuery query(database_->get(), std::string("SELECT verified FROM ") + table.name + table.WhereKey());
  BindKey(query, table, {key});
  const int step = query.Step();
  if (step != SQLITE_ROW && step != SQLITE_DONE) return database_->Failure();
  return step == SQLITE_ROW && query.Integer(0) == 1;
}

Status MeasurementCache::StoreVerified(const MeasurementKey& key) {
  const FactTable& table = TableOf(Fact::kKernel);
  CacheQuery query(database_->get(), std::string("UPDATE ") + table.name + " SET verified=1" + table.WhereKey());
  BindKey(query, table, {key});
  return query.Step() == SQLITE_DONE ? Status{} : database_->Failure();
}

}  // namespace collage
