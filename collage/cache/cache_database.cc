#include "collage/cache/cache_database.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "collage/cache/fact.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

constexpr std::chrono::seconds kPatience{60};

// Until version 3 one table held kinds of facts told by names of backends. Its kernels are kept; everything else is measured again.
constexpr const char* kOldTable = "measurement";
constexpr const char* kOnlyKernels =
    " FROM measurement WHERE instr(device, '/in ') = 0 AND backend NOT IN ('race of plans', 'drift until the race', 'difference of plan',"
    " 'decision', 'transition', 'tuning', 'context pricing', 'noise floor')";

/// When an entry of version 1 was stored is not known: zero, older than any other.
std::string MigrationFrom(int version) {
  return "INSERT OR IGNORE INTO " + std::string(TableOf(Fact::kKernel).name) + "(" + TableOf(Fact::kKernel).Columns() +
         ") SELECT function_hash, backend, backend_version, variant, device, threads, protocol, samples, invalid_reason, " +
         (version < 3 ? "x''" : "anchors") + ", verified, " + (version < 2 ? "0" : "stored_at") + kOnlyKernels;
}

}  // namespace

Result<std::unique_ptr<CacheDatabase>> CacheDatabase::Open(const std::filesystem::path& path, bool create) {
  if (!create && !std::filesystem::is_regular_file(path)) return Fail("cache " + path.string() + ": is no file that can be read");
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return Fail("cache " + path.string() + ": its folder cannot be made: " + error.message());
  }
  // SQLite takes a file of less than its smallest page for an empty database, and would overwrite it.
  constexpr uintmax_t kSmallestPage = 512;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  if (!error && bytes > 0 && bytes < kSmallestPage)
    return Fail("cache " + path.string() + ": file is not a database; remove the file or name another with --cache");
  sqlite3* handle = nullptr;
  const std::string name = path.empty() ? ":memory:" : path.string();
  const int opened = sqlite3_open_v2(name.c_str(), &handle, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), nullptr);
  std::unique_ptr<CacheDatabase> database(new CacheDatabase(handle, name));
  if (opened != SQLITE_OK) return database->Failure();
  sqlite3_busy_timeout(handle, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
  COLLAGE_TRY_STATUS(database->Execute("PRAGMA synchronous=NORMAL"));
  return database;
}

// Two processes that change the journal of a new file at the same time would wait for each other for ever; SQLite then answers busy at
// once, without the time limit that it keeps otherwise.
Status CacheDatabase::UseWriteAheadLog() {
  const auto give_up = Clock::now() + kPatience;
  while (true) {
    Status status = Execute("PRAGMA journal_mode=WAL");
    if (status || sqlite3_errcode(handle_) != SQLITE_BUSY || Clock::now() > give_up) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Error CacheDatabase::ErrorAbout(const std::string& what) const {
  return Error{"cache " + path_ + ": " + what + "; remove the file or name another with --cache"};
}

tl::unexpected<Error> CacheDatabase::Failure() const { return Fail(ErrorAbout(sqlite3_errmsg(handle_))); }

Status CacheDatabase::Execute(const std::string& text) {
  return sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? Status{} : Failure();
}

Result<int> CacheDatabase::SchemaVersion() const {
  CacheQuery query(handle_, "PRAGMA user_version");
  if (query.Step() != SQLITE_ROW) return Failure();
  return static_cast<int>(query.Integer(0));
}

Result<std::vector<std::string>> CacheDatabase::Tables() const {
  CacheQuery query(handle_, "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name");
  std::vector<std::string> names;
  int step = SQLITE_ROW;
  while ((step = query.Step()) == SQLITE_ROW) names.push_back(query.Text(0));
  if (step != SQLITE_DONE) return Failure();
  return names;
}

Result<int> CacheDatabase::CheckIsCache() const {
  const int version = COLLAGE_TRY(SchemaVersion());
  const std::vector<std::string> tables = COLLAGE_TRY(Tables());
  const bool is_ours =
      std::all_of(tables.begin(), tables.end(), [](const std::string& name) { return name == kOldTable || FindFactTable(name); });
  if (!is_ours || (version != 0 && tables.empty())) return Fail(ErrorAbout("is a database of another program"));
  if (version < 0 || version > kCacheSchemaVersion) {
    return Fail(ErrorAbout("has schema version " + std::to_string(version) + ", expected " + std::to_string(kCacheSchemaVersion) +
                           " or an older one"));
  }
  return version;
}

Status CacheDatabase::PrepareSchema() {
  // A file that is not ours is told before anything is written to it.
  const int version = COLLAGE_TRY(CheckIsCache());
  {
    CacheQuery check(handle_, "PRAGMA quick_check(1)");
    if (check.Step() != SQLITE_ROW) return Failure();
    if (const std::string verdict = check.Text(0); verdict != "ok") return Fail(ErrorAbout("is damaged (" + verdict + ")"));
  }
  COLLAGE_TRY_STATUS(UseWriteAheadLog());
  return version == kCacheSchemaVersion ? Status{} : CreateOrMigrate();
}

Status CacheDatabase::CreateOrMigrate() {
  CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(*this));
  // Another process may have done it while this one waited for the lock.
  const int version = COLLAGE_TRY(CheckIsCache());
  if (version == kCacheSchemaVersion) return {};
  const std::vector<std::string> tables = COLLAGE_TRY(Tables());
  for (const FactTable& table : FactTables()) COLLAGE_TRY_STATUS(Execute(table.Creation()));
  if (std::find(tables.begin(), tables.end(), kOldTable) != tables.end()) {
    // A file that was killed between its table and its version number has a table of version 1.
    COLLAGE_TRY_STATUS(Execute(MigrationFrom(version)));
    COLLAGE_TRY_STATUS(Execute("DROP TABLE " + std::string(kOldTable)));
  }
  COLLAGE_TRY_STATUS(Execute("PRAGMA user_version=" + std::to_string(kCacheSchemaVersion)));
  return transaction.Commit();
}

Result<CacheTransaction> CacheTransaction::Begin(CacheDatabase& database) {
  COLLAGE_TRY_STATUS(database.Execute("BEGIN IMMEDIATE"));
  return CacheTransaction(database);
}

CacheTransaction::~CacheTransaction() {
  if (database_) (void)database_->Execute("ROLLBACK");
}

Status CacheTransaction::Commit() {
  COLLAGE_TRY_STATUS(database_->Execute("COMMIT"));
  database_ = nullptr;
  return {};
}

CacheQuery::CacheQuery(sqlite3* database, const std::string& text) { sqlite3_prepare_v2(database, text.c_str(), -1, &statement_, nullptr); }

void CacheQuery::Bind(int index, const std::string& text) {
  sqlite3_bind_text(statement_, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void CacheQuery::Bind(int index, const std::vector<double>& values) {
  const void* bytes = values.empty() ? "" : static_cast<const void*>(values.data());
  sqlite3_bind_blob(statement_, index, bytes, static_cast<int>(values.size() * sizeof(double)), SQLITE_TRANSIENT);
}

std::string CacheQuery::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string(text, ByteCount(column)) : std::string();
}

std::vector<double> CacheQuery::Doubles(int column) const {
  const void* blob = sqlite3_column_blob(statement_, column);
  std::vector<double> values(ByteCount(column) / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), blob, values.size() * sizeof(double));
  return values;
}

}  // namespace collage
