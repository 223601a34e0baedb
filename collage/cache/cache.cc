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

Result<MeasurementCache> MeasurementCache::Open(const std::string& name, Missing missing) {
  std::unique_ptr<CacheDatabase> database = COLLAGE_TRY(OpenCacheDatabase(name, missing == Missing::kCreate));
  COLLAGE_TRY_STATUS(database->PrepareSchema());
  return MeasurementCache(std::move(database));
}

Result<std::optional<Measurement>> MeasurementCache::Find(const MeasurementKey& key) const {
  const FactTable& table = TableOf(key.fact);
  const auto query = database_->Prepare("SELECT " + table.Columns() + " FROM " + table.name + table.WhereKey());
  BindKey(*query, table, {key});
  if (!COLLAGE_TRY(query->Next())) return std::optional<Measurement>();
  return std::optional(ReadEntry(*query, table).measurement);
}

Status MeasurementCache::Store(const MeasurementKey& key, const Measurement& measurement) {
  const FactTable& table = TableOf(key.fact);
  CacheEntry entry{key, kMeasurementProtocol, measurement};
  entry.stored_at = std::time(nullptr);
  const auto query = database_->Prepare(InsertText(table, SameKey::kReplace));
  BindEntry(*query, table, entry);
  return query->Run();
}

Result<bool> MeasurementCache::IsVerified(const MeasurementKey& key) const {
  const FactTable& table = TableOf(Fact::kKernel);
  const auto query = database_->Prepare(std::string("SELECT verified FROM ") + table.name + table.WhereKey());
  BindKey(*query, table, {key});
  return COLLAGE_TRY(query->Next()) && query->Integer(0) == 1;
}

Status MeasurementCache::StoreVerified(const MeasurementKey& key) {
  const FactTable& table = TableOf(Fact::kKernel);
  const auto query = database_->Prepare(std::string("UPDATE ") + table.name + " SET verified=1" + table.WhereKey());
  BindKey(*query, table, {key});
  return query->Run();
}

}  // namespace collage
