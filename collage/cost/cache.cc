#include "collage/cost/cache.h"

#include <sqlite3.h>

#include <cstring>
#include <utility>

namespace collage {
namespace {

// Bumped whenever the tables change; a file of another version is refused, never rewritten.
constexpr int kSchemaVersion = 1;

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS measurement("
    " function_hash INTEGER NOT NULL, backend TEXT NOT NULL, backend_version TEXT NOT NULL, variant TEXT NOT NULL,"
    " device TEXT NOT NULL, threads INTEGER NOT NULL, protocol INTEGER NOT NULL,"
    " samples BLOB NOT NULL, invalid_reason TEXT NOT NULL, verified INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY(function_hash, backend, backend_version, variant, device, threads, protocol)) WITHOUT ROWID";

constexpr const char* kWhere =
    " WHERE function_hash=?1 AND backend=?2 AND backend_version=?3 AND variant=?4 AND device=?5 AND threads=?6 AND protocol=?7";

class Query {
 public:
  Query(sqlite3* database, const std::string& text) { sqlite3_prepare_v2(database, text.c_str(), -1, &statement_, nullptr); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query() { sqlite3_finalize(statement_); }

  void BindKey(const MeasurementKey& key) {
    sqlite3_bind_int64(statement_, 1, static_cast<sqlite3_int64>(key.function_hash));
    Bind(2, key.backend);
    Bind(3, key.backend_version);
    Bind(4, key.variant);
    Bind(5, key.device);
    sqlite3_bind_int(statement_, 6, key.threads);
    sqlite3_bind_int(statement_, 7, kMeasurementProtocol);
  }
  void Bind(int index, const std::string& text) {
    sqlite3_bind_text(statement_, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  int Step() { return statement_ ? sqlite3_step(statement_) : SQLITE_ERROR; }
  [[nodiscard]] sqlite3_stmt* get() const { return statement_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

class MeasurementCache::Database {
 public:
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close(handle_); }

  [[nodiscard]] sqlite3* get() const { return handle_; }
  [[nodiscard]] tl::unexpected<Error> Failure() const {
    return Fail("cache " + path_ + ": " + sqlite3_errmsg(handle_) + "; remove the file or name another with --cache");
  }
  Status Execute(const std::string& text) {
    return sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? Status{} : Failure();
  }

 private:
  sqlite3* handle_;
  std::string path_;
};

MeasurementCache::MeasurementCache(std::unique_ptr<Database> database) : database_(std::move(database)) {}
MeasurementCache::MeasurementCache(MeasurementCache&&) noexcept = default;
MeasurementCache& MeasurementCache::operator=(MeasurementCache&&) noexcept = default;
MeasurementCache::~MeasurementCache() = default;

Result<MeasurementCache> MeasurementCache::Open(const std::filesystem::path& path) {
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return Fail("cache " + path.string() + ": its folder cannot be made: " + error.message());
  }
  sqlite3* handle = nullptr;
  const std::string name = path.empty() ? ":memory:" : path.string();
  const int opened = sqlite3_open_v2(name.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  auto database = std::make_unique<Database>(handle, name);
  if (opened != SQLITE_OK) return database->Failure();
  sqlite3_busy_timeout(handle, 60'000);
  COLLAGE_TRY_STATUS(database->Execute("PRAGMA journal_mode=WAL"));
  COLLAGE_TRY_STATUS(database->Execute("PRAGMA synchronous=NORMAL"));
  int version = 0;
  {
    Query query(handle, "PRAGMA user_version");
    if (query.Step() != SQLITE_ROW) return database->Failure();
    version = sqlite3_column_int(query.get(), 0);
  }
  if (version != 0 && version != kSchemaVersion) {
    return Fail("cache " + name + ": has schema version " + std::to_string(version) + ", expected " + std::to_string(kSchemaVersion) +
                "; remove the file or name another with --cache");
  }
  {
    Query check(handle, "PRAGMA quick_check(1)");
    if (check.Step() != SQLITE_ROW) return database->Failure();
    const auto* verdict = reinterpret_cast<const char*>(sqlite3_column_text(check.get(), 0));
    if (std::strcmp(verdict, "ok") != 0)
      return Fail("cache " + name + ": is damaged (" + verdict + "); remove the file or name another with --cache");
  }
  if (version == 0) {
    COLLAGE_TRY_STATUS(database->Execute(kSchema));
    COLLAGE_TRY_STATUS(database->Execute("PRAGMA user_version=" + std::to_string(kSchemaVersion)));
  }
  return MeasurementCache(std::move(database));
}

Result<std::optional<Measurement>> MeasurementCache::Find(const MeasurementKey& key) const {
  Query query(database_->get(), std::string("SELECT samples, invalid_reason FROM measurement") + kWhere);
  query.BindKey(key);
  const int step = query.Step();
  if (step == SQLITE_DONE) return std::optional<Measurement>();
  if (step != SQLITE_ROW) return database_->Failure();
  Measurement measurement;
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(query.get(), 0));
  measurement.samples.resize(bytes / sizeof(double));
  if (bytes > 0) std::memcpy(measurement.samples.data(), sqlite3_column_blob(query.get(), 0), measurement.samples.size() * sizeof(double));
  measurement.invalid_reason = reinterpret_cast<const char*>(sqlite3_column_text(query.get(), 1));
  return std::optional<Measurement>(std::move(measurement));
}

Status MeasurementCache::Store(const MeasurementKey& key, const Measurement& measurement) {
  Query query(database_->get(), "INSERT OR REPLACE INTO measurement VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,0)");
  query.BindKey(key);
  sqlite3_bind_blob(query.get(), 8, measurement.samples.empty() ? "" : static_cast<const void*>(measurement.samples.data()),
                    static_cast<int>(measurement.samples.size() * sizeof(double)), SQLITE_TRANSIENT);
  query.Bind(9, measurement.invalid_reason);
  return query.Step() == SQLITE_DONE ? Status{} : database_->Failure();
}

Result<bool> MeasurementCache::IsVerified(const MeasurementKey& key) const {
  Query query(database_->get(), std::string("SELECT verified FROM measurement") + kWhere);
  query.BindKey(key);
  const int step = query.Step();
  if (step != SQLITE_ROW && step != SQLITE_DONE) return database_->Failure();
  return step == SQLITE_ROW && sqlite3_column_int(query.get(), 0) == 1;
}

Status MeasurementCache::StoreVerified(const MeasurementKey& key) {
  Query query(database_->get(), std::string("UPDATE measurement SET verified=1") + kWhere);
  query.BindKey(key);
  return query.Step() == SQLITE_DONE ? Status{} : database_->Failure();
}

}  // namespace collage
