#include "collage/cache/cache.h"

#include <ctime>
#include <utility>

#include "collage/cache/cache_database.h"

namespace collage {
namespace {

constexpr const char* kWhere =
    " WHERE function_hash=?1 AND backend=?2 AND backend_version=?3 AND variant=?4 AND device=?5 AND threads=?6 AND protocol=?7";

void BindKey(CacheQuery& query, const MeasurementKey& key) {
  query.Bind(1, static_cast<int64_t>(key.function_hash));
  query.Bind(2, key.backend);
  query.Bind(3, key.backend_version);
  query.Bind(4, key.variant);
  query.Bind(5, key.device);
  query.Bind(6, int64_t{key.threads});
  query.Bind(7, int64_t{kMeasurementProtocol});
}

}  // namespace

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
  CacheQuery query(database_->get(), std::string("SELECT samples, invalid_reason, anchors FROM measurement") + kWhere);
  BindKey(query, key);
  const int step = query.Step();
  if (step == SQLITE_DONE) return std::optional<Measurement>();
  if (step != SQLITE_ROW) return database_->Failure();
  return std::optional(Measurement{query.Doubles(0), query.Text(1), query.Doubles(2)});
}

Status MeasurementCache::Store(const MeasurementKey& key, const Measurement& measurement) {
  CacheQuery query(database_->get(),
                   "INSERT OR REPLACE INTO measurement(function_hash, backend, backend_version, variant, device, threads, protocol,"
                   " samples, invalid_reason, verified, stored_at, anchors) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,0,?10,?11)");
  BindKey(query, key);
  query.Bind(8, measurement.samples);
  query.Bind(9, measurement.invalid_reason);
  query.Bind(10, int64_t{std::time(nullptr)});
  query.Bind(11, measurement.anchors);
  if (query.Step() != SQLITE_DONE) return database_->Failure();
  return {};
}

Result<bool> MeasurementCache::IsVerified(const MeasurementKey& key) const {
  CacheQuery query(database_->get(), std::string("SELECT verified FROM measurement") + kWhere);
  BindKey(query, key);
  const int step = query.Step();
  if (step != SQLITE_ROW && step != SQLITE_DONE) return database_->Failure();
  return step == SQLITE_ROW && query.Integer(0) == 1;
}

Status MeasurementCache::StoreVerified(const MeasurementKey& key) {
  CacheQuery query(database_->get(), std::string("UPDATE measurement SET verified=1") + kWhere);
  BindKey(query, key);
  return query.Step() == SQLITE_DONE ? Status{} : database_->Failure();
}

}  // namespace collage
